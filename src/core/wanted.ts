/** What an operator names in the store: a session, or a turn outside of sessions, with all that belongs to it. */
import { GatewayError } from "./errors.ts";
import type { ArchiveRecord, SessionStore } from "./store.ts";

export interface Wanted {
  /** A thread is a turn outside of sessions, with what came before it and all that follows it. */
  readonly type: "session" | "thread";
  readonly id: string;
  readonly owner: string;
}

/** Throws `not_found`, naming the session if it is a turn in one. */
export async function findWanted(store: Pick<SessionStore, "readSession" | "readPath">, id: string): Promise<Wanted> {
  const session = await store.readSession(id);
  if (session !== undefined) return { type: "session", id, owner: session.owner };
  const turn = (await store.readPath(id)).tip;
  if (turn === undefined) {
    throw new GatewayError("not_found", `There is no session '${id}', and no turn with that id outside of sessions.`);
  }
  if (turn.session === undefined) return { type: "thread", id, owner: turn.owner };
  throw new GatewayError(
    "not_found",
    `'${id}' is a turn of the session '${turn.session}'. Use the session's id instead.`,
  );
}

/** The sessions under a hint, of every owner or of one. */
export async function findUnderHint(
  store: Pick<SessionStore, "listSessions">,
  hint: string,
  owner: string | undefined,
): Promise<readonly Wanted[]> {
  const found = await store.listSessions({ hint, owner, limit: maxOwners });
  return found.map((session) => ({ type: "session", id: session.id, owner: session.owner }));
}

/** An owner has one session under a hint. */
const maxOwners = 10_000;

/** Several of them as one archive. */
export async function* exportWanted(
  store: Pick<SessionStore, "exportRecords">,
  wanted: readonly Wanted[],
): AsyncGenerator<ArchiveRecord, void, void> {
  for (const [index, { id }] of wanted.entries()) {
    for await (const record of store.exportRecords(id)) if (index === 0 || record.type !== "store") yield record;
  }
}

/** Deletes a session, or a turn with all that follows it (what came before stays). Returns how many of them went. */
export async function deleteWanted(
  store: Pick<SessionStore, "deleteSession" | "deleteTurn" | "deleteBelow">,
  { type, id, owner }: Wanted,
): Promise<number> {
  if (type === "session") return (await store.deleteSession(owner, id)) ? 1 : 0;
  const below = await store.deleteBelow(owner, id);
  return below + ((await store.deleteTurn(owner, id)) ? 1 : 0);
}
