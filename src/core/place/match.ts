/** Finds the thread of a session that a caller's own version of the conversation belongs to. */
import { repeatsCalls } from "./calls.ts";
import type { Chain } from "./chain.ts";
import { matchStep, matchTail } from "./ending.ts";
import { type Item, isSteering } from "../item.ts";
import type { History } from "../ports.ts";
import { maxTwins, type Session, type SessionStore, type Twin } from "../store.ts";
import { findKnown, type Known } from "./known.ts";
import { noPath, type Path } from "./path.ts";
import { isBlank, type Run, sideOf, toRuns } from "./runs.ts";
import {
  divide,
  findAnswer,
  hasBeginning,
  type Shown,
  skipReasoning,
  steeringOf,
  versionOf,
  withOwnIds,
} from "./shown.ts";
import { isSameSteering } from "./steering.ts";
import type { Threads } from "./threads.ts";

export interface Match {
  readonly history: History;
  readonly path: Path;
  /** What the model sees of the caller's own version of the path; absent: nothing, since the path says the same. */
  readonly version?: CallerVersion | undefined;
  /** Only the end of the path was shown. */
  readonly isTail?: boolean | undefined;
  /** What was shown and is not kept yet. */
  readonly base: readonly Item[];
  /** What is new, and the system messages of the request. */
  readonly input: readonly Item[];
}

export type CallerVersion =
  /** The request as it is: word for word what is remembered, then what is new. */
  | { readonly use: "verbatim" }
  /** This in place of the path, which has lost something. */
  | { readonly use: "instead"; readonly items: readonly Item[] }
  /** The words of the path, with what this and the path have beside them. */
  | { readonly use: "merged"; readonly items: readonly Item[] };

export interface MatchParts {
  readonly store: SessionStore;
  readonly chain: Chain;
  readonly threads: Threads;
}

/** What is known of a session's callers. */
export interface CallerHabits {
  /** The session's hint names one conversation. */
  readonly isOneTalk: boolean;
  /** They show all that was said, never only its end. */
  readonly showAll: boolean;
}

/**
 * A thread that has all of the shown history, from its root or, for callers that show only the end, as its end; then
 * the longest beginning that a turn ends with. Otherwise the caller's version stands alone.
 */
export async function matchHistory(
  parts: MatchParts,
  session: Session,
  shown: Shown,
  habits: CallerHabits,
): Promise<Match> {
  const { store, chain } = parts;
  const step = await matchStep(store, session, shown);
  if (step !== undefined && repeatsCalls(shown, step.path)) return step;
  const fromRoot = await matchFromRoot(parts, session, shown);
  if (fromRoot?.isWhole === true) return fromRoot;
  const tail = await matchTail(store, chain, session, shown, habits);
  // A caller may write the newest calls differently; but some models use the same ids in every conversation.
  return tail ?? step ?? fromRoot ?? foreign(shown);
}

/** Nothing of it is known. */
function foreign(shown: Shown): Match {
  return { history: "foreign", path: noPath, ...divide(shown, 0) };
}

/** `isWhole`: nothing else can match better. */
type FromRoot = Match & { readonly isWhole: boolean };

async function matchFromRoot(parts: MatchParts, session: Session, shown: Shown): Promise<FromRoot | undefined> {
  const { store, threads } = parts;
  const likely = await findLikely(store, threads.likelyTips(session, shown), shown);
  const unknown = { path: noPath, known: { length: 0, digest: session.id, start: undefined } };
  const found =
    (likely && (await meet(parts, session.id, shown, likely))) ??
    // What is known may have been deleted meanwhile.
    (await meet(parts, session.id, shown, unknown));
  if (found !== undefined) threads.add(shown, found.path);
  return found;
}

/** A thread that a request probably continues, and how much of the shown history it has. */
interface Likely {
  readonly path: Path;
  readonly known: Known;
}

/** Of the threads with these tips, the one that has most of what is shown. */
async function findLikely(store: SessionStore, tips: Iterable<string>, shown: Shown): Promise<Likely | undefined> {
  let likely: Likely | undefined;
  for (const tip of tips) {
    const path = await store.recallPath(tip);
    if (path === undefined) continue;
    const known = findKnown(shown, path);
    if (known !== undefined && known.length > (likely?.known.length ?? 0)) likely = { path, known };
    if (known?.length === shown.end) break;
  }
  return likely;
}

