/** What fits a model's window: of what the gateway remembered the middle goes first, the newest never; what the caller shows stays. */
import { GatewayError } from "./errors.ts";
import { type Content, isInstruction, type Item, type Part } from "./item.ts";
import type { Settings } from "./settings.ts";
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
  const { items, itemsParam, settings, mayShorten } = seen;
  const reserve = mayShorten ? reserveOf(settings, tokens) : 0;
  // A token has at least one byte, and a character at most three: such a count is enough for most conversations.
  if (countTurn(seen, (text) => 3 * text.length) <= tokens - reserve) return items;
  const costs = items.map((item) => tokensOf(item, count));
  const left = tokens - countTurn({ items: [], settings }, count);
  if (costs.reduce((sum, cost) => sum + cost, 0) <= left - reserve) return items;
  const fitting = mayShorten ? shorten(seen, costs, left, reserve) : undefined;
  if (fitting !== undefined) return fitting;
  const remedy = `Send less of it; on /v1/responses 'truncation: "auto"' leaves out the middle of what the gateway remembers.`;
  const message = `This conversation does not fit into the model's context window of ${tokens} tokens. ${remedy}`;
  throw new GatewayError("context_length_exceeded", message, { param: itemsParam });
}

/** A conversation that a hint found never ends, so its window moves by itself; elsewhere the caller says so. */
export function isOursToShorten({ truncation, previous, conversation }: Ask, remembers: boolean): boolean {
  const isNamed = (previous ?? conversation) !== undefined;
  return remembers && (truncation ?? (isNamed ? "disabled" : "auto")) === "auto";
}

/** As much as most answers take, or as the caller allows; but nothing is forgotten for an answer that fills the window. */
function reserveOf({ maxOutputTokens }: Settings, tokens: number): number {
  const most = maxOutputTokens === undefined ? tokens / 4 : tokens / 2;
  return Math.min(maxOutputTokens ?? 4_096, Math.floor(most));
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
    const added = places.filter((at) => !kept.has(at));
    const cost = added.reduce((sum, at) => sum + (costs[at] ?? 0), 0);
    if (cost > left) return false;
    left -= cost;
    for (const at of added) kept.add(at);
    return true;
  }

  const sent = new Set(own);
  const question = items.findLastIndex(isQuestion);
  const [newest = [], ...older] = toParts(items, question).toReversed();
  const staying = [newest, ...older.filter((part) => part.some((at) => sent.has(items[at] as Item)))].flat();
  for (const [at, item] of items.entries()) if (at === question || isInstruction(item)) staying.push(at);
  if (!keep([...new Set(staying)])) return undefined;
  left -= reserve;
  keep([items.findLastIndex(({ type }) => type === "compaction")]);
  keep([items.findIndex(isQuestion)]);
  for (const part of older) if (!keep(part)) break;
  return items.filter((_, at) => kept.has(at));
}

/**
 * The places of each part of the talk that stays or goes as a whole, oldest first: before the newest question each
 * question with all that answers it, behind it each step of the model with the outputs of its calls.
 */
function toParts(items: readonly Item[], question: number): readonly (readonly number[])[] {
  let part: number[] = [];
  const parts = [part];
  for (const [at, item] of items.entries()) {
    if (isInstruction(item)) continue;
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

/** How many tokens a model reads of a turn. */
export function countTurn(
  { items, settings: { instructions, tools, format } }: Pick<Turn, "items" | "settings">,
  count: CountText,
): number {
  let tokens = 0;
  for (const item of items) tokens += tokensOf(item, count);
  for (const tool of tools) tokens += tokensAround + count(JSON.stringify(tool));
  if (instructions !== undefined) tokens += tokensAround + count(instructions);
  if (format?.type === "schema") tokens += tokensAround + count(JSON.stringify(format.schema));
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
      return countContent(item.content, count);
    case "reasoning":
      return [...item.summary, item.text].reduce((tokens, text) => tokens + count(text), countSealed(item));
    case "tool-call":
      return count(item.name) + count(item.arguments);
    case "tool-output":
      return countContent(item.output, count) + countFields(item.extra?.fields ?? {}, count);
    case "compaction":
      return count(item.summary) + countSealed(item);
    case "other":
      return countFields(item.extra.fields, count);
    case "reference":
      return 0;
  }
}

function countContent(content: Content, count: CountText): number {
  if (typeof content === "string") return count(content);
  return content.reduce((tokens, part) => tokens + countPart(part, count), 0);
}

/** What a large image costs OpenAI's models. */
const imageTokens = 1_105;
/** Of a PDF, a recording and the like most is no text. Too high an estimate would refuse what fits. */
const lengthPerFileToken = 200;
/** What only its maker can read is about as long as the text it stands for. */
const lengthPerSealedToken = 5;

function countPart(part: Part, count: CountText): number {
  switch (part.type) {
    case "text":
    case "refusal":
      return count(part.text);
    case "image":
      return imageTokens;
    case "audio":
    case "file":
      return Math.max(imageTokens, Math.ceil((part.data ?? "").length / lengthPerFileToken));
    case "other":
      return countFields(part.extra.fields, count);
  }
}

function countSealed({ encrypted = "" }: { readonly encrypted?: string | undefined }): number {
  return Math.ceil(encrypted.length / lengthPerSealedToken);
}

/** A long string without blanks is an image or the like, not text. */
function countFields(fields: object, count: CountText): number {
  let images = 0;
  const text = JSON.stringify(fields, (_key, value: unknown) => {
    if (typeof value !== "string" || value.length < 4_096 || /\s/.test(value)) return value;
    images += 1;
    return "";
  });
  return count(text) + images * imageTokens;
}
