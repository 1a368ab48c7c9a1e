/** Finds the thread of a session that a caller's own account of the conversation belongs to. */
import { type Chain, itemsOf } from "./chain.ts";
import { type Item, isRemoved, isSteering } from "../item.ts";
import type { History } from "../ports.ts";
import type { Session, SessionStore, StoredTurn } from "../store.ts";
import { type Run, toRuns } from "./runs.ts";

/** A request's items, told apart: what was said before, and what is new. */
export interface Shown {
  readonly items: readonly Item[];
  /** The runs up to the model's last word; none: the caller shows no history. */
  readonly history: readonly Run[];
}

export function readShown(items: readonly Item[]): Shown {
  const runs = toRuns(items);
  return { items, history: runs.slice(0, runs.findLastIndex((run) => run.side === "model") + 1) };
}

export interface Match {
  readonly history: History;
  readonly path: readonly StoredTurn[];
  /** What the model sees in place of a path with gaps: the caller's own account of it. */
  readonly instead?: readonly Item[] | undefined;
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
  const fromRoot = await matchFromRoot(store, chain, session.id, shown);
  if (fromRoot?.isWhole === true) return fromRoot;
  const tail = await matchTail(store, chain, session, shown);
  return tail ?? fromRoot ?? { history: "foreign", path: [], ...divide(shown, 0) };
}

async function matchFromRoot(
  store: SessionStore,
  chain: Chain,
  sessionId: string,
  shown: Shown,
): Promise<(Match & { readonly isWhole: boolean }) | undefined> {
  const digests = chain.follow(sessionId, shown.history);
  // A turn ends with a word of the model, so only there can a thread be met; the longest beginning comes first.
  const ends = shown.history.flatMap((run, index) => (run.side === "model" ? [index] : [])).toReversed();
  const found = await store.findByDigest(
    sessionId,
    ends.map((index) => digests[index] ?? ""),
  );
  if (found === undefined) return undefined;
  const end = shown.history[ends[found.index] ?? 0]?.end ?? 0;
  const isWhole = found.index === 0;
  const history = isWhole && !found.hasChildren ? "matched" : "forked";
  const path = await store.readPath(found.id);
  const named = withOwnIds(shown, end, path);
  return { isWhole, history, path, ...(path.some(isAbridged) ? accountOf(named, end) : divide(named, end)) };
}

/** The path is no longer all that was said: something was deleted, or made short. */
function isAbridged({ gap, output }: StoredTurn): boolean {
  return gap === true || output.some((item) => item.type === "compaction");
}

/** One exchange could have been said in another conversation too; with several in a session it takes two to be sure. */
const sureExchanges = 2;

async function matchTail(
  store: SessionStore,
  chain: Chain,
  session: Session,
  shown: Shown,
): Promise<Match | undefined> {
  const candidates = await findCandidates(store, chain, session, shown);
  if (candidates.length === 0) return undefined;
  const exchanges = shown.history.filter((run) => run.side === "model").length;
  if (exchanges < sureExchanges && (await store.countRoots(session.id)) > 1) return undefined;
  const paths = await Promise.all(candidates.map((id) => store.readPath(id)));
  const matching = paths.filter((path) => endsAlike(path, shown.history));
  const [path] = matching;
  // The same words at the end of two conversations tell nothing.
  if (path === undefined || matching.some((other) => other[0]?.id !== path[0]?.id)) return undefined;
  const found = await store.findByDigest(session.id, [path.at(-1)?.digest ?? ""]);
  const history = found?.hasChildren === true ? "forked" : "matched";
  const end = shown.history.at(-1)?.end ?? 0;
  const named = withOwnIds(shown, end, path);
  const isAllThatIsLeft = toRuns(itemsOf(path)).length <= shown.history.length;
  return { history, path, ...(isAllThatIsLeft ? accountOf(named, end) : divide(named, end)) };
}

/** An answer without what it answers can only be the newest one. */
async function findCandidates(
  store: SessionStore,
  chain: Chain,
  session: Session,
  shown: Shown,
): Promise<readonly string[]> {
  const exchange = chain.exchangeOf(session.id, shown.history);
  if (exchange !== undefined) return store.findByExchange(session.id, exchange);
  return session.tip === undefined ? [] : [session.tip];
}

/** Calls go by our ids, though the caller may have given them others: the n-th from the end is the same. */
function withOwnIds(shown: Shown, end: number, path: readonly StoredTurn[]): Shown {
  // Behind a gap they can no longer be counted, but those that may still be answered are the newest.
  const known = itemsOf(path.some(({ gap }) => gap) ? path.slice(-1) : path);
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
  return items.flatMap((item) => (item.type === "tool-call" ? [item.callId] : []));
}

/** What is shown is the end of the thread; or all that is left of the thread, where it has lost its beginning. */
function endsAlike(path: readonly StoredTurn[], shown: readonly Run[]): boolean {
  const runs = toRuns(itemsOf(path));
  if (runs.length <= shown.length && path[0]?.gap !== true) return false;
  const common = Math.min(runs.length, shown.length);
  const tail = shown.slice(-common);
  return runs
    .slice(-common)
    .every(({ side, canon }, index) => side === tail[index]?.side && canon === tail[index].canon);
}

/** The caller's own account in place of a path that has lost something. */
function accountOf(shown: Shown, end: number): Pick<Match, "instead" | "base" | "input"> {
  const instead = shown.items.slice(0, end).filter((item) => !isSteering(item));
  return { instead, ...divide(shown, end) };
}

/** `known` items stand in a path already. System messages are never part of a history: they are the request's own. */
export function divide({ items, history }: Shown, known: number): Pick<Match, "base" | "input"> {
  const shown = history.at(-1)?.end ?? 0;
  return {
    base: items.slice(known, shown).filter((item) => !isSteering(item)),
    input: [...items.slice(0, shown).filter(isSteering), ...items.slice(shown)],
  };
}