/** Looks for the longest beginning that a turn of the session ends with, no shorter than what is known. */
async function meet(
  { store, chain }: MatchParts,
  sessionId: string,
  shown: Shown,
  { known, path: likely }: Likely,
): Promise<FromRoot | undefined> {
  const runs = runsBehind(shown, known.length);
  const followed = chain.follow(known.digest, runs);
  // A turn ends with a word of the model, so a thread can be met only there, or where the history ends, even with a
  // blank word; the longest beginning comes first.
  const ends = runs
    .map(({ side, end }, index) => ({ side, length: end, digest: followed[index] ?? "" }))
    .filter(({ side }, index) => side === "model" || index === runs.length - 1)
    .toReversed();
  const candidates: readonly Pick<Known, "length" | "digest">[] = known.length === 0 ? ends : [...ends, known];
  const digests = candidates.map(({ digest }) => digest);
  const found = await store.findTwins(sessionId, "digest", digests);
  if (found === undefined) return undefined;
  const { twins } = found;
  // One that nothing follows can be continued without a branch.
  const preferred = twins.find(({ hasChildren }) => !hasChildren) ?? twins[0];
  const foundEnd = candidates[found.index]?.length ?? 0;
  const isWhole = found.index === 0;
  const first = preferred.id === likely.tip?.id ? likely : await store.readPath(preferred.id);
  // It may have been deleted meanwhile.
  if (first.tip?.id !== preferred.id) return undefined;
  const twin = await chooseTwin(store, shown, steeringOf(shown, known), twins, { ...preferred, path: first });
  if (twin === undefined && !hasBeginning(first, shown)) return undefined;
  // Nothing else matches better: as the end of another conversation it would get that one's instructions.
  if (twin === undefined) return { isWhole: true, ...foreign(shown) };
  const { path } = twin;
  const end = skipReasoning(shown.items, skipBlank(shown, foundEnd, path), path);
  const history = isWhole && !twin.hasChildren ? "matched" : "forked";
  const named = withOwnIds(shown, end, path);
  // What the model sees must not depend on which path was cached.
  const same = path === likely ? known : findKnown(shown, path);
  const isVerbatim = !path.isAbridged && same?.length === shown.end && isPlain(shown, same, path);
  const version = isVerbatim ? verbatim : versionOf(named, end, path, false);
  return { isWhole, history, path, version, ...divide(named, end, known) };
}

const verbatim: CallerVersion = { use: "verbatim" };

/** No digest covers blank answers, so a path may already end with those that are shown next, and their reasoning. */
function skipBlank({ items, end }: Shown, start: number, { talkLength, track: { talk } }: Path): number {
  let next = start;
  let ours = talkLength - 1;
  for (let theirs = start; theirs < end; theirs += 1) {
    if (isUnsaid(items[theirs])) continue;
    while (isUnsaid(talk[ours])) ours -= 1;
    if (!isBlank(items[theirs]) || !isBlank(talk[ours])) break;
    next = theirs + 1;
    ours -= 1;
  }
  return next;
}

function isUnsaid(item: Item | undefined): boolean {
  return item !== undefined && sideOf(item) === undefined;
}

interface ReadTwin extends Pick<Twin, "hasChildren"> {
  readonly path: Path;
}

/**
 * Conversations that are word for word the same may differ only in their instructions: the caller's own is the one
 * whose instructions it shows. A caller that shows none must not get another's; if it is unclear whose they are, it
 * gets none.
 */
async function chooseTwin(
  store: SessionStore,
  shown: Shown,
  own: readonly Item[],
  twins: readonly Twin[],
  preferred: ReadTwin,
): Promise<ReadTwin | undefined> {
  const { steering } = preferred.path;
  const isPossible = hasBeginning(preferred.path, shown);
  if (isPossible && isSameSteering(steering, own)) return preferred;
  let best: ReadTwin | undefined;
  // Beyond these, the others' instructions are unknown.
  let isClear = twins.length < maxTwins;
  for (const { id, hasChildren } of twins) {
    const path = await store.readPath(id);
    if (path.tip?.id !== id || !hasBeginning(path, shown)) continue;
    if (!isSameSteering(path.steering, steering)) isClear = false;
    if (!isSameSteering(path.steering, own)) continue;
    if (!hasChildren) return { hasChildren, path };
    best ??= { hasChildren, path };
  }
  return best ?? (isPossible && (own.length > 0 || isClear) ? preferred : undefined);
}

/** Instructions come first, if any, then words alone; and the path has nothing else either. */
function isPlain({ items, end }: Shown, { start }: Known, path: Path): boolean {
  if (start === undefined || !path.isPlain) return false;
  return items.slice(0, start).every(isSteering) && items.slice(end).every(isTalk);
}

function isTalk(item: Item): boolean {
  return item.type === "message" && !isSteering(item);
}

/** The runs of the history after its beginning. */
function runsBehind({ items, end }: Shown, beginning: number): readonly Run[] {
  // The calls before it are needed too, since they order the outputs.
  const start = findAnswer(items, beginning);
  return toRuns(items.slice(start, end)).flatMap((run) =>
    run.end > beginning - start ? [{ ...run, end: run.end + start }] : [],
  );
}
