/** Finds the session that a hint names, or begins it, and takes its thread's turn. */
import type { Item } from "../item.ts";
import { withoutKnown } from "./again.ts";
import { type Match, matchHistory } from "./match.ts";
import { noPath, readThread } from "./path.ts";
import type { Place, PlaceParts, Seeker } from "./place.ts";
import { leaveAll } from "./queue.ts";
import { sideOf } from "./runs.ts";
import { divide, isStep, readShown, type Shown } from "./shown.ts";
import type { Session } from "../store.ts";
import { asksAnew, isConversation, mayFollow } from "./titles.ts";
import type { Ask } from "../turn.ts";

/** A session not yet stored, though turns run that will be in it. */
export interface UnkeptSession {
  readonly sessionId: string;
  /** The one that others may wait for. */
  first: Ask<Item>;
  turns: number;
}

/** A request that looks for its session. */
interface Seeking {
  readonly parts: PlaceParts;
  readonly ask: Ask<Item>;
  readonly seeker: Seeker;
  readonly hint: string;
  readonly whenLeft: (() => void)[];
  readonly shown: Shown;
  /** Its callers show their history, whatever its session is known for. */
  readonly alwaysResends: boolean;
}

export async function continueSession(
  parts: PlaceParts,
  ask: Ask<Item>,
  seeker: Seeker,
  hint: string,
  whenLeft: (() => void)[],
): Promise<Place> {
  const { store, queue, newSessionId, unkept } = parts;
  const { owner, signal, stands } = seeker;
  const alwaysResends = parts.alwaysResends() && seeker.neverShows !== true;
  const seeking: Seeking = { parts, ask, seeker, hint, whenLeft, shown: readShown(ask.items), alwaysResends };
  const session = await store.findSession(owner, hint);
  if (session !== undefined && !mustWait(seeking, session)) return placeByHistory(seeking, session);

  const name = JSON.stringify([owner, hint]);
  const isFirst = queue.isFree(name);
  const begun = unkept.get(name);
  if (session === undefined && !isFirst && begun && !mayContinue(seeking, begun)) return begin(seeking, name, begun);

  // Whoever came before the session existed goes first.
  const isSettled = session !== undefined && queue.isIdle(name);
  if (!isSettled) whenLeft.push(await queue.enter(name, signal, stands));
  const current = isSettled || isFirst ? session : await store.findSession(owner, hint);
  if (current !== undefined) return takeTurn(seeking, current, isSettled ? name : undefined);
  const beginning = unkept.get(name) ?? { sessionId: newSessionId(), first: ask, turns: 0 };
  beginning.first = ask;
  return begin(seeking, name, beginning);
}

/** All that begin at once begin the same session, until the last has ended, however the others did. */
function begin(seeking: Seeking, name: string, beginning: UnkeptSession): Place {
  const { parts, seeker, hint, whenLeft, shown, alwaysResends } = seeking;
  const { unkept } = parts;
  unkept.set(name, beginning);
  beginning.turns += 1;
  whenLeft.push(() => {
    beginning.turns -= 1;
    if (beginning.turns === 0) unkept.delete(name);
  });
  const resends = alwaysResends || showsHistory(shown, seeker);
  const move = { id: beginning.sessionId, hint, expectedTip: undefined, otherwise: "branch", resends } as const;
  return { history: "new", path: noPath, ...divide(shown, 0), session: undefined, move, by: "hint" };
}

/** Waits in the session's line, which may be `behind` another, then continues where the session is. */
async function takeTurn(seeking: Seeking, known: Session, behind: string | undefined): Promise<Place> {
  const { parts, ask, seeker, hint, whenLeft, shown } = seeking;
  const { store, queue } = parts;
  const { owner, signal, stands } = seeker;
  const isFree = queue.isFree(known.id);
  whenLeft.push(await queue.enter(known.id, signal, stands, behind));
  const session = isFree ? known : await store.findSession(owner, hint);
  // It was deleted while the request waited, so its line means nothing now.
  if (session?.id !== known.id) return seekAgain(seeking);
  if (!continuesTip(seeking, session)) return placeByHistory(seeking, session);
  const path = await readThread(store, session);
  // It or its newest turn may just have been deleted.
  const isMoved = path.tip?.id !== session.tip && (await store.findSession(owner, hint))?.tip !== session.tip;
  if (isMoved) return seekAgain(seeking);
  if (asksAnew(path, ask.items)) return beginThread(shown, session, hint, isConversation(ask, path));
  // Callers that show their history do not wait; the first may come while this turn runs.
  const otherwise = "branch-if-resends";
  const move = { id: session.id, hint, expectedTip: session.tip, otherwise, resends: false } as const;
  return { history: "continued", path, base: [], input: withoutKnown(ask.items, path), session, move, by: "hint" };
}

/** Leaves every line first: two requests waiting in each other's lines would never end. */
function seekAgain({ parts, ask, seeker, hint, whenLeft }: Seeking): Promise<Place> {
  leaveAll(whenLeft);
  return continueSession(parts, ask, seeker, hint, whenLeft);
}

/** Threads found by their content need not wait for each other, but the next step of a turn queues for its thread. */
function mustWait(seeking: Seeking, session: Session): boolean {
  if (continuesTip(seeking, session)) return true;
  return !(session.resends || seeking.alwaysResends) && isStep(seeking.shown);
}

/** A request without history continues the session's thread, unless the session's callers show theirs. */
function continuesTip({ seeker, shown, alwaysResends }: Seeking, session: Session): boolean {
  if (shown.end > 0 || session.tip === undefined) return false;
  const resends = alwaysResends || (session.resends && seeker.neverShows !== true);
  // A tool's output needs its call, so it cannot begin anything.
  return !resends || shown.items.map(sideOf).find((side) => side !== undefined) === "tools";
}

/** Whether it may be the next turn of a session that is just being begun. */
function mayContinue({ ask, shown, alwaysResends }: Seeking, { first }: UnkeptSession): boolean {
  return shown.end === 0 && !alwaysResends && mayFollow(first, ask);
}

/** A new thread in a session that has others; the session continues with it, or with the one it had. */
function beginThread(shown: Shown, session: Session, hint: string, isNext = true): Place {
  const expectedTip = isNext ? session.tip : undefined;
  const move = { id: session.id, hint, expectedTip, otherwise: "branch", resends: false } as const;
  return { history: "new", path: noPath, ...divide(shown, 0), session, move, by: "hint" };
}

async function placeByHistory(seeking: Seeking, session: Session): Promise<Place> {
  const { parts, seeker, hint, shown, alwaysResends } = seeking;
  if (shown.end === 0) return beginThread(shown, session, hint);
  const ways = { isOneTalk: seeker.hintsAtTalk === true, showAll: alwaysResends };
  const match = await matchHistory(parts.store, parts.chain, session, shown, ways);
  const resends = showsHistory(shown, seeker, match);
  const move = { id: session.id, hint, expectedTip: session.tip, otherwise: "branch", resends } as const;
  return { ...match, showsAll: alwaysResends, session, move, by: "hint" };
}

/**
 * Whether a request implies that its caller shows all that was said. One that shows only the steps of its own turn may
 * do so because every client must; but if the hint may stand for several conversations it is taken at its word, unless
 * it has just left out what came before.
 */
function showsHistory(shown: Shown, { hintsAtTalk = false }: Seeker, match?: Match): boolean {
  if (shown.end === 0) return false;
  return !isStep(shown) || (!hintsAtTalk && match?.isTail !== true);
}
