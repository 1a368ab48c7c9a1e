/** What a store says when it cannot do what it was asked. */
import { GatewayError } from "../core/errors.ts";

export function unavailable(message: string, cause?: unknown): GatewayError {
  return new GatewayError("store_unavailable", message, { retryAfterSeconds: 1, cause });
}

export function isClosed(): GatewayError {
  return unavailable("The session store is closed.");
}

/** Hints are kept as hashes under one key, so two keys in one store would make sessions that nobody finds again. */
export function hasOtherKey(): GatewayError {
  return new GatewayError(
    "invalid_value",
    "The archive's hints were hashed with another key than those of the sessions in this store, so its sessions could never be found again by their hints. Take it into an empty store.",
  );
}

export function isBrokenArchive(what: string): GatewayError {
  return new GatewayError("invalid_value", `The archive is not whole: ${what}. Export it again. Nothing was taken in.`);
}

/** What is of one owner leads to nothing of another's: whoever reads a path or moves a tip relies on it, and asks no more. */
export function mixesOwners(what: string): GatewayError {
  return new GatewayError(
    "invalid_value",
    `The archive mixes owners: ${what}, which is of another owner. No gateway writes such an archive. Nothing was taken in.`,
  );
}

export function hasNoSession(sessionId: string): GatewayError {
  return new GatewayError("not_found", `The session store has no session '${sessionId}'; it may have been deleted.`);
}

export function hasNoLoose(turnId: string): GatewayError {
  return new GatewayError(
    "not_found",
    `The session store has no thread outside of sessions that begins with '${turnId}'; it may have been deleted.`,
  );
}
