/** The reference for sessions: plain lists of content, and what the rule says about the next request. */
import { isDeepStrictEqual } from "node:util";
import { isSteering, type Content, type Item } from "../../src/core/item.ts";
import type { History } from "../../src/core/ports.ts";

/** What the rule says about one request. */
export interface Expectation {
  readonly history: History;
  /** Everything that the model must see, without reasoning and system messages. */
  readonly seen: readonly Item[];
  readonly system: readonly string[];
  /** The stored turn that the request continues. */
  readonly after: Said | undefined;
  /** What precedes everything that is not stored yet. */
  readonly before: readonly Item[];
  /** What the client showed and the gateway does not know. */
  readonly unknown: readonly Item[];
  readonly fresh: readonly Item[];
  /** The client omitted what came before. */
  readonly isTail: boolean;
}

/** One stored turn, or a part of a history that a client brought. */
export interface Said {
  /** Its id; undefined for what a client brought. */
  readonly turnId: string | undefined;
  /** The turn that brought it, if it is not a turn itself. */
  readonly broughtBy: string | undefined;
  after: Said | undefined;
  readonly items: readonly Item[];
  /** Of the thread from its root to here, as it was written: including what was deleted since. */
  readonly script: readonly string[];
  /** Of itself only. */
  readonly lines: readonly string[];
  readonly system: readonly string[];
  /** What it followed was deleted. */
  gap: boolean;
}

export interface KnownSession {
  said: Said[];
  tip: Said | undefined;
  resends: boolean;
  /** Something was stored in it, though it may be deleted by now. */
  isThere: boolean;
  /**
   * An answer without text was stored in it. What is shown of it is ambiguous, so only what the model sees is checked.
   */
  isVague: boolean;
  /** Its name is that of one conversation, not of a user. */
  readonly isTalk: boolean;
}

export function createKnownSession(isTalk: boolean): KnownSession {
  return { said: [], tip: undefined, resends: false, isThere: false, isVague: false, isTalk };
}

/** The rule: new items alone continue the thread, or start one where clients resend; a history finds its own place. */
export function expectTurn(session: KnownSession, asked: readonly Item[]): Expectation {
  const own = steeringOf(asked);
  const items = asked.filter((item) => !isSteering(item));
  const newFrom = items.findLastIndex(isOfModel) + 1;
  const shown = items.slice(0, newFrom);
  const place = (history: History, after: Said | undefined, known: number, isSure = false): Expectation => {
    const path = pathOf(after);
    // A thread with a gap is shown in the client's version, if that shows all that is left of it.
    const isAccount = path.some((said) => said.gap) && linesOf(path).length <= toScript(shown.slice(0, known)).length;
    // After a gap calls can no longer be counted, but the newest are the same.
    const kept = path.some((said) => said.gap) ? path.slice(-1) : path;
    const ours = kept.flatMap((said) => said.items);
    // A client that uses our ids of the newest calls has not renamed them.
    const isOurs = isSure && haveCalls(after?.items ?? [], shown);
    const named = isOurs ? items : nameLike(ours, shown.slice(0, known), items);
    const before = isAccount ? named.slice(0, known) : path.flatMap((said) => said.items);
    const told = named.slice(known);
    const [unknown, fresh] = [told.slice(0, newFrom - known), told.slice(newFrom - known)];
    const inForce = inForceAt(after);
    const seen = withoutOpenCalls([...before, ...told]);
    const isTail = countStretches(path.flatMap((said) => said.items)) > countStretches(shown.slice(0, known));
    return { history, after, before, unknown, fresh, seen, system: own.length > 0 ? own : inForce, isTail };
  };

  if (shown.length === 0) {
    const outlivesCaller = session.tip !== undefined && !session.resends;
    return place(outlivesCaller ? "continued" : "new", outlivesCaller ? session.tip : undefined, 0);
  }
  // Where clients do not resend their history, the ids of the calls identify the step.
  const { tip } = session;
  if (!session.resends && isStep(items) && tip?.turnId !== undefined && haveCalls(tip.items, shown)) {
    return place("matched", tip, newFrom, true);
  }
  const script = toScript(shown);
  const prefixes = session.said.filter(
    (said) => startsWith(script, said.script) && !isLineOfModel(script[said.script.length]),
  );
  const longest = Math.max(0, ...prefixes.map((said) => said.script.length));
  const twins = prefixes.filter((said) => said.script.length === longest);
  // What follows the history is new, and does not determine its place.
  const known = chooseTwin(session, twins, steeringOf(asked.slice(0, asked.findLastIndex(isOfModel) + 1)));
  if (known === undefined && twins.length > 0) return place("foreign", undefined, 0);
  if (known !== undefined && longest === script.length) {
    return place(isEnd(session, known) ? "matched" : "forked", known, newFrom);
  }
  const alike = session.said.filter((said) => endsAlike(said, script));
  // Where clients do not resend their history, the ids of the calls identify the step.
  const called = session.resends
    ? []
    : alike.filter((said) => said.turnId !== undefined && haveCalls(said.items, shown));
  const ending = called.length > 0 ? called : alike;
  const newest = ending.at(-1)?.script.join("\0");
  const wider = preferEnds(
    session,
    ending.filter((said) => said.script.join("\0") === newest),
  );
  // An end shared by two conversations identifies neither, and where there are several, one answer is not enough; nor
  // is one turn from its question on, however many steps it has, if something else was said before it.
  const answers = script.filter((line, index) => isLineOfModel(line) && !isLineOfModel(script[index + 1])).length;
  const isFirst = script[0]?.startsWith("user: ") === true && !showsPast(shown);
  const hasMore = wider !== undefined && linesOf(pathOf(wider)).length > script.length;
  const isClear =
    new Set(ending.map((said) => pathOf(said)[0])).size === 1 &&
    (called.length > 0 ||
      (answers > 1 && !(isFirst && hasMore)) ||
      (session.resends && session.said.filter((said) => isEnd(session, said)).length === 1));
  if (wider !== undefined && isClear) return place(isEnd(session, wider) ? "matched" : "forked", wider, newFrom, true);
  if (known !== undefined) return place("forked", known, itemsIn(shown, longest));
  // Where nothing was stored before, nothing can be foreign.
  return place(session.isThere ? "foreign" : "new", undefined, 0);
}

