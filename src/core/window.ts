/** What fits a model's window: of what the gateway remembered the middle goes first, the newest never; what the caller shows stays. */
import { GatewayError } from "./errors.ts";
import { type Content, isInstruction, type Item, type Part } from "./item.ts";
import type { Extra, Settings } from "./settings.ts";
import { halfOf } from "./pair.ts";
import type { Ask, Turn } from "./turn.ts";

/** How many tokens a text has. */
export type CountText = (text: string) => number;

/** What a model is to see, and who said it. */
export interface Seen {
  readonly items: readonly Item[];
  /** The request's own items among them: the rest is remembered. */
  readonly own: readonly Item[];
  /** The caller's name for them, in errors. */
  readonly itemsParam: string;
  readonly settings: Settings;
  readonly mayShorten: boolean;
}

/** All items, or fewer. Throws if what has to stay is too long. */
export function fitWindow(seen: Seen, tokens: number, count: CountText): readonly Item[] {
  const { items, settings, mayShorten } = seen;
  const fixed = fixedTexts(settings);
  const reserve = mayShorten ? reserveOf(settings, tokens) : 0;
  // A token has at least one byte: counting these is enough for most conversations.
  if (countAll(items, fixed, bytesOf) <= tokens - reserve) return items;
  const costs = items.map((item) => tokensOf(item, count));
  const left = tokens - countAll([], fixed, count);
  if (costs.reduce((sum, cost) => sum + cost, 0) <= left - reserve) return items;
  return (mayShorten ? shorten(seen, costs, left, reserve) : undefined) ?? refuse(seen, tokens);
}

function refuse({ itemsParam, mayShorten }: Seen, tokens: number): never {
  const tip = `Send less of it; on /v1/responses 'truncation: "auto"' leaves out the middle of what the gateway remembers.`;
  const remedy = mayShorten ? "Even its newest part is too long: send less." : tip;
  const message = `This conversation does not fit into the model's context window of ${tokens} tokens. ${remedy}`;
  throw new GatewayError("context_length_exceeded", message, { param: itemsParam });
}

/** How many tokens a model reads of a turn. */
export function countTurn({ items, settings }: Pick<Turn, "items" | "settings">, count: CountText): number {
  return countAll(items, fixedTexts(settings), count);
}

/** A conversation that a hint found never ends, so its window moves by itself; elsewhere the caller says so. */
export function isOursToShorten({ truncation, previous, conversation }: Ask, remembers: boolean): boolean {
  const isNamed = (previous ?? conversation) !== undefined;
  return remembers && (truncation ?? (isNamed ? "disabled" : "auto")) === "auto";
}

/**
 * What the caller sent stays, and instructions, the newest question and the newest step behind it. Then, as far as there
 * is room, come the newest summary, the first question (the task), and what is older, newest first.
 */
function shorten(
  { items, own }: Seen,
  costs: readonly number[],
  tokens: number,
  reserve: number,
): readonly Item[] | undefined {
  const kept = new Set<number>();
  let left = tokens;

  /** All of them or none. */
  function keep(places: readonly number[]): boolean {
    const added = places.filter((at) => at in items && !kept.has(at));
    const cost = added.reduce((sum, at) => sum + (costs[at] ?? 0), 0);
    if (cost > left) return false;
    left -= cost;
    for (const at of added) kept.add(at);
    return true;
  }

  const places = [...items.keys()];
  const isSteering = (at: number): boolean => isInstruction(items[at] as Item);
  const sent = new Set(own);
  const isSent = (at: number): boolean => sent.has(items[at] as Item) && !isSteering(at);
  const question = items.findLastIndex(isQuestion);
  const [newest = [], ...older] = toParts(items, question).toReversed();
  const staying = [newest, [question], places.filter(isSteering), ...older.filter((part) => part.some(isSent))];
  if (!keep([...new Set(staying.flat())])) return undefined;
  left -= reserve;
  keep([items.findLastIndex(({ type }) => type === "compaction")]);
  keep([items.findIndex(isQuestion)]);
  for (const part of older) if (!keep(part)) break;
  return items.filter((_, at) => kept.has(at));
}

/**
 * The places of each part that stays or goes as a whole, oldest first: before the newest question each question with all
 * that answers it, behind it each step of the model with the outputs of its calls.
 */
function toParts(items: readonly Item[], question: number): readonly (readonly number[])[] {
  let part: number[] = [];
  const parts = [part];
  for (const [at, item] of items.entries()) {
    const before = items[at - 1];
    const begins = at > question ? isOfModel(item) && before !== undefined && !isOfModel(before) : isQuestion(item);
    if (begins && part.length > 0) parts.push((part = []));
    part.push(at);
  }
  return parts;
}

function isQuestion(item: Item): boolean {
  return item.type === "message" && item.role === "user";
}

function isOfModel(item: Item): boolean {
  if (item.type === "message") return item.role === "assistant";
  return item.type === "reasoning" || halfOf(item)?.side === "model";
}

/** As much as most answers take, or as the caller allows; but nothing is forgotten for an answer that fills the window. */
function reserveOf({ maxOutputTokens }: Settings, tokens: number): number {
  return Math.floor(
    maxOutputTokens === undefined ? Math.min(tokens / 4, usualAnswer) : Math.min(maxOutputTokens, tokens / 2),
  );
}

const usualAnswer = 4_096;

/** What a model reads beside items. */
function fixedTexts({ instructions, tools, format }: Settings): readonly string[] {
  const texts = tools.map((tool) => JSON.stringify(tool.type === "other" ? tool.extra.fields : tool));
  if (instructions !== undefined) texts.push(instructions);
  if (format?.type === "schema") texts.push(JSON.stringify(format.schema));
  return texts;
}

function countAll(items: readonly Item[], fixed: readonly string[], count: CountText): number {
  let tokens = 0;
  for (const text of fixed) tokens += tokensAround + count(text);
  for (const item of items) tokens += tokensOf(item, count);
  return tokens;
}

/** What a wire puts around each item: who speaks, where it begins and ends. */
const tokensAround = 4;

function tokensOf(item: Item, count: CountText): number {
  return tokensAround + tokensInside(item, count);
}

function tokensInside(item: Item, count: CountText): number {
  switch (item.type) {
    case "message":
      return countContent(item.content, count) + count(item.name ?? "");
    case "reasoning":
      if (item.encrypted !== undefined) return countSealed(item.encrypted);
      return item.summary.reduce((tokens, section) => tokens + count(section), count(item.text));
    case "tool-call":
      return count(item.name) + count(item.arguments);
    case "tool-output":
      return countContent(item.output, count) + (item.extra === undefined ? 0 : countOpaque(item.extra.fields, count));
    case "compaction":
      return item.encrypted === undefined ? count(item.summary) : countSealed(item.encrypted);
    case "other":
      return countOpaque(item.extra.fields, count);
    case "reference":
      return 0;
  }
}

function countContent(content: Content, count: CountText): number {
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

function countPart(part: Part, count: CountText): number {
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
function countOpaque(fields: Extra["fields"], count: CountText): number {
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

/** An upper bound of the bytes in UTF-8: each half of a surrogate pair counts as three. */
function bytesOf(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) bytes += code >= 0x800 ? 2 : 1;
  }
  return bytes;
}
