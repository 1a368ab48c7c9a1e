/** Finds the thread that ends with what a caller shows: the next step of its newest turn, or the end of a longer history. */
import { namesCall, newestCalls } from "./calls.ts";
import type { Chain } from "./chain.ts";
import { exchangeIds, exchangeOf, type Item } from "../item.ts";
import { joinCalls } from "./joined-calls.ts";
import { withoutLostAnswer } from "./lost-answer.ts";
import type { History } from "../ports.ts";
import type { Session, SessionStore, Twin } from "../store.ts";
import type { Match, CallerHabits } from "./match.ts";
import { itemsOf, type Path, rootOf, talkFrom, turnsOf } from "./path.ts";
import { canonOfExchange, isBlank, isWord, questionsOf, type Run, sideOf, toRuns, toSegments } from "./runs.ts";
import { divide, hasBeginning, isOneTurn, isStep, type Shown, skipReasoning, versionOf, withOwnIds } from "./shown.ts";

/**
 * The next step of the session's newest turn: it names that turn's calls, which nobody does by chance, so its words
 * need no check. Where callers show their history, what they show is all they know.
 */
export async function matchStep(store: SessionStore, session: Session, shown: Shown): Promise<Match | undefined> {
  if (session.resends || session.tip === undefined || !isStep(shown)) return undefined;
  const thread = await store.readPath(session.tip);
  const inputAfter = (path: Path) => stepAfter(path, shown)?.input;
  return stepAfter(await withoutLostAnswer(store, shown.items, thread, { inputAfter }), shown);
}

function stepAfter(path: Path, shown: Shown): Match | undefined {
  if (!namesCall(shown, path) || !hasBeginning(path, shown)) return undefined;
  const step = joinCalls(shown, path);
  if (differsInWording(step, path)) return undefined;
  // With what it may have inserted, a step can be as long as a path that begins before it.
  const match = matchEnd(step, path, "matched", !isOneTurn(withoutBlankAnswers(talkFrom(path, 0))));
  return match.version?.use === "instead" ? match : { ...match, input: withoutServed(match.input, path) };
}

/** Behind a call that the caller runs, the answer may have what the model's server ran itself: the path has its output. */
function withoutServed(input: readonly Item[], { tip }: Path): readonly Item[] {
  const served = exchangeIds(tip?.output ?? [], "tools");
  return served.size === 0 ? input : input.filter((item) => !served.has(exchangeOf(item)?.id ?? ""));
}

/**
 * Nothing was said before the very first turn, so a caller that shows its steps shows everything, and may have
 * shortened some: it asks something else, or gives another output for an older call. What the model's server ran itself
 * was not given by a caller, and few clients repeat all of its fields.
 */
function differsInWording(shown: Shown, path: Path): boolean {
  const talk = talkFrom(path, 0);
  if (path.isAbridged || !isOneTurn(talk)) return false;
  const asked = new Set(questionsOf(talk));
  if (questionsOf(shown.items.slice(0, shown.end)).some((question) => !asked.has(question))) return true;
  const given = new Map<string, Set<string>>();
  for (const [id, output] of outputsOf(turnsOf(path).flatMap(({ input }) => input)))
    given.set(id, (given.get(id) ?? new Set()).add(output));
  const { open } = newestCalls(path);
  // The newest calls may have the ids of older ones.
  const late = outputsOf(shown.items.slice(shown.end)).filter(([id]) => !open.has(id));
  const told = outputsOf(shown.items.slice(0, shown.end)).concat(late);
  return told.some(([id, output]) => given.get(id)?.has(output) === false);
}

/** Each by the id of its call. */
function outputsOf(items: readonly Item[]): readonly (readonly [id: string, output: string])[] {
  return items.flatMap((item) => (sideOf(item) === "tools" ? [canonOfExchange(item)] : []));
}

/** The shown items are the end of a path, or all of it, or all that is left of it. */
function matchEnd(shown: Shown, path: Path, history: History, isOnlyTail = false): Match {
  // A caller that names our calls has not renamed them.
  const named = namesCall(shown, path) ? shown : withOwnIds(shown, shown.end, path);
  const count = countRuns(shown.items.slice(0, shown.end));
  const isTail = isOnlyTail || countRuns(lastOf(path, count)) > count;
  const end = skipReasoning(shown.items, shown.end, path);
  return { history, path, isTail, version: versionOf(named, end, path, isTail), ...divide(named, end) };
}

function countRuns(items: readonly Item[]): number {
  return toSegments([...withoutBlankAnswers(items)]).length;
}

/** Some callers show answers without words, and some do not. */
function withoutBlankAnswers(items: readonly Item[]): Iterable<Item> {
  return items.values().filter((item) => !isBlank(item));
}