/** Without a name the model sees exactly what was sent. */
export function expectStateless(asked: readonly Item[]): Expectation {
  return {
    history: "stateless",
    seen: asked,
    system: steeringOf(asked),
    after: undefined,
    before: [],
    unknown: [],
    fresh: asked,
    isTail: false,
  };
}

/** Records a turn that the gateway acknowledged. */
export function keepTurn(
  session: KnownSession,
  asked: readonly Item[],
  expected: Expectation,
  answer: readonly Item[],
  turnId: string,
): void {
  let { before } = expected;
  let told = toScript(before).length;
  const add = (
    id: string | undefined,
    after: Said | undefined,
    items: readonly Item[],
    system: readonly string[],
  ): Said => {
    before = [...before, ...items];
    const lines = toScript(before).slice(told);
    told += lines.length;
    const script = [...(after?.script ?? []), ...lines];
    const broughtBy = id === undefined ? turnId : undefined;
    const said = { turnId: id, broughtBy, after, items, script, lines, system, gap: false };
    session.said.push(said);
    return said;
  };
  // System messages belong to the request, so they are stored with its turn and not with the history it showed; those
  // already in force are not stored again.
  const own = steeringOf(asked);
  const system = isDeepStrictEqual(own, inForceAt(expected.after)) ? [] : own;
  const after = expected.unknown.length > 0 ? add(undefined, expected.after, expected.unknown, []) : expected.after;
  session.tip = add(turnId, after, [...expected.fresh, ...answer], system);
  session.resends ||= asked.some(isOfModel) && (showsPast(asked) || !(session.isTalk || expected.isTail));
  session.isThere = true;
}

/** Forgets a deleted turn, and what it brought, unless something else follows that. */
export function forgetTurn(session: KnownSession, turn: Said): void {
  const remove = (said: Said): void => {
    session.said = session.said.filter((other) => other !== said);
    for (const other of session.said) if (other.after === said) Object.assign(other, { after: said.after, gap: true });
    if (session.tip === said) session.tip = said.after;
  };
  const brought = turn.after?.broughtBy === turn.turnId ? turn.after : undefined;
  const isShared = session.said.some((other) => other !== turn && other.after === brought);
  remove(turn);
  if (brought !== undefined && !isShared) remove(brought);
}

