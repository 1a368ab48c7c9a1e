/** What fits into a model's context window of a conversation: the middle goes first, the newest never. */
import { type Content, exchangeOf, type Extra, isSteering, type Item, type Part, typeOf } from "../item.ts";

export interface Window {
  /** How many tokens the model takes, input and output together. */
  readonly tokens: number;
  /** The share reserved for the answer, unless the newest message needs it. */
  readonly reserve: number;
}

type Count = (text: string) => number;

/**
 * System messages stay, and everything from the newest user message on; of the steps that a model with tools has made
 * since, at least the newest. If not even that fits, the result is undefined. Then, as far as there is room, come the
 * newest compaction, and ours if that is a server's; the first user message (the task); and earlier exchanges, newest
 * first. `fixed` is what goes along with the items, as text: instructions, tools.
 */
export function fitWindow(
  items: readonly Item[],
  fixed: readonly string[],
  window: Window,
  count: Count,
): readonly Item[] | undefined {
  const kept = new Set<number>();
  let left = window.tokens - countItems([], fixed, count);

  /** Keeps all of them, or none. */
  function keep(indices: Iterable<number>): boolean {
    const added: number[] = [];
    let cost = 0;
    for (const index of indices) {
      const item = items[index];
      if (item === undefined || kept.has(index)) continue;
      cost += tokensOf(item, count);
      if (cost > left) return false;
      added.push(index);
    }
    if (cost > left) return false;
    left -= cost;
    for (const index of added) kept.add(index);
    return true;
  }

  const [newest = 0, ...older] = findStarts(items, isQuestion);
  if (!keep(items.flatMap((item, index) => (isSteering(item) ? [index] : [])))) return undefined;
  /** Where the parts that may be left out begin, and what follows them. */
  let starts = older;
  let behind = newest;
  if (!keep(range(newest, items.length))) {
    const [last, ...steps] = findStarts(items, isStep).filter((start) => start > newest);
    const firstStep = steps.at(-1) ?? last;
    if (last === undefined || firstStep === undefined) return undefined;
    if (!keep(range(newest, firstStep)) || !keep(range(last, items.length))) return undefined;
    starts = steps;
    behind = last;
  }
  left -= window.reserve;
  keep([items.findLastIndex(isCompaction)]);
  // Which adapter will read it is not known here: one of another dialect gets nothing of a server's.
  keep([items.findLastIndex((item) => item.type === "compaction")]);
  keep([items.findIndex(isQuestion)]);
  for (const start of starts) {
    if (!keep(range(start, behind))) break;
    behind = start;
  }
  return kept.size === items.length ? items : items.filter((_, index) => kept.has(index));
}

/** One that a server made in the middle of an answer is known to its dialect alone. */
function isCompaction(item: Item): boolean {
  return item.type === "compaction" || (item.type === "other" && typeOf(item.extra) === "compaction");
}

/**
 * Whether the items surely fit, judged by size alone: a token has at least one byte. This is cheap enough for every
 * turn, and enough for most conversations.
 */
export function surelyFits(items: readonly Item[], fixed: readonly string[], tokens: number): boolean {
  let characters = 0;
  const most = countItems(items, fixed, (text) => {
    characters += text.length;
    return text.length * maxBytesPerCharacter;
  });
  if (most <= tokens) return true;
  // Counting bytes exactly takes a look at every character, so only where it could make a difference.
  return characters <= tokens && countItems(items, fixed, countBytes) <= tokens;
}

/** How many tokens the model would read. */
export function countItems(items: readonly Item[], fixed: readonly string[], count: Count): number {
  let tokens = 0;
  for (const text of fixed) tokens += tokensPerItem + count(text);
  for (const item of items) tokens += tokensOf(item, count);
  return tokens;
}

/**
 * What a model must have word for word to go on, and what is older. That is the newest user message and what follows it;
 * of the steps that it has made since only the newest, unless all of it is short. The older ones need their question.
 */
export function divideAtNewest(
  items: readonly Item[],
  isShort: (items: readonly Item[]) => boolean,
): { readonly older: readonly Item[]; readonly newest: readonly Item[] } {
  const [start = 0] = findStarts(items, isQuestion);
  const newest = items.slice(start);
  const steps = isShort(newest) ? [] : findStarts(items, isStep).filter((step) => step > start);
  const [last = start, first = last] = [steps[0], steps.at(-1)];
  if (first === last) return { older: items.slice(0, start), newest };
  // A summary before them goes into the next one.
  const question = items.slice(start, first).filter((item) => !isCompaction(item));
  return { older: items.slice(0, last), newest: question.concat(items.slice(last)) };
}

/** Where a conversation may be divided, oldest first: at a question or at a step, once something has been said. */
export function findCuts(items: readonly Item[]): readonly number[] {
  const first = items.findIndex((item) => !isSteering(item));
  const starts = findStarts(items, (item, before) => isQuestion(item) || isStep(item, before));
  return starts.filter((start) => start > first).toReversed();
}

/**
 * Where what is kept may begin, newest first: at a user message, so that no answer lacks its question, or at the next
 * step of an answer; never between a tool call and its output. The very beginning always counts.
 */
