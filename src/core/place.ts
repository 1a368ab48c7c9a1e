/** Finds the node of the tree that a request continues, and takes the turn of its thread. */
import { GatewayError } from "./errors.ts";
import type { History, Session, SessionMove, SessionStore, StoredTurn } from "./ports.ts";
import type { Queue } from "./queue.ts";
import type { Ask } from "./turn.ts";

export interface Place {
  readonly history: History;
  /** The turns before this one, from the root. */
  readonly path: readonly StoredTurn[];
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
  readonly newSessionId: () => string;
}

/** `whenLeft` gathers what must be called when the turn is over, or when no place was found. */
export async function findPlace(parts: PlaceParts, ask: Ask, seeker: Seeker, whenLeft: (() => void)[]): Promise<Place> {
  if (ask.previousId !== undefined) return continueResponse(parts, ask.previousId, seeker, whenLeft);
  if (seeker.hint !== undefined) return continueSession(parts, ask, seeker, seeker.hint, whenLeft);
  const history = ask.keep === "yes" ? "new" : "stateless";
  return { history, path: [], session: undefined, move: undefined, by: "nothing" };
}

async function continueResponse(
  { store, queue }: PlaceParts,
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
  const move = session && ({ id: session.id, expectedTip: previous.id, otherwise: "branch" } as const);
  return { history: "continued", path: await store.readPath(previous.id), session, move, by: "response" };
}

async function continueSession(
  { store, queue, newSessionId }: PlaceParts,
  ask: Ask,
  { owner, signal }: Seeker,
  hint: string,
  whenLeft: (() => void)[],
): Promise<Place> {
  whenLeft.push(await queue.enter(JSON.stringify([owner, hint]), signal));
  let session = await store.findSession(owner, hint);
  if (session !== undefined) {
    const isFree = queue.isFree(session.id);
    whenLeft.push(await queue.enter(session.id, signal));
    if (!isFree) session = await store.findSession(owner, hint);
  }
  const move: SessionMove = {
    id: session?.id ?? newSessionId(),
    hint,
    expectedTip: session?.tip,
    otherwise: "refuse",
  };
  if (session?.tip === undefined) return { history: "new", path: [], session, move, by: "hint" };
  if (showsHistory(ask)) return { history: "foreign", path: [], session, move, by: "hint" };
  return { history: "continued", path: await store.readPath(session.tip), session, move, by: "hint" };
}

/** A list with something of the model's in it is the caller's own account of the conversation. */
function showsHistory(ask: Ask): boolean {
  return ask.items.some(
    (item) =>
      item.type === "tool-call" || item.type === "reasoning" || (item.type === "message" && item.role === "assistant"),
  );
}
