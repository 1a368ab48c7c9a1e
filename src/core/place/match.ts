/** Finds the thread of a session that a caller's own account of the conversation belongs to. */
import type { Chain } from "./chain.ts";
import { type Item, isRemoved, isSteering } from "../item.ts";
import type { History } from "../ports.ts";
import type { Session, SessionStore } from "../store.ts";
import { type Beginning, findKnown } from "./known.ts";
import { hasBeside, hasGap, itemsOf, noPath, type Path, rootOf, talkFrom, turnsOf } from "./path.ts";
import { isWord, type Run, sideOf, toRuns } from "./runs.ts";

/** A request's items, told apart: what was said before, and what is new. */
export interface Shown {
  readonly items: readonly Item[];
  /** Where the model's last word ends among them; 0: the caller shows no history. */
  readonly end: number;
}

export function readShown(items: readonly Item[]): Shown {
  const last = items.findLastIndex((item) => sideOf(item) === "model" && isWord(item));
  if (last === -1) return { items, end: 0 };
  // Blank words behind it belong to the same run.
  let end = last + 1;
  for (const [index, item] of items.slice(end).entries()) {
    const side = sideOf(item);
    if (side === "model") end = last + index + 2;
    else if (side !== undefined) break;
  }
  return { items, end };
}

/**
 * It shows no more than the turn that it goes on with, step by step: nothing is asked right behind words of the model. What is
 * said behind a tool's output is still of that turn.
 */
export function isStep({ items, end }: Shown): boolean {
  if (end === 0) return false;
  let last: Run["side"] | undefined;
  for (const item of items) {
    const side = sideOf(item);
    if (side === "caller" && last === "model") return false;
    last = side ?? last;
  }
  return true;
}

/** The runs up to the model's last word. */
function historyOf({ items, end }: Shown): readonly Run[] {
  return toRuns(items.slice(0, end));
}

export interface Match {
  readonly history: History;
  readonly path: Path;
  /** What the model sees in place of a path with gaps: the caller's own account of it. */
  readonly instead?: readonly Item[] | undefined;
  /** The request is word for word what is remembered, and what is new: the model may see just that. */
  readonly isVerbatim?: boolean | undefined;
  /** The caller's own account of the path, where it or the path has something beside the words. */
  readonly account?: readonly Item[] | undefined;
  /** Only the end of the path was shown. */
  readonly isTail?: boolean | undefined;
  /** What was shown and is not kept yet. */
  readonly base: readonly Item[];
  /** What is new, and the system messages of the request. */
  readonly input: readonly Item[];
}

/**
 * A thread that has all of the shown history, from its root or, for callers that show only the end, as its end; then the
 * longest beginning that a turn ends with. Otherwise the caller's account stands for itself.
 */
export async function matchHistory(store: SessionStore, chain: Chain, session: Session, shown: Shown): Promise<Match> {
  const step = await matchStep(store, session, shown);
  if (step !== undefined) return step;
  const fromRoot = await matchFromRoot(store, chain, session, shown);
  if (fromRoot?.isWhole === true) return fromRoot;
  const tail = await matchTail(store, chain, session, shown);
  return tail ?? fromRoot ?? { history: "foreign", path: noPath, ...divide(shown, 0) };
}

/**
 * The next step of the session's newest turn: it names its calls, as nobody does by chance, so its words need no second look.
 * Where callers show their history, all that they show is all that they know of.
 */
async function matchStep(store: SessionStore, session: Session, shown: Shown): Promise<Match | undefined> {
  if (session.resends || session.tip === undefined || !isStep(shown)) return undefined;
  const path = await store.readPath(session.tip);
  return namesCall(shown, path) ? matchEnd(shown, path, "matched") : undefined;
}

/** The shown items are the end of a path, or all of it, or all that is left of it. */
function matchEnd(shown: Shown, path: Path, history: History): Match {
  // Who names our calls has given them no names of its own.
  const named = namesCall(shown, path) ? shown : withOwnIds(shown, shown.end, path);
  const isTail = toRuns(talkFrom(path, 0)).length > historyOf(shown).length;
  const isAllThatIsLeft = path.isAbridged && !isTail;
  const parts = isAllThatIsLeft ? accountOf(named, shown.end) : divide(named, shown.end);
  return { history, path, isTail, account: isAllThatIsLeft ? undefined : besideOf(named, shown.end, path), ...parts };
}

