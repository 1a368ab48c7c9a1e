/** Finds the session that a hint names, or begins it, and takes its thread's turn. */
import type { Item } from "../item.ts";
import { withoutKnown } from "./again.ts";
import { withoutLostAnswer } from "./lost-answer.ts";
import { type Match, matchHistory } from "./match.ts";
import { noPath, readThread } from "./path.ts";
import type { Place, PlaceSearch, Requester } from "./place.ts";
import { enterLine, leaveAll } from "./queue.ts";
import { sideOf } from "./runs.ts";
import { divide, isStep, readShown, type Shown } from "./shown.ts";
import type { Session } from "../store.ts";
import { restartsConversation, isConversation, mayFollow } from "./titles.ts";
import type { Ask } from "../turn.ts";

/** A session not yet stored, though turns run that will be in it. */
export interface UnstoredSession {
  readonly sessionId: string;
  /** The one that others may wait for. */
  first: Ask<Item>;
  turns: number;
}

interface SessionSearch extends PlaceSearch {
  readonly hint: string;
  readonly shown: Shown;
  /** It resends its history, whatever its session is known for. */
  readonly alwaysResends: boolean;
}

/**
 * Until a session is stored, whoever might continue it waits in a line of its owner and hint; from then on in the line
 * of its id, but behind those who are still in the first.
 */
export async function continueSession(placing: PlaceSearch, hint: string): Promise<Place> {
  const { parts, ask, requester } = placing;
  const { store, queue, newSessionId, unstored } = parts;
  const { owner } = requester;
  const resends = requester.alwaysResends ?? parts.alwaysResends();
  const alwaysResends = resends && requester.neverShows !== true;
  const search: SessionSearch = { ...placing, hint, shown: readShown(ask.items), alwaysResends };
  const session = await store.findSession(owner, hint);
  if (session !== undefined && !mustWait(search, session)) return placeByHistory(search, session);

  const name = JSON.stringify([owner, hint]);
  const isIdle = queue.isIdle(name);
  const begun = unstored.get(name);
  if (session === undefined && !isIdle && begun && !mayContinue(search, begun)) return begin(search, name, begun);

  const skipsLine = session !== undefined && isIdle;
  const isCurrent = skipsLine || (await enterLine(search, name));
  const current = isCurrent ? session : await store.findSession(owner, hint);
  // On other gateways somebody may still be in the first line.
  if (current !== undefined) return takeTurn(search, current, skipsLine ? name : undefined);
  const beginning = unstored.get(name) ?? { sessionId: newSessionId(), first: ask, turns: 0 };
  beginning.first = ask;
  return begin(search, name, beginning);
}

/** All that begin at once begin the same session, until the last has ended, however the others did. */
function begin(search: SessionSearch, name: string, beginning: UnstoredSession): Place {
  const { parts, requester, hint, whenLeft, shown, alwaysResends } = search;
  const { unstored } = parts;
  unstored.set(name, beginning);
  beginning.turns += 1;
  whenLeft.push(() => {
    beginning.turns -= 1;
    if (beginning.turns === 0) unstored.delete(name);
  });
  const resends = alwaysResends || showsHistory(shown, requester);
  const move = { id: beginning.sessionId, hint, expectedTip: undefined, otherwise: "branch", resends } as const;
  return { history: "new", path: noPath, ...divide(shown, 0), session: undefined, move, by: "hint" };
}

/** Waits in the session's line, which may be `behind` another, then continues where the session is. */
async function takeTurn(search: SessionSearch, known: Session, behind: string | undefined): Promise<Place> {
  const { ask, hint, shown } = search;
  const { store } = search.parts;
  const { owner } = search.requester;
  const isFree = await enterLine(search, known.id, behind);
  const session = isFree ? known : await store.findSession(owner, hint);
  // It was deleted while the request waited, so its line means nothing now.
  if (session?.id !== known.id) return searchAgain(search);
  if (!continuesTip(search, session)) return placeByHistory(search, session);
  const thread = await readThread(store, session);
  // It or its newest turn may just have been deleted.
  const isMoved = thread.tip?.id !== session.tip && (await store.findSession(owner, hint))?.tip !== session.tip;
  if (isMoved) return searchAgain(search);
  if (restartsConversation(thread, ask.items)) return beginThread(shown, session, hint, isConversation(ask, thread));
  const path = await withoutLostAnswer(store, ask.items, thread);
  // Callers that show their history do not wait; the first may come while this turn runs.
  const otherwise = "branch-if-resends";
  const move = { id: session.id, hint, expectedTip: session.tip, otherwise, resends: false } as const;
  return { history: "continued", path, base: [], input: withoutKnown(ask.items, path), session, move, by: "hint" };
}

/** Leaves every line first: two requests waiting in each other's lines would never end. */
function searchAgain(search: SessionSearch): Promise<Place> {
  leaveAll(search.whenLeft);
  return continueSession(search, search.hint);
}

/** Threads found by their content need not wait for each other, but the next step of a turn queues for its thread. */
function mustWait(search: SessionSearch, session: Session): boolean {
  if (continuesTip(search, session)) return true;
  return !(session.resends || search.alwaysResends) && isStep(search.shown);
}

/** A request without history continues the session's thread, unless the session's callers show theirs. */
function continuesTip({ requester, shown, alwaysResends }: SessionSearch, session: Session): boolean {
  if (shown.end > 0 || session.tip === undefined) return false;
  const resends = alwaysResends || (session.resends && requester.neverShows !== true);
  // A tool's output needs its call, so it cannot begin anything.
  return !resends || shown.items.map(sideOf).find((side) => side !== undefined) === "tools";
}

/** Whether it may be the next turn of a session that is just being begun. */
function mayContinue({ ask, shown, alwaysResends }: SessionSearch, { first }: UnstoredSession): boolean {
  return shown.end === 0 && !alwaysResends && mayFollow(first, ask);
}

/** A new thread in a session that has others; the session continues with it, or with the one it had. */
function beginThread(shown: Shown, session: Session, hint: string, isNext = true): Place {
  const expectedTip = isNext ? session.tip : undefined;
  const move = { id: session.id, hint, expectedTip, otherwise: "branch", resends: false } as const;
  return { history: "new", path: noPath, ...divide(shown, 0), session, move, by: "hint" };
}

async function placeByHistory(search: SessionSearch, session: Session): Promise<Place> {
  const { parts, requester, hint, shown, alwaysResends } = search;
  if (shown.end === 0) return beginThread(shown, session, hint);
  const habits = { isOneTalk: requester.hintsAtTalk === true, showAll: alwaysResends };
  const match = await matchHistory(parts, session, shown, habits);
  const resends = showsHistory(shown, requester, match);
  const move = { id: session.id, hint, expectedTip: session.tip, otherwise: "branch", resends } as const;
  return { ...match, showsAll: alwaysResends, session, move, by: "hint" };
}

/**
 * Whether a request implies that its caller shows all that was said. One that shows only the steps of its own turn may
 * do so because every client must; but if the hint may stand for several conversations it is taken at its word, unless
 * it has just left out what came before.
 */
function showsHistory(shown: Shown, { hintsAtTalk = false }: Requester, match?: Match): boolean {
  if (shown.end === 0) return false;
  return !isStep(shown) || (!hintsAtTalk && match?.isTail !== true);
}
