/**
 * What counts as the same conversation: runs of one side each, in a canonical form that is the same for every client.
 * Line endings, trailing blanks, split or merged messages, strings or parts, the order of parallel outputs, ids and
 * reasoning do not count.
 */
import { type Content, type Item, isSteering, type OtherItem, type Part, type ToolCall } from "../item.ts";
import { lookThrough } from "../json-shape.ts";

export interface Run {
  readonly side: "caller" | "model" | "tools";
  /** What was said, in canonical form. */
  readonly canon: string;
  /** Where it ends among the items. */
  readonly end: number;
}

export function toRuns(items: readonly Item[]): readonly Run[] {
  const runs: Run[] = [];
  /** The model's latest calls, in order. */
  let called = new Map<string, number>();
  for (const { side, items: said, places } of split(items)) {
    if (side === "model") called = new Map();
    const canon = canonOfRun(said, called);
    if (canon !== undefined) runs.push({ side, canon, end: (places.at(-1) ?? 0) + 1 });
  }
  return runs;
}

/** The items of a run, with their positions. */
export interface Segment {
  readonly side: Run["side"];
  readonly items: Item[];
  readonly places: number[];
}

/** The segments in which one side speaks, one for each run of `toRuns`. */
export function toSegments(items: readonly Item[]): readonly Segment[] {
  return split(items).filter((segment) => segment.items.some(isWord));
}

/** What callers said, in canonical form. The outputs around it may be long, so they are left alone. */
export function questionsOf(items: readonly Item[]): readonly string[] {
  const questions = toSegments(items).filter(({ side }) => side === "caller");
  return questions.flatMap((segment) => toRuns(segment.items)).map(({ canon }) => canon);
}

/** Some of these may say nothing. */
function split(items: readonly Item[]): readonly Segment[] {
  const segments: Segment[] = [];
  let last: Segment | undefined;
  for (const [place, item] of items.entries()) {
    const side = sideOf(item);
    if (side === undefined) continue;
    if (side === last?.side) {
      last.items.push(item);
      last.places.push(place);
    } else segments.push((last = { side, items: [item], places: [place] }));
  }
  return segments;
}

/** Adds the calls of a run to those `called`, whose order its outputs are put into; undefined: it says nothing. */
function canonOfRun(items: readonly Item[], called: Map<string, number>): string | undefined {
  let text = "";
  const calls: string[] = [];
  const outputs: [place: number, output: string][] = [];
  for (const item of items) {
    if (item.type === "message") {
      const said = wordsOf(item.content);
      text = text === "" ? said : `${text}\n${said}`;
      continue;
    }
    const [id, canon] = canonOfExchange(item);
    if (sideOf(item) === "tools") outputs.push([called.get(id) ?? called.size + outputs.length, canon]);
    else {
      called.set(id, called.size);
      calls.push(canon);
    }
  }
  const said = normalise(text);
  // Nearly all runs are words alone, for which this writes the same as below.
  if (calls.length === 0 && outputs.length === 0) return said === "" ? undefined : `[${JSON.stringify(said)},[],[]]`;
  const told = outputs.toSorted(([one], [other]) => one - other).map(([, output]) => output);
  return JSON.stringify([said, calls, told]);
}

/** Whether two items surely have the same canonical form: most are written alike, and then it need not be made. */
export function isSameWord(one: Item, other: Item): boolean {
  if (one.type === "message")
    return other.type === "message" && one.role === other.role && isSameText(one.content, other.content);
  if (one.type === "tool-call") return other.type === "tool-call" && isSameCall(one, other);
  if (one.type === "tool-output") return other.type === "tool-output" && isSameText(one.output, other.output);
  if (one.type !== "other" || other.type !== "other" || sideOf(one) !== sideOf(other)) return false;
  return canonOfOther(one) === canonOfOther(other);
}

/** The same words in whatever parts, ignoring trailing blanks and blank lines. */
export function isSameText(one: Content, other: Content): boolean {
  if (one === other) return true;
  const [ours, theirs] = [wordsOf(one), wordsOf(other)];
  return ours === theirs || stripBlanks(ours) === stripBlanks(theirs);
}