async function matchFromRoot(
  store: SessionStore,
  chain: Chain,
  session: Session,
  shown: Shown,
): Promise<(Match & { readonly isWhole: boolean }) | undefined> {
  const current = session.tip === undefined ? undefined : await store.recallPath(session.tip);
  const known = current && findKnown(shown, current);
  const found = known && (await meet(store, chain, session.id, shown, known, current));
  // What is known may have been deleted in the meantime.
  return found ?? meet(store, chain, session.id, shown, { length: 0, digest: session.id, start: undefined });
}

/** Looks for the longest beginning that a turn of the session ends with, none shorter than what is known. */
async function meet(
  store: SessionStore,
  chain: Chain,
  sessionId: string,
  shown: Shown,
  known: Beginning,
  current?: Path,
): Promise<(Match & { readonly isWhole: boolean }) | undefined> {
  const runs = runsBehind(shown, known.length);
  const digests = chain.follow(known.digest, runs);
  // A turn ends with a word of the model, so only there can a thread be met; the longest beginning comes first.
  const ends = runs
    .map(({ side, end }, index) => ({ side, length: end, digest: digests[index] ?? "" }))
    .filter(({ side }) => side === "model")
    .toReversed();
  const candidates: readonly Pick<Beginning, "length" | "digest">[] = known.length === 0 ? ends : [...ends, known];
  const found = await store.findByDigest(
    sessionId,
    candidates.map(({ digest }) => digest),
  );
  if (found === undefined) return undefined;
  const end = candidates[found.index]?.length ?? 0;
  const isWhole = found.index === 0;
  const history = isWhole && !found.hasChildren ? "matched" : "forked";
  const path = found.id === current?.tip?.id ? current : await store.readPath(found.id);
  const named = withOwnIds(shown, end, path);
  if (path.isAbridged) return { isWhole, history, path, ...accountOf(named, end) };
  const isVerbatim = path === current && known.length === shown.end && isPlain(shown, known, path);
  const account = isVerbatim ? undefined : besideOf(named, end, path);
  return { isWhole, history, path, isVerbatim, account, ...divide(named, end, known) };
}

/** Most accounts are words alone, so they are worth no more than a glance. */
function besideOf({ items }: Shown, end: number, path: Path): Match["account"] {
  if (path.hasBeside) return items.slice(0, end);
  for (let index = 0; index < end; index += 1) {
    const item = items[index];
    if (item !== undefined && hasBeside(item) && !isSteering(item)) return items.slice(0, end);
  }
  return undefined;
}

/** Instructions stand in front, if there are any, and then there are words alone; and the path has nothing else either. */
function isPlain({ items, end }: Shown, { start }: Beginning, path: Path): boolean {
  if (start === undefined || !path.isPlain) return false;
  return items.slice(0, start).every(isSteering) && items.slice(end).every(isTalk);
}

function isTalk(item: Item): boolean {
  return item.type === "message" && !isSteering(item);
}

/** The runs of the history behind its beginning. */
function runsBehind({ items, end }: Shown, beginning: number): readonly Run[] {
  // The calls that come before are needed too, as outputs have their order from them.
  let start = beginning;
  for (let item = items[start - 1]; item !== undefined; item = items[start - 1]) {
    const side = sideOf(item);
    if (side !== "model" && side !== undefined) break;
    start -= 1;
  }
  return toRuns(items.slice(start, end)).flatMap((run) =>
    run.end > beginning - start ? [{ ...run, end: run.end + start }] : [],
  );
}

/** One exchange could be another conversation too, which was taken for the next message of this one; two cannot. */
const sureExchanges = 2;

async function matchTail(
  store: SessionStore,
  chain: Chain,
  session: Session,
  shown: Shown,
): Promise<Match | undefined> {
  const history = historyOf(shown);
  const candidates = await findCandidates(store, chain, session, history);
  if (candidates.length === 0) return undefined;
  const paths = await Promise.all(candidates.map((id) => store.readPath(id)));
  const alike = paths.filter((path) => endsAlike(path, history));
  const called = session.resends ? [] : alike.filter((path) => namesCall(shown, path));
  const exchanges = history.filter((run) => run.side === "model").length;
  const isSure = called.length > 0 || exchanges >= sureExchanges || (await hasOneThread(store, session));
  if (!isSure) return undefined;
  const matching = called.length > 0 ? called : alike;
  const [path] = matching;
  // The same words at the end of two conversations tell nothing.
  if (path === undefined || matching.some((other) => rootOf(other)?.id !== rootOf(path)?.id)) return undefined;
  const found = await store.findByDigest(session.id, [path.tip?.digest ?? ""]);
  return matchEnd(shown, path, found?.hasChildren === true ? "forked" : "matched");
}