export async function matchTail(
  store: SessionStore,
  chain: Chain,
  session: Session,
  shown: Shown,
  { isOneTalk, showAll }: CallerHabits,
): Promise<Match | undefined> {
  const history = toRuns(shown.items.slice(0, shown.end));
  const candidates = await findCandidates(store, chain, session, history);
  if (candidates.length === 0) return undefined;
  const read = await Promise.all(
    candidates.map(async ({ id, hasChildren }) => ({ hasChildren, path: await store.readPath(id) })),
  );
  const alike = read.filter(
    ({ path }) => endsAlike(path, history, showAll) && hasBeginning(path, shown) && !beginsAnew(path, history),
  );
  const called = session.resends ? [] : alike.filter(({ path }) => namesCall(shown, path));
  const matching = called.length > 0 ? called : alike;
  const [newest] = matching;
  // If two conversations end alike, neither is identified.
  if (newest === undefined || matching.some(({ path }) => rootOf(path)?.id !== rootOf(newest.path)?.id))
    return undefined;
  // Of turns that end the same words, one that nothing follows: it can be continued without a branch.
  const same = matching.filter(({ path }) => path.tip?.digest === newest.path.tip?.digest);
  const { path, hasChildren } = same.find((twin) => !twin.hasChildren) ?? newest;
  const match = matchEnd(shown, path, hasChildren ? "forked" : "matched");
  // Answers that were lost, or given again, are other threads of one conversation.
  const isNewest = isOneTalk && alike.some((each) => each.path.tip?.id === session.tip);
  const isSure = called.length > 0 || isNewest || !mayBeAnother(shown, history, match);
  return isSure || (await hasOneThread(store, session, isOneTalk)) ? match : undefined;
}

/** The first turn of another conversation may have been mistaken for this one's next; two turns could not be. */
function mayBeAnother({ items, end }: Shown, history: readonly Run[], { isTail = false }: Match): boolean {
  if (history.filter(({ side }) => side === "model").length < 2) return true;
  return isTail && history[0]?.side === "caller" && isOneTurn(items.slice(0, end));
}

/**
 * As long as nobody has shown a history, the first messages of several conversations may form one thread, each mistaken
 * for the next of the one before, unless the session is one conversation; once one has branched off, there are two
 * threads.
 */
async function hasOneThread(store: SessionStore, { id, resends }: Session, isOneTalk: boolean): Promise<boolean> {
  return (resends || isOneTalk) && (await store.countThreads(id)) === 1;
}

/** An answer without its question can only be the newest one. */
async function findCandidates(
  store: SessionStore,
  chain: Chain,
  session: Session,
  history: readonly Run[],
): Promise<readonly Twin[]> {
  const exchange = chain.exchangeOf(session.id, history);
  if (exchange !== undefined) return (await store.findTwins(session.id, "exchange", [exchange]))?.twins ?? [];
  const tip = session.tip === undefined ? undefined : (await store.readPath(session.tip)).tip;
  if (tip === undefined) return [];
  const found = await store.findTwins(session.id, "digest", [tip.digest ?? ""]);
  return [found?.twins.find(({ id }) => id === tip.id) ?? { id: tip.id, hasChildren: false }];
}

/**
 * What is shown is the end of the thread, or all that is left of one that lost its beginning. Callers that show all
 * show no mere end.
 */
function endsAlike(path: Path, shown: readonly Run[], showsAll: boolean): boolean {
  const runs = toRuns(lastOf(path, shown.length));
  const isEnd = runs.length > shown.length;
  if (isEnd ? showsAll : rootOf(path)?.gap !== true) return false;
  const common = Math.min(runs.length, shown.length);
  const tail = shown.slice(-common);
  return runs.slice(-common).every(({ side, canon }, index) => {
    const theirs = tail[index];
    if (side !== theirs?.side) return false;
    return canon === theirs.canon || (index === 0 && inAnyOrder(canon) === inAnyOrder(theirs.canon));
  });
}

/**
 * All that the path has before what is shown are other answers to its first question, which was asked again: the caller
 * shows everything from there on, since it has not got the first answer, or has dropped it.
 */
function beginsAnew(path: Path, history: readonly Run[]): boolean {
  const [question] = history;
  const root = rootOf(path);
  // Most threads begin differently, and may be long.
  if (question?.side !== "caller" || root === undefined || questionsOf(root.input)[0] !== question.canon) return false;
  const turns = turnsOf(path);
  // Turns without a question are steps of the one before; one that was shown may have several.
  const next = turns.findIndex(({ input }) => questionsOf(input).some((asked) => asked !== question.canon));
  const again = turns.slice(0, next === -1 ? turns.length : next);
  const last = again.findLastIndex(({ input }) => questionsOf(input).length > 0);
  return last > 0 && toRuns(itemsOf(turns.slice(last))).length === history.length;
}

/**
 * The end of a path, with more than this many whole runs, or all of it: a thread may be much longer than what is shown.
 * A question after a wordless answer is a second one, not part of the first.
 */
function lastOf(path: Path, runs: number): readonly Item[] {
  const items: Item[] = [];
  let changes = 0;
  let last: Run["side"] | undefined;
  for (const { input, output } of turnsOf(path).toReversed()) {
    for (const item of input.concat(output.some(isWord) ? output : blank).toReversed()) {
      items.push(item);
      const side = sideOf(item);
      if (side === undefined || side === last || !isWord(item)) continue;
      last = side;
      changes += 1;
      // The first run may extend further back, and the calls in it order the outputs of the next.
      if (changes > runs + 1) return items.toReversed();
    }
  }
  return items.toReversed();
}

const blank: readonly Item[] = [{ type: "message", role: "assistant", content: "" }];

/** Outputs whose calls at least one side cannot see have no common order. */
function inAnyOrder(canon: string): string {
  const [said, calls, told] = JSON.parse(canon) as [string, readonly string[], readonly string[]];
  return JSON.stringify([said, calls, told.toSorted()]);
}
