/** Finds the node of the tree that a request continues, and takes the turn of its thread. */
import type { Chain } from "./chain.ts";
import { GatewayError } from "./errors.ts";
import { isSteering, type Item } from "./item.ts";
import { divide, matchHistory, readShown, type Shown } from "./match.ts";
import type { History, Session, SessionMove, SessionStore, StoredTurn } from "./ports.ts";
import type { Queue } from "./queue.ts";
import type { Ask } from "./turn.ts";

export interface Place {
  readonly history: History;
  /** The turns before this one, from the root. */
  readonly path: readonly StoredTurn[];
  /** What the caller showed of the time before and is not kept yet. */
  readonly base: readonly Item[];
  /** What is new. */
  readonly input: readonly Item[];
  /** The session that is there already. */
  readonly session: Session | undefined;
  /** What keeping this turn does to its session. */
  readonly move: SessionMove | undefined;
  /** How the path was found decides how it is shown to the model. */
  readonly by: "response" | "hint" | "nothing";
}

export interface Seeker {
  readonly owner: string;
  /** What the request says about its session. */
  readonly hint: string | undefined;
  readonly signal: AbortSignal;
}

export interface PlaceParts {
  readonly store: SessionStore;
  readonly queue: Queue;
  readonly chain: Chain;
  readonly newSessionId: () => string;
}

/** `whenLeft` gathers what must be called when the turn is over, or when no place was found. */
export async function findPlace(parts: PlaceParts, ask: Ask, seeker: Seeker, whenLeft: (() => void)[]): Promise<Place> {
  if (ask.previousId !== undefined) return continueResponse(parts, ask, ask.previousId, seeker, whenLeft);
  if (seeker.hint !== undefined) return continueSession(parts, ask, seeker, seeker.hint, whenLeft);
  const history = ask.keep === "yes" ? "new" : "stateless";
  return { history, path: [], base: [], input: ask.items, session: undefined, move: undefined, by: "nothing" };
}

async function continueResponse(
  { store, queue }: PlaceParts,
  ask: Ask,
  previousId: string,
  { owner, signal }: Seeker,
  whenLeft: (() => void)[],
): Promise<Place> {
  const previous = await store.findTurn(owner, previousId);
  if (previous === undefined) {
    throw new GatewayError("previous_response_not_found", `Previous response with id '${previousId}' not found.`, {
      param: "previous_response_id",
    });
  }
  let session = previous.session === undefined ? undefined : await store.readSession(previous.session);
  // Whoever continues a session's newest turn takes part in its thread; any other turn is a branch of its own.
  if (session?.tip === previous.id) {
    const leave = await queue.enter(session.id, signal);
    session = await store.readSession(session.id);
    if (session?.tip === previous.id) whenLeft.push(leave);
    else leave();
  }
  const move = session && ({ id: session.id, expectedTip: previous.id, otherwise: "branch", resends: false } as const);
  const path = await store.readPath(previous.id);
  return { history: "continued", path, base: [], input: ask.items, session, move, by: "response" };
}

async function continueSession(
  parts: PlaceParts,
  ask: Ask,
  { owner, signal }: Seeker,
  hint: string,
  whenLeft: (() => void)[],
): Promise<Place> {
  const { store, queue, newSessionId } = parts;
  const shown = readShown(ask.items);
  const session = await store.findSession(owner, hint);
  // Threads that are found by what was said need not wait for each other.
  if (session !== undefined && !continuesTip(session, shown)) return placeByHistory(parts, shown, session, hint);

  whenLeft.push(await queue.enter(JSON.stringify([owner, hint]), signal));
  let current = await store.findSession(owner, hint);
  if (current === undefined) {
    const resends = shown.history.length > 0;
    const move = { id: newSessionId(), hint, expectedTip: undefined, otherwise: "refuse", resends } as const;
    return { history: "new", path: [], ...divide(shown, 0), session: undefined, move, by: "hint" };
  }
  const isFree = queue.isFree(current.id);
  whenLeft.push(await queue.enter(current.id, signal));
  if (!isFree) current = (await store.findSession(owner, hint)) ?? current;
  if (!continuesTip(current, shown)) return placeByHistory(parts, shown, current, hint);
  const move = { id: current.id, hint, expectedTip: current.tip, otherwise: "refuse", resends: false } as const;
  const path = current.tip === undefined ? [] : await store.readPath(current.tip);
  return { history: "continued", path, base: [], input: ask.items, session: current, move, by: "hint" };
}

/** A request without history goes on with the session's thread, unless the session's callers show theirs. */
function continuesTip(session: Session, shown: Shown): boolean {
  if (shown.history.length > 0) return false;
  // The output of a tool needs its call, so it cannot begin anything.
  const first = shown.items.find((item) => !isSteering(item));
  return session.tip !== undefined && (!session.resends || first?.type === "tool-output");
}

async function placeByHistory(
  { store, chain }: PlaceParts,
  shown: Shown,
  session: Session,
  hint: string,
): Promise<Place> {
  const resends = shown.history.length > 0;
  const move = { id: session.id, hint, expectedTip: session.tip, otherwise: "branch", resends } as const;
  if (!resends) return { history: "new", path: [], ...divide(shown, 0), session, move, by: "hint" };
  return { ...(await matchHistory(store, chain, session, shown)), session, move, by: "hint" };
}
