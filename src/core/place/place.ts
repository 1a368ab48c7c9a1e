/** Finds the node of the tree that a request continues, and takes the turn of its thread. */
import type { Chain } from "./chain.ts";
import { GatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import { type Match, matchHistory } from "./match.ts";
import { divide, isStep, readShown, type Shown, withoutKnown, withoutRepeat } from "./shown.ts";
import type { Session, SessionMove, SessionStore, StoredTurn } from "../store.ts";
import { noPath, type Path } from "./path.ts";
import type { Queue } from "./queue.ts";
import { sideOf } from "./runs.ts";
import { asksAnew, isConversation, mayFollow } from "./titles.ts";
import type { Ask } from "../turn.ts";

export interface Place extends Match {
  /** The session that is there already. */
  readonly session: Session | undefined;
  /** What keeping this turn does to its session. */
  readonly move: SessionMove | undefined;
  /** How the path was found decides how it is shown to the model. */
  readonly by: "response" | "conversation" | "hint" | "nothing";
}

export interface Seeker {
  readonly owner: string;
  /** What the request says about its session. */
  readonly hint: string | undefined;
  /** The hint names one conversation, rather than whoever speaks, who may have several at once. */
  readonly hintsAtTalk?: boolean | undefined;
  /** It cannot show what was said before, so that it goes on where the session is, whatever the session's other callers do. */
  readonly neverShows?: boolean | undefined;
  readonly signal: AbortSignal;
  /** Turns that only this caller can continue, as they are kept nowhere else. */
  readonly memory?: Memory | undefined;
}

/** A caller's own memory of turns that are not kept, e.g. for as long as its connection lasts. */
export interface Memory {
  /** The turns from the root to this one. */
  find(turnId: string): Path | undefined;
  keep(path: Path): void;
}

export interface PlaceParts {
  readonly store: SessionStore;
  readonly queue: Queue;
  readonly chain: Chain;
  readonly newSessionId: () => string;
  /** The sessions that are just being begun, by their owners and hints. */
  readonly beginnings: Map<string, Beginning>;
  /** Every session's callers show their history, from its first turn on. */
  readonly alwaysResends: boolean;
}

/** A session that is not kept yet, though turns run that will be in it. */
interface Beginning {
  readonly sessionId: string;
  /** The one that others may wait for. */
  first: Ask<Item>;
  turns: number;
}

/** `whenLeft` gathers what must be called when the turn is over, or when no place was found. */
export async function findPlace(
  parts: PlaceParts,
  ask: Ask<Item>,
  seeker: Seeker,
  whenLeft: (() => void)[],
): Promise<Place> {
  if (ask.previousId !== undefined) return continueResponse(parts, ask, ask.previousId, seeker, whenLeft);
  if (ask.conversationId !== undefined) return continueConversation(parts, ask, ask.conversationId, seeker, whenLeft);
  if (seeker.hint !== undefined) return continueSession(parts, ask, seeker, seeker.hint, whenLeft);
  const history = ask.keep === "yes" ? "new" : "stateless";
  return { history, path: noPath, base: [], input: ask.items, session: undefined, move: undefined, by: "nothing" };
}

/** The last line that was entered is left first. */
export function leaveAll(whenLeft: (() => void)[]): void {
  for (const leave of whenLeft.splice(0).toReversed()) leave();
}

/** What a request will be placed by, known before its place is. */
export function placedBy(ask: Ask<Item>, hint: string | undefined): Place["by"] {
  if (ask.previousId !== undefined) return "response";
  if (ask.conversationId !== undefined) return "conversation";
  return hint === undefined ? "nothing" : "hint";
}

async function continueResponse(
  { store, queue }: PlaceParts,
  ask: Ask<Item>,
  previousId: string,
  { owner, signal, memory }: Seeker,
  whenLeft: (() => void)[],
): Promise<Place> {
  const remembered = memory?.find(previousId);
  if (remembered !== undefined) {
    const nowhere = { base: [], session: undefined, move: undefined } as const;
    const input = withoutRepeat(ask.items, remembered);
    return { history: "continued", path: remembered, input, by: "response", ...nowhere };
  }
  const previous = await findPrevious(store, owner, previousId);
  let session = previous.session === undefined ? undefined : await store.readSession(previous.session);
  // Whoever continues a session's newest turn takes part in its thread; any other turn is a branch of its own.
  if (session?.tip === previous.id) {
    whenLeft.push(await queue.enter(session.id, signal));
    session = await store.readSession(session.id);
    if (session?.tip !== previous.id) leaveAll(whenLeft);
  }
  const move = session && ({ id: session.id, expectedTip: previous.id, otherwise: "branch", resends: false } as const);
  const path = await store.readPath(previous.id);
  // It may have been deleted while the request waited.
  if (path.tip?.id !== previous.id) throw noPrevious(previousId, "not found");
  const input = withoutRepeat(ask.items, path);
  return { history: "continued", path, base: [], input, session, move, by: "response" };
}

/** Throws when what a request names to go on from is not there; gives its session. */
export async function findContinued(
  store: SessionStore,
  owner: string,
  { previousId, conversationId }: Pick<Ask, "previousId" | "conversationId">,
): Promise<string | undefined> {
  if (previousId !== undefined) return (await findPrevious(store, owner, previousId)).session;
  return conversationId === undefined ? undefined : (await findConversation(store, owner, conversationId)).id;
}

/** The turn that a request names as the one before it. */
async function findPrevious(store: SessionStore, owner: string, previousId: string): Promise<StoredTurn> {
  const previous = await store.findTurn(owner, previousId);
  if (previous?.status === "completed" || previous?.status === "incomplete") return previous;
  if (previous === undefined) throw noPrevious(previousId, "not found");
  throw noPrevious(previousId, previous.status === "running" ? "still runs" : "has no answer to go on from");
}

function noPrevious(previousId: string, why: string): GatewayError {
  return new GatewayError("previous_response_not_found", `Previous response with id '${previousId}' ${why}.`, {
    param: "previous_response_id",
  });
}

async function continueConversation(
  { store, queue }: PlaceParts,
  ask: Ask<Item>,
  conversationId: string,
  { owner, signal }: Seeker,
  whenLeft: (() => void)[],
): Promise<Place> {
  const found = await findConversation(store, owner, conversationId);
  const isFree = queue.isFree(conversationId);
  whenLeft.push(await queue.enter(conversationId, signal));
  let session = isFree ? found : await findConversation(store, owner, conversationId);
  let path = await readThread(store, session);
  if (path.tip?.id !== session.tip) {
    // It was deleted just now, or its newest turn was.
    session = await findConversation(store, owner, conversationId);
    path = await readThread(store, session);
  }
  const move = { id: session.id, expectedTip: session.tip, otherwise: "refuse", resends: false } as const;
  const input = withoutRepeat(ask.items, path);
  return { history: "continued", path, base: [], input, session, move, by: "conversation" };
}

/** What was said in a session's current thread. */
export async function readThread(store: SessionStore, { tip }: Pick<Session, "tip">): Promise<Path> {
  return tip === undefined ? noPath : store.readPath(tip);
}

/** The owner's session of this id. */
async function findConversation(store: SessionStore, owner: string, conversationId: string): Promise<Session> {
  const session = await store.readSession(conversationId);
  if (session?.owner === owner) return session;
  throw new GatewayError("not_found", `Conversation with id '${conversationId}' not found.`, { param: "conversation" });
}

async function continueSession(
  parts: PlaceParts,
  ask: Ask<Item>,
  seeker: Seeker,
  hint: string,
  whenLeft: (() => void)[],
): Promise<Place> {
  const { owner, signal } = seeker;
  const { store, queue, newSessionId, beginnings } = parts;
  const alwaysResends = parts.alwaysResends && seeker.neverShows !== true;
  const shown = readShown(ask.items);
  const session = await store.findSession(owner, hint);
  const continuesTip = (known: Session): boolean =>
    goesOnWithTip(known, shown, alwaysResends || (known.resends && seeker.neverShows !== true));
  // Threads that are found by what was said need not wait for each other, but the next step of a turn is in its thread's line.
  const waits = (known: Session): boolean =>
    continuesTip(known) || (!(known.resends || alwaysResends) && isStep(shown));
  if (session !== undefined && !waits(session)) return placeByHistory(parts, shown, session, seeker);

  const name = JSON.stringify([owner, hint]);
  /** All that begin at once begin the same session, until the last of them has ended, however the others did. */
  function begin(beginning: Beginning): Place {
    beginnings.set(name, beginning);
    beginning.turns += 1;
    whenLeft.push(() => {
      beginning.turns -= 1;
      if (beginning.turns === 0) beginnings.delete(name);
    });
    const resends = alwaysResends || showsHistory(shown, seeker);
    const move = { id: beginning.sessionId, hint, expectedTip: undefined, otherwise: "branch", resends } as const;
    return { history: "new", path: noPath, ...divide(shown, 0), session: undefined, move, by: "hint" };
  }
  /** Leaves every line first, as two that each wait in the other's would never come to an end. */
  function seekAgain(): Promise<Place> {
    leaveAll(whenLeft);
    return continueSession(parts, ask, seeker, hint, whenLeft);
  }
  const mayContinue = (first: Ask<Item>): boolean => shown.end === 0 && !alwaysResends && mayFollow(first, ask);
  const isFirst = queue.isFree(name);
  const begun = beginnings.get(name);
  if (session === undefined && !isFirst && begun && !mayContinue(begun.first)) {
    return begin(begun);
  }

  // Whoever came before the session was there goes first.
  const isSettled = session !== undefined && queue.isIdle(name);
  if (!isSettled) whenLeft.push(await queue.enter(name, signal));
  let current = isSettled || isFirst ? session : await store.findSession(owner, hint);
  if (current === undefined) {
    const beginning = beginnings.get(name) ?? { sessionId: newSessionId(), first: ask, turns: 0 };
    beginning.first = ask;
    return begin(beginning);
  }
  const { id } = current;
  const isFree = queue.isFree(id);
  whenLeft.push(await queue.enter(id, signal));
  if (!isFree) current = await store.findSession(owner, hint);
  // It was deleted while the request waited in its line, which is nobody's any more.
  if (current?.id !== id) return seekAgain();
  if (!continuesTip(current)) return placeByHistory(parts, shown, current, seeker);
  const path = await readThread(store, current);
  // So it may have been just now, or its newest turn was.
  if (path.tip?.id !== current.tip && (await store.findSession(owner, hint))?.tip !== current.tip) return seekAgain();
  if (asksAnew(path, ask.items)) return beginThread(shown, current, hint, isConversation(ask, path));
  // Whoever shows its history waits for nobody, and may be the first to do so while this turn runs.
  const otherwise = "branch-if-resends";
  const move = { id: current.id, hint, expectedTip: current.tip, otherwise, resends: false } as const;
  const input = withoutKnown(ask.items, path);
  return { history: "continued", path, base: [], input, session: current, move, by: "hint" };
}

/** A request without history goes on with the session's thread, unless the session's callers show theirs. */
function goesOnWithTip(session: Session, shown: Shown, resends: boolean): boolean {
  if (shown.end > 0) return false;
  // The output of a tool needs its call, so it cannot begin anything.
  const first = shown.items.map(sideOf).find((side) => side !== undefined);
  return session.tip !== undefined && (!resends || first === "tools");
}

/** A thread of its own in a session that has others; the session goes on with it, or with the one it had. */
function beginThread(shown: Shown, session: Session, hint: string | undefined, isNext = true): Place {
  const expectedTip = isNext ? session.tip : undefined;
  const move = { id: session.id, hint, expectedTip, otherwise: "branch", resends: false } as const;
  return { history: "new", path: noPath, ...divide(shown, 0), session, move, by: "hint" };
}

async function placeByHistory(
  { store, chain }: PlaceParts,
  shown: Shown,
  session: Session,
  seeker: Seeker,
): Promise<Place> {
  const { hint } = seeker;
  if (shown.end === 0) return beginThread(shown, session, hint);
  const match = await matchHistory(store, chain, session, shown, seeker.hintsAtTalk === true);
  const resends = showsHistory(shown, seeker, match);
  const move = { id: session.id, hint, expectedTip: session.tip, otherwise: "branch", resends } as const;
  return { ...match, session, move, by: "hint" };
}

/**
 * Whether a request says that its caller shows all that was said. One that shows no more than the steps of its own turn may do
 * so because every client must; but where a hint may stand for several conversations at once it is taken at its word, unless
 * it has just left out what came before.
 */
function showsHistory(shown: Shown, { hintsAtTalk = false }: Seeker, match?: Match): boolean {
  if (shown.end === 0) return false;
  return !isStep(shown) || (!hintsAtTalk && match?.isTail !== true);
}