/** One line per message, call or output, so that harmless differences of writing do not count. */
export function toScript(items: readonly Item[]): readonly string[] {
  const script: string[] = [];
  /** A call is identified by its number in its answer: clients may give it their own id. */
  const numbers = new Map<string, number>();
  let number = 0;
  let last: string | undefined;
  for (const item of items) {
    if (!isSaid(item)) continue;
    number = item.type === "tool-call" ? number + 1 : 0;
    if (item.type === "tool-call") numbers.set(item.callId, number);
    const kind = kindOf(item, numbers);
    if (item.type === "message" && last === kind) script[script.length - 1] += `\n${textOf(item)}`;
    else script.push(`${kind}: ${textOf(item)}`);
    last = kind;
  }
  for (let from = 0; from < script.length; from++) {
    let to = from;
    while (script[to]?.startsWith("output ")) to++;
    if (to > from + 1) script.splice(from, to - from, ...script.slice(from, to).toSorted());
    from = Math.max(from, to - 1);
  }
  return script;
}

/** The newest system messages that a turn of the thread was stored with. */
function inForceAt(after: Said | undefined): readonly string[] {
  return pathOf(after).findLast((said) => said.system.length > 0)?.system ?? [];
}

export function steeringOf(items: readonly Item[]): readonly string[] {
  return items
    .filter(isSteering)
    .map((item) => (item.type === "message" ? `${item.role}: ${plain(item.content)}` : ""));
}

type SaidItem = Exclude<Item, { type: "reasoning" | "compaction" | "other" }>;

/** Whether it becomes a line. */
export function isSaid(item: Item): item is SaidItem {
  return item.type !== "reasoning" && item.type !== "compaction" && item.type !== "other" && !isSteering(item);
}

function kindOf(item: SaidItem, numbers: ReadonlyMap<string, number>): string {
  switch (item.type) {
    case "message":
      return item.role;
    case "tool-call":
      return `call ${numbers.get(item.callId)} ${item.name}`;
    case "tool-output":
      return `output ${numbers.get(item.callId) ?? `of an unknown call ${item.callId}`}`;
  }
}

export function textOf(item: SaidItem): string {
  switch (item.type) {
    case "message":
      return plain(item.content);
    case "tool-call":
      return toSorted(item.arguments);
    case "tool-output":
      return plain(item.output);
  }
}

const toSorted = remembering((text) => JSON.stringify(sortKeys(JSON.parse(text))));

function plain(content: Content): string {
  if (typeof content === "string") return toPlain(content);
  return toPlain(content.map((part) => (part.type === "text" ? part.text : `\n[${JSON.stringify(part)}]\n`)).join(""));
}

/** Without line ends of other systems, trailing blanks, and blank lines. */
const toPlain = remembering((text) =>
  text
    .replaceAll(/\s*[\r\n]/g, "\n")
    .replace(/^\n/, "")
    .trimEnd(),
);

/** The same texts occur in many histories. */
function remembering(make: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let made = known.get(text);
    if (made === undefined) known.set(text, (made = make(text)));
    return made;
  };
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  const sorted = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(sorted.map(([key, inner]) => [key, sortKeys(inner)]));
}

/** The model's last shown items contain calls, and all of them are among the items. */
function haveCalls(items: readonly Item[], shown: readonly Item[]): boolean {
  const last = shown.slice(shown.findLastIndex((item) => item.type === "tool-output" || isQuestion(item)) + 1);
  const calls = last.flatMap((item) => (item.type === "tool-call" ? [item.callId] : []));
  const ours = new Set(items.flatMap((item) => (item.type === "tool-call" ? [item.callId] : [])));
  return calls.length > 0 && calls.every((callId) => ours.has(callId));
}

/** How often the speaker changes. */
function countStretches(items: readonly Item[]): number {
  const sides = items.flatMap((item) => {
    if (item.type === "tool-output") return ["tools"];
    return isOfModel(item) ? ["model"] : isQuestion(item) ? ["caller"] : [];
  });
  return sides.filter((side, index) => side !== sides[index - 1]).length;
}

