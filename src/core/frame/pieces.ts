/** The pieces an answer was cut into when it was streamed: with its items, enough to stream it again exactly. */
import type { ItemDelta, OutputItem } from "../event.ts";
import type { Annotation } from "../item.ts";
import { type Added, emptyMessage, emptyReasoning } from "./draft.ts";

/** For each item of an answer the segments of its deltas, in the order sent. */
export type Pieces = readonly (readonly Segment[])[];

/** Consecutive deltas of one kind and part. */
interface Segment {
  readonly kind: ItemDelta["kind"];
  readonly part: number;
  /** The length of each delta's text or, for what a dialect adds, its number of fields. */
  readonly lengths: readonly number[];
  /** How many log probabilities each delta carried, if any. */
  readonly logprobs?: readonly number[] | undefined;
}

/** How many deltas of one answer can be replayed exactly. */
export const maxPieces = 100_000;

export function createPiecesRecorder() {
  const items: WritableSegment[][] = [];
  let current: WritableSegment | undefined;
  let count = 0;
  return {
    /** `isMarked`: it is a message, and what its dialect adds is already known, rather than at its end. */
    beginItem(isMarked: boolean): void {
      items.push(isMarked ? [{ kind: "extra", part: 0, lengths: [], logprobs: undefined }] : []);
      current = undefined;
    },
    record({ kind, part, text, logprobs, extra }: Added): void {
      if (++count > maxPieces) return;
      const isSame = current?.kind === kind && current.part === part;
      if (current === undefined || !isSame || (current.logprobs === undefined) !== (logprobs === undefined)) {
        current = { kind, part, lengths: [], logprobs: logprobs === undefined ? undefined : [] };
        items.at(-1)?.push(current);
      }
      current.lengths.push(extra === undefined ? text.length : Object.keys(extra.fields).length);
      current.logprobs?.push(logprobs?.length ?? 0);
    },
    /** What was recorded; undefined if there were too many pieces. */
    toPieces: (): Pieces | undefined => (count > maxPieces ? undefined : items),
  };
}

interface WritableSegment {
  kind: ItemDelta["kind"];
  part: number;
  lengths: number[];
  logprobs: number[] | undefined;
}

/** The deltas of a finished item, cut as they were; without a record each text is one piece. */
export function* cutItem(
  item: OutputItem,
  index: number,
  segments: readonly Segment[] | undefined,
): Generator<ItemDelta> {
  const texts = textsOf(item);
  const cutters = new Map(texts.map((text) => [`${text.kind} ${text.part}`, toCutters(text)]));
  const added = item.type === "tool-call" ? item.extra : undefined;
  const fields = Object.entries(added?.fields ?? {});
  const cutFields = createCutter(fields, countEarly(fields, segments));
  for (const { kind, part, lengths, logprobs } of segments ?? toSegments(texts)) {
    // An archive may describe pieces that the item does not have: they are empty, so that no text is emitted twice.
    const cut = cutters.get(`${kind === "annotation" ? "text" : kind} ${part}`);
    for (const [number, length] of lengths.entries()) {
      const event = { type: "item-delta", index, kind, part, text: "" } as const;
      const counted = logprobs?.[number];
      if (kind === "annotation") yield { ...event, annotation: cut?.annotations(1)[0] };
      else if (kind === "extra") {
        yield { ...event, extra: added && { dialect: added.dialect, fields: Object.fromEntries(cutFields(length)) } };
      } else if (counted === undefined) yield { ...event, text: cut?.text(length) ?? "" };
      else yield { ...event, text: cut?.text(length) ?? "", logprobs: cut?.logprobs(counted) ?? [] };
    }
  }
}

/** The item as it was when it began. */
export function toSkeleton(item: OutputItem, segments: readonly Segment[] | undefined): OutputItem {
  switch (item.type) {
    case "message":
      return emptyMessage(segments?.[0]?.kind === "extra" ? item.extra : undefined);
    case "reasoning":
      return emptyReasoning();
    case "tool-call": {
      const { extra, ...call } = item;
      const fields = Object.entries(extra?.fields ?? {});
      const early = Object.fromEntries(fields.slice(0, countEarly(fields, segments)));
      const isAdded = extra !== undefined && Object.keys(early).length > 0;
      return { ...call, arguments: "", ...(isAdded && { extra: { dialect: extra.dialect, fields: early } }) };
    }
    case "compaction":
    case "other":
      return item;
  }
}

/** How many of the fields that its dialect adds to a call were known when it began. */
function countEarly(fields: readonly unknown[], segments: readonly Segment[] = []): number {
  let count = fields.length;
  for (const { kind, lengths } of segments) if (kind === "extra") for (const length of lengths) count -= length;
  return count;
}

/** How long a text is. */
export type Measure = (text: string) => number;

export const inCharacters: Measure = (text) => text.length;

/** About how much text it takes to tell an item. */
export function lengthOf(item: OutputItem, measure: Measure): number {
  if (item.type === "compaction" || item.type === "other") return measure(JSON.stringify(item));
  return textsOf(item).reduce((sum, { text }) => sum + measure(text), 0);
}

/** The same for a list of them. */
export function lengthOfItems(items: readonly OutputItem[], measure: Measure): number {
  return items.reduce((sum, item) => sum + lengthOf(item, measure), 0);
}

/** What an item's deltas are cut from. */
interface Text {
  readonly kind: ItemDelta["kind"];
  readonly part: number;
  readonly text: string;
  readonly logprobs?: readonly unknown[] | undefined;
  readonly annotations?: readonly Annotation[] | undefined;
}

function textsOf(item: OutputItem): readonly Text[] {
  switch (item.type) {
    case "message": {
      if (typeof item.content === "string") return [{ kind: "text", part: 0, text: item.content }];
      return item.content.flatMap((content, part) =>
        content.type === "text" || content.type === "refusal" ? [{ ...content, kind: content.type, part }] : [],
      );
    }
    case "reasoning": {
      const summary = item.summary.map((text, part) => ({ kind: "summary", part, text }) as const);
      return [{ kind: "reasoning", part: 0, text: item.text }, ...summary];
    }
    case "tool-call":
      return [{ kind: "arguments", part: 0, text: item.arguments }];
    case "compaction":
    case "other":
      return [];
  }
}

/** Each text in one piece, with the notes on it. */
function toSegments(texts: readonly Text[]): readonly Segment[] {
  return texts.flatMap(({ kind, part, text, logprobs, annotations = [] }) => {
    const whole = { kind, part, lengths: [text.length], logprobs: logprobs && [logprobs.length] };
    const notes = { kind: "annotation", part, lengths: annotations.map(() => 0) } as const;
    return text === "" ? [notes] : [whole, notes];
  });
}

function toCutters({ text, logprobs = [], annotations = [] }: Text) {
  return { text: createCutter(text), logprobs: createCutter(logprobs), annotations: createCutter(annotations) };
}

/** Cuts off the next piece with every call. */
function createCutter<Whole extends { slice(from: number, to: number): Whole }>(whole: Whole, at = 0) {
  return (length: number): Whole => whole.slice(at, (at += length));
}