/**
 * Where nobody has shown a history yet, the first messages of several conversations may stand in one line, each taken for
 * the next of the one before it; and once one of them has parted from the others, there are two threads.
 */
async function hasOneThread(store: SessionStore, { id, resends }: Session): Promise<boolean> {
  return resends && (await store.countThreads(id)) === 1;
}

/** The last words that are shown of the model hold calls, and all of these are of the newest turn. */
function namesCall({ items, end }: Shown, { tip }: Path): boolean {
  const ours = callIdsOf(tip?.output ?? []);
  const shown: string[] = [];
  for (let index = end - 1; index >= 0; index -= 1) {
    const item = items[index];
    const side = item && sideOf(item);
    if (side !== undefined && side !== "model") break;
    if (item?.type === "tool-call") shown.push(item.callId);
  }
  return shown.length > 0 && shown.every((callId) => ours.includes(callId));
}

/** An answer without what it answers can only be the newest one. */
async function findCandidates(
  store: SessionStore,
  chain: Chain,
  session: Session,
  history: readonly Run[],
): Promise<readonly string[]> {
  const exchange = chain.exchangeOf(session.id, history);
  if (exchange !== undefined) return store.findByExchange(session.id, exchange);
  return session.tip === undefined ? [] : [session.tip];
}

/** Calls go by our ids, though the caller may have given them others: the n-th from the end is the same. */
function withOwnIds(shown: Shown, end: number, path: Path): Shown {
  if (!path.hasCalls) return shown;
  // Behind a gap they can no longer be counted, but those that may still be answered are the newest.
  const known = hasGap(path) ? itemsOf(turnsOf(path).slice(-1)) : talkFrom(path, 0);
  const ours = known.some(isRemoved) ? [] : callIdsOf(known);
  const theirs = callIdsOf(shown.items.slice(0, end)).slice(-ours.length);
  // A caller may use an id again; then the newest call with it is meant.
  const names = new Map(theirs.map((callId, index) => [callId, ours.at(index - theirs.length) ?? callId]));
  if ([...names].every(([callId, name]) => callId === name)) return shown;
  const items = shown.items.map((item) =>
    item.type === "tool-output" || item.type === "tool-call"
      ? { ...item, callId: names.get(item.callId) ?? item.callId }
      : item,
  );
  return { ...shown, items };
}

function callIdsOf(items: readonly Item[]): readonly string[] {
  const callIds: string[] = [];
  for (const item of items) if (item.type === "tool-call") callIds.push(item.callId);
  return callIds;
}

/** What is shown is the end of the thread; or all that is left of the thread, where it has lost its beginning. */
function endsAlike(path: Path, shown: readonly Run[]): boolean {
  const runs = toRuns(talkFrom(path, 0));
  if (runs.length <= shown.length && rootOf(path)?.gap !== true) return false;
  const common = Math.min(runs.length, shown.length);
  const tail = shown.slice(-common);
  return runs.slice(-common).every(({ side, canon }, index) => {
    const theirs = tail[index];
    if (side !== theirs?.side) return false;
    return (
      canon === theirs.canon || (index === 0 && side === "tools" && inAnyOrder(canon) === inAnyOrder(theirs.canon))
    );
  });
}

/** Outputs whose calls are out of sight, for one side at least, have no order that both know. */
function inAnyOrder(canon: string): string {
  const [said, calls, told] = JSON.parse(canon) as [string, readonly string[], readonly string[]];
  return JSON.stringify([said, calls, told.toSorted()]);
}

/** The caller's own account in place of a path that has lost something. */
function accountOf(shown: Shown, end: number): Pick<Match, "instead" | "base" | "input"> {
  const instead = shown.items.slice(0, end).filter((item) => !isSteering(item));
  return { instead, ...divide(shown, end) };
}

/**
 * `known` items stand in a path already. System messages are never part of a history: they are the request's own. In a pure
 * `beginning` they need not be looked for.
 */
export function divide({ items, end }: Shown, known: number, beginning?: Beginning): Pick<Match, "base" | "input"> {
  const { start, length } = beginning?.start === undefined ? { start: 0, length: 0 } : beginning;
  const aside = items.slice(0, start).concat(items.slice(length, end));
  return {
    base: items.slice(known, end).filter((item) => !isSteering(item)),
    input: aside.filter(isSteering).concat(items.slice(end)),
  };
}