function findStarts(
  items: readonly Item[],
  isStart: (item: Item, before: Item | undefined) => boolean,
): readonly number[] {
  const callOf = findCalls(items);
  const starts: number[] = [];
  let oldestCall = items.length;
  for (let index = items.length - 1; index > 0; index--) {
    oldestCall = Math.min(oldestCall, callOf.get(index) ?? index);
    const item = items[index];
    if (item !== undefined && isStart(item, items[index - 1]) && oldestCall >= index) starts.push(index);
  }
  starts.push(0);
  return starts;
}

/** For each tool output the index of its call. Ids may recur in another answer: the nearest call before it is meant. */
function findCalls(items: readonly Item[]): ReadonlyMap<number, number> {
  const calls = new Map<string, number>();
  const callOf = new Map<number, number>();
  for (const [index, item] of items.entries()) {
    const { side, id } = exchangeOf(item) ?? {};
    if (id === undefined) continue;
    if (side === "model") calls.set(id, index);
    else callOf.set(index, calls.get(id) ?? index);
  }
  return callOf;
}

function isQuestion(item: Item): boolean {
  return item.type === "message" && item.role === "user";
}

/** The model begins or continues. */
function isStep(item: Item, before: Item | undefined): boolean {
  return isOfModel(item) && before !== undefined && !isOfModel(before);
}

function isOfModel(item: Item): boolean {
  if (item.type === "message") return item.role === "assistant";
  return item.type === "reasoning" || exchangeOf(item)?.side === "model";
}

/** From the end backwards. */
function* range(start: number, end: number): Generator<number> {
  for (let index = end - 1; index >= start; index--) yield index;
}

/** What a wire puts around each item: who speaks, where it begins and ends. */
const tokensPerItem = 4;

function tokensOf(item: Item, count: Count): number {
  return tokensPerItem + tokensInside(item, count);
}

function tokensInside(item: Item, count: Count): number {
  switch (item.type) {
    case "message":
      return countContent(item.content, count) + (item.name === undefined ? 0 : count(item.name));
    case "reasoning":
      if (item.encrypted !== undefined) return countSealed(item.encrypted);
      return Math.max(
        item.summary.reduce((tokens, section) => tokens + count(section), count(item.text)),
        // What signs it has its words again, or stands for words that nobody is shown.
        item.extra === undefined ? 0 : countSealed(JSON.stringify(item.extra.fields)),
      );
    case "tool-call":
      return count(item.name) + count(item.arguments);
    case "tool-output":
      return countContent(item.output, count) + (item.extra === undefined ? 0 : countOpaque(item.extra.fields, count));
    case "compaction":
      return item.encrypted === undefined ? count(item.summary) : countSealed(item.encrypted);
    case "other":
      return countOpaque(item.extra.fields, count);
  }
}

function countContent(content: Content, count: Count): number {
  if (typeof content === "string") return count(content);
  return content.reduce((tokens, part) => tokens + countPart(part, count), 0);
}

/** What a large image costs OpenAI's models, and one of low detail. */
const imageTokens = 1_105;
const smallImageTokens = 85;
/** A few pages, for a file that we cannot see. */
const unseenFileTokens = 2_000;
const bytesPerTextToken = 4;
/** Of a PDF and the like: most of it is fonts and images. Too high an estimate would refuse what fits. */
const bytesPerFileToken = 40;
/** A token is a tenth of a second: 16-bit samples at 16 kHz, or speech at 32 kbit/s. */
const bytesPerWaveToken = 3_200;
const bytesPerAudioToken = 400;

function countPart(part: Part, count: Count): number {
  switch (part.type) {
    case "text":
    case "refusal":
      return count(part.text);
    case "image":
      return part.detail === "low" ? smallImageTokens : imageTokens;
    case "audio":
      return Math.ceil(sizeOf(part.data) / (part.format === "wav" ? bytesPerWaveToken : bytesPerAudioToken));
    case "file":
      if (part.data === undefined) return unseenFileTokens;
      return Math.ceil(
        sizeOf(part.data) / (part.data.startsWith("data:text/") ? bytesPerTextToken : bytesPerFileToken),
      );
    case "other":
      return countOpaque(part.extra.fields, count);
  }
}

/** Of what only its dialect knows: a long string without blanks is an image or the like, not text. */
function countOpaque(fields: Extra["fields"], count: Count): number {
  let images = 0;
  const text = JSON.stringify(fields, (_key, value: unknown) => {
    if (typeof value !== "string" || value.length <= longestWord || /\s/.test(value)) return value;
    images += 1;
    return "";
  });
  return count(text) + images * imageTokens;
}

const longestWord = 4_096;

/** What only its maker can read is about as long as the text it stands for. */
function countSealed(base64: string): number {
  return Math.ceil(sizeOf(base64) / bytesPerTextToken);
}

function sizeOf(base64: string): number {
  return (base64.length * 3) / 4;
}

const maxBytesPerCharacter = 3;

/** An upper bound of the bytes in UTF-8: each half of a surrogate pair counts as three. */
function countBytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x800) bytes += 2;
    else if (code >= 0x80) bytes += 1;
  }
  return bytes;
}
