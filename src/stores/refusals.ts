/** The errors of a store that cannot do what it is asked. */
import { GatewayError, messageOf } from "../core/errors.ts";
import type { StoredTurn } from "../core/store.ts";

export function unavailable(message: string, cause?: unknown): GatewayError {
  return new GatewayError("store_unavailable", message, { retryAfterSeconds: 1, cause });
}

export function storeClosed(): GatewayError {
  return unavailable("The session store is closed.");
}

/** Nobody finds it any more, but the store failed before all of it was removed. */
export function notAllGone(thrown: unknown): GatewayError {
  const then = "It is deleted, but not all of it is gone from the store yet: the next pruning removes the rest.";
  return unavailable(`${then} ${messageOf(thrown)}`, thrown);
}

/** Hints are hashed with one key; with two in one store, some sessions could never be found again. */
export function otherKey(): GatewayError {
  return new GatewayError(
    "invalid_value",
    "The archive's hints were hashed with a different key than those of the sessions in this store, so its sessions could never be found by their hints. Nothing was imported: import it into an empty store.",
  );
}

export function brokenArchive(what: string): GatewayError {
  return new GatewayError(
    "invalid_value",
    `The archive is incomplete: ${what}. Export it again. Nothing was imported.`,
  );
}

/** Nothing of one owner leads to another's: whoever reads a path or moves a tip relies on it without checking. */
export function mixedOwners(what: string): GatewayError {
  return new GatewayError(
    "invalid_value",
    `The archive mixes owners: ${what}, which belongs to another owner. No gateway writes such an archive. Nothing was imported.`,
  );
}

/** Why an archive's turn is not imported: what it names is missing, or is another owner's. */
export function misplacedTurn(
  turnId: string,
  named: "session" | "parent",
  name: string,
  exists: boolean,
): GatewayError {
  const isInSession = named === "session";
  const what = `the turn ${turnId} ${isInSession ? "belongs to the session" : "follows the turn"} ${name}`;
  if (exists) return mixedOwners(what);
  return brokenArchive(`${what}, which ${isInSession ? "is not in it" : "does not come before it"}`);
}

/** Checks that what an archive's turn names exists and has its owner. */
export function checkPlace(
  { id, owner, session, parent }: Pick<StoredTurn, "id" | "owner" | "session" | "parent">,
  ownerOfSession: (sessionId: string) => unknown,
  ownerOfTurn: (turnId: string) => unknown,
): void {
  const ofSession = session === undefined ? owner : ownerOfSession(session);
  if (ofSession !== owner) throw misplacedTurn(id, "session", session ?? "", ofSession !== undefined);
  const ofParent = parent === undefined ? owner : ownerOfTurn(parent);
  if (ofParent !== owner) throw misplacedTurn(id, "parent", parent ?? "", ofParent !== undefined);
}

export function noSession(sessionId: string): GatewayError {
  return new GatewayError("not_found", `The session store has no session '${sessionId}'; it may have been deleted.`);
}

export function noSessionless(turnId: string): GatewayError {
  return new GatewayError(
    "not_found",
    `The session store has no thread outside of sessions that begins with '${turnId}'; it may have been deleted.`,
  );
}
