/**
 * A conversation as runs of one side each, in a canonical form that is the same for every client: line endings,
 * trailing blanks, split or merged messages, strings or parts, the order of parallel outputs, ids and reasoning do not
 * count.
 */
import { type Content, type Item, isSteering, type OtherItem, type Part } from "../item.ts";
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
  let side: Run["side"] | undefined;
  let end = 0;
  let text: string | undefined;
  let calls: string[] = [];
  let outputs: [place: number, output: string][] = [];
  /** The order of the model's latest calls. */
  let places = new Map<string, number>();

  function close(): void {
    if (side === undefined) return;
    const said = text === undefined ? "" : normalise(text);
    if (said !== "" || calls.length > 0 || outputs.length > 0) {
      runs.push({ side, canon: toCanon(said, calls, outputs), end });
    }
    text = undefined;
    if (calls.length > 0) calls = [];
    if (outputs.length > 0) outputs = [];
  }

  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    const next = item && sideOf(item);
    if (item === undefined || next === undefined) continue;
    if (next !== side) {
      close();
      side = next;
      if (next === "model" && places.size > 0) places = new Map();
    }
    end = index + 1;
    switch (item.type) {
      case "message": {
        const said = canonOf(item.content);
        text = text === undefined ? said : `${text}\n${said}`;
        break;
      }
      case "tool-call":
        places.set(item.callId, places.size);
        calls.push(JSON.stringify([item.name, canonicalJson(item.arguments)]));
        break;
      case "tool-output":
        outputs.push([places.get(item.callId) ?? places.size + outputs.length, normalise(canonOf(item.output))]);
        break;
      case "other": {
        const { side, id } = item.exchange ?? { side: "model", id: "" };
        if (side === "tools") outputs.push([places.get(id) ?? places.size + outputs.length, canonOfOther(item)]);
        else {
          places.set(id, places.size);
          calls.push(canonOfOther(item));
        }
      }
    }
  }
  close();
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
  const segments: Segment[] = [];
  let last: Segment | undefined;
  for (const [place, item] of items.entries()) {
    const side = sideOf(item);
    if (side === undefined) continue;
    if (side !== last?.side) segments.push((last = { side, items: [], places: [] }));
    last.items.push(item);
    last.places.push(place);
  }
  return segments.filter((segment) => segment.items.some(isWord));
}

function toCanon(
  said: string,
  calls: readonly string[],
  outputs: readonly (readonly [place: number, output: string])[],
): string {
  // Nearly all runs are words alone, for which this writes the same.
  if (calls.length === 0 && outputs.length === 0) return `[${JSON.stringify(said)},[],[]]`;
  const told = outputs.toSorted(([one], [other]) => one - other).map(([, output]) => output);
  return JSON.stringify([said, calls, told]);
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
  return item.type === "message" ? canonOf(item.content).trim() !== "" : sideOf(item) !== undefined;
}

/**
 * What the model asks for is identified by its id, since clients do not repeat all its fields; what it is given, by
 * content.
 */
export function canonOfOther({ extra, exchange }: OtherItem): string {
  if (exchange?.side !== "tools") return JSON.stringify([exchange?.id]);
  const { id: _, status: __, ...fields } = extra.fields;
  return JSON.stringify(sort(fields));
}

/** What a content says, as written. */
export function canonOf(content: Content): string {
  return typeof content === "string" ? content : content.map(canonOfPart).join("\n");
}

function canonOfPart(part: Part): string {
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
export function stripBlanks(text: string): string {
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