/** A question right after the model's text belongs to another turn. */
function showsPast(items: readonly Item[]): boolean {
  const said = items.filter((item) => item.type === "tool-output" || isOfModel(item) || isQuestion(item));
  return said.some((item, index) => index > 0 && isQuestion(item) && isOfModel(said[index - 1]!));
}

function isStep(items: readonly Item[]): boolean {
  return items.some(isOfModel) && !showsPast(items);
}

function isQuestion(item: Item): boolean {
  return item.type === "message" && item.role === "user";
}

/** Whether it shows that the model has answered before. Reasoning alone does not: it is not part of the history. */
export function isOfModel(item: Item): boolean {
  return item.type === "tool-call" || (item.type === "message" && item.role === "assistant");
}

/** An answer ends where another speaker follows. */
function isLineOfModel(line: string | undefined): boolean {
  return line?.startsWith("assistant: ") === true || line?.startsWith("call ") === true;
}

function pathOf(said: Said | undefined): readonly Said[] {
  const path: Said[] = [];
  for (let each = said; each !== undefined; each = each.after) path.push(each);
  return path.toReversed();
}

function isEnd(session: KnownSession, said: Said): boolean {
  return !session.said.some((other) => other.after === said);
}

function preferEnds(session: KnownSession, candidates: readonly Said[]): Said | undefined {
  return candidates.findLast((said) => isEnd(session, said)) ?? candidates.at(-1);
}

/**
 * Conversations with the same text are distinguished by their system messages; a caller that shows none does not get
 * those of another.
 */
function chooseTwin(session: KnownSession, twins: readonly Said[], own: readonly string[]): Said | undefined {
  const newest = preferEnds(session, twins);
  const isIn = (said: Said, system: readonly string[]) => isDeepStrictEqual(inForceAt(said), system);
  const ours = twins.filter((said) => isIn(said, own));
  if (ours.length > 0) return preferEnds(session, ours);
  return own.length > 0 || twins.every((said) => isIn(said, inForceAt(newest))) ? newest : undefined;
}

function startsWith(script: readonly string[], start: readonly string[]): boolean {
  return start.every((line, index) => line === script[index]);
}

/** What is shown is the end of the thread; or all that is left of one that has lost its beginning. */
function endsAlike(end: Said, shown: readonly string[]): boolean {
  let left = shown.length;
  let first = end;
  for (let said: Said | undefined = end; said !== undefined; said = said.after) {
    for (const line of said.lines.toReversed()) {
      if (left === 0) return true;
      if (line !== shown[--left]) return false;
    }
    first = said;
  }
  return first.gap;
}

/** What is left of a thread. */
function linesOf(path: readonly Said[]): readonly string[] {
  return path.flatMap((said) => said.lines);
}

/** How many of the items make up these lines. */
function itemsIn(items: readonly Item[], lines: number): number {
  return items.findIndex((_, index) => toScript(items.slice(0, index + 1)).length > lines);
}

/** Outputs use the call ids of the stored thread: counted from the end of what both know, the calls are the same. */
function nameLike(kept: readonly Item[], shown: readonly Item[], told: readonly Item[]): readonly Item[] {
  const [ours, theirs] = [kept, shown].map((items) =>
    items.flatMap((item) => (item.type === "tool-call" ? [item.callId] : [])).toReversed(),
  );
  const names = new Map(theirs?.map((callId, index) => [callId, ours?.[index] ?? callId]));
  return told.map((item) => {
    const callId = item.type === "tool-output" || item.type === "tool-call" ? names.get(item.callId) : undefined;
    return callId === undefined ? item : { ...item, callId };
  });
}

/** An unanswered call is omitted; a late output is placed after its call. */
export function withoutOpenCalls(items: readonly Item[]): readonly Item[] {
  const outputs = new Map(items.flatMap((item) => (item.type === "tool-output" ? [[item.callId, item] as const] : [])));
  const seen: Item[] = [];
  const due: Item[] = [];
  for (const item of items) {
    if (item.type === "message" || item.type === "tool-output") seen.push(...due.splice(0));
    if (item.type === "tool-output") continue;
    const output = item.type === "tool-call" ? outputs.get(item.callId) : undefined;
    if (item.type !== "tool-call" || output !== undefined) seen.push(item);
    if (output !== undefined) due.push(output);
  }
  return [...seen, ...due];
}