function isSameCall(one: ToolCall, other: ToolCall): boolean {
  if (one.name !== other.name) return false;
  return one.arguments === other.arguments || canonicalJson(one.arguments) === canonicalJson(other.arguments);
}

/** What is called or given, and the id that both have. */
export function canonOfExchange(item: Item): [id: string, canon: string] {
  if (item.type === "tool-call") return [item.callId, JSON.stringify([item.name, canonicalJson(item.arguments)])];
  if (item.type === "tool-output") return [item.callId, canonOf(item.output)];
  return item.type === "other" ? [item.exchange?.id ?? "", canonOfOther(item)] : ["", ""];
}

/** Whose word it is; undefined: not part of the talk. */
export function sideOf(item: Item): Run["side"] | undefined {
  switch (item.type) {
    case "message":
      return isSteering(item) ? undefined : item.role === "assistant" ? "model" : "caller";
    case "tool-call":
      return "model";
    case "tool-output":
      return "tools";
    case "other":
      return item.exchange?.side;
    case "reasoning":
    case "compaction":
      return undefined;
  }
}

/** It says something, be it a call. */
export function isWord(item: Item): boolean {
  return item.type === "message" ? wordsOf(item.content).trim() !== "" : sideOf(item) !== undefined;
}

/** It is an answer without words. */
export function isBlank(item: Item | undefined): boolean {
  return item !== undefined && sideOf(item) === "model" && !isWord(item);
}

/**
 * What the model asks for is identified by its id, since clients do not repeat all its fields; what it is given, by
 * content.
 */
function canonOfOther({ extra, exchange }: OtherItem): string {
  if (exchange?.side !== "tools") return JSON.stringify([exchange?.id]);
  const { id: _, status: __, ...fields } = extra.fields;
  return JSON.stringify(sort(fields));
}

/** What a content says, as written. */
export function wordsOf(content: Content): string {
  return typeof content === "string" ? content : content.map(wordsOfPart).join("\n");
}

/** The same in canonical form. */
function canonOf(content: Content): string {
  return normalise(wordsOf(content));
}

function wordsOfPart(part: Part): string {
  switch (part.type) {
    case "text":
    case "refusal":
      return part.text;
    case "image":
      return `[image ${part.url ?? part.fileId}]`;
    case "audio":
      return `[audio ${part.data}]`;
    case "file":
      return `[file ${part.fileId ?? part.url ?? part.data}]`;
    case "other":
      return JSON.stringify(part.extra.fields);
  }
}

function normalise(text: string): string {
  const trimmed = text.trim();
  return hasBlanks(trimmed) ? stripBlanks(trimmed) : trimmed;
}

/** Few texts have blanks to strip within, and checking line by line is faster than one pattern for all. */
function hasBlanks(text: string): boolean {
  if (text.includes("\r")) return true;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (text[at - 1]?.trim() === "") return true;
  }
  return false;
}

/** Without trailing blanks. Blank lines do not count either: clients that merge messages put some between them. */
function stripBlanks(text: string): string {
  const lines: string[] = [];
  for (const each of text.replaceAll("\r\n", "\n").replaceAll("\r", "\n").split("\n")) {
    const line = each.trimEnd();
    if (line !== "") lines.push(line);
  }
  return lines.join("\n");
}

/** The same arguments in any order and spacing; where a model gives none, some clients show an empty object. */
export function canonicalJson(text: string): string {
  if (text.trim() === "") return "{}";
  if (isTooMuch(text)) return text.trim();
  try {
    return JSON.stringify(sort(JSON.parse(text)));
  } catch {
    return text.trim();
  }
}

/** A million fields take seconds to sort, blocking everybody else; such arguments count as written. */
function isTooMuch(text: string): boolean {
  if (text.length <= maxSorted) return false;
  const { containers, members } = lookThrough(text, { depth: Infinity, containers: maxSorted, members: maxSorted });
  return containers > maxSorted || members > maxSorted;
}

const maxSorted = 10_000;

function sort(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sort);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, inner]) => [key, sort(inner)]),
  );
}
