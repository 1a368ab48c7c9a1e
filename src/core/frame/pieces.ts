/** The pieces an answer was cut into when it was streamed: with its items, enough to stream it again exactly. */
import type { ItemDelta, OutputItem } from "../event.ts";
import type { Annotation, Extra, Part } from "../item.ts";

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

export interface PiecesRecorder {
  /** `isMarked`: it is a message, and what its dialect adds is already known, rather than at its end. */
  beginItem(isMarked: boolean): void;
  record(delta: Omit<ItemDelta, "type" | "index">): void;
  /** What was recorded; undefined if there were too many pieces. */
  toPieces(): Pieces | undefined;
}

/** How many deltas of one answer can be replayed exactly. */
export const maxPieces = 100_000;

export function createPiecesRecorder(): PiecesRecorder {
  const items: WritableSegment[][] = [];
  let current: WritableSegment | undefined;
  let count = 0;
  return {
    beginItem(isMarked) {
      items.push(isMarked ? [{ kind: "extra", part: 0, lengths: [], logprobs: undefined }] : []);
      current = undefined;
    },
    record({ kind, part, text, logprobs, extra }) {
      if (++count > maxPieces) return;
      const isSame = current?.kind === kind && current.part === part;
      if (current === undefined || !isSame || (current.logprobs === undefined) !== (logprobs === undefined)) {
        current = { kind, part, lengths: [], logprobs: logprobs === undefined ? undefined : [] };
        items.at(-1)?.push(current);
      }
      current.lengths.push(extra === undefined ? text.length : Object.keys(extra.fields).length);
      current.logprobs?.push(logprobs?.length ?? 0);
    },
    toPieces: () => (count > maxPieces ? undefined : items),
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
  const told = new Map<string, { at: number; logprobsAt: number }>();
  const added = item.type === "tool-call" ? item.extra : undefined;
  const fields = Object.entries(added?.fields ?? {});
  for (const { kind, part, lengths, logprobs } of segments ?? wholeSegments(item)) {
    const source = sourceOf(item, kind, part);
    const name = `${kind} ${part}`;
    const place = told.get(name) ?? {
      at: kind === "extra" ? fields.length - countLate(segments) : 0,
      logprobsAt: 0,
    };
    told.set(name, place);
    for (const [number, length] of lengths.entries()) {
      if (kind === "annotation") {
        yield { type: "item-delta", index, kind, part, text: "", annotation: source.annotations[place.at++] };
        continue;
      }
      if (kind === "extra") {
        const cut = fields.slice(place.at, (place.at += length));
        const extra = added && { dialect: added.dialect, fields: Object.fromEntries(cut) };
        yield { type: "item-delta", index, kind, part, text: "", extra };
        continue;
      }
      const text = source.text.slice(place.at, (place.at += length));
      const counted = logprobs?.[number];
      if (counted === undefined) yield { type: "item-delta", index, kind, part, text };
      else {
        const entries = source.logprobs.slice(place.logprobsAt, (place.logprobsAt += counted));
        yield { type: "item-delta", index, kind, part, text, logprobs: entries };
      }
    }
  }
}

/** Whether what its dialect adds to a message was told at its start. */
export function isMarked(segments: readonly Segment[] | undefined): boolean {
  return segments?.[0]?.kind === "extra";
}

/** How many fields of a call's dialect came after it had begun. */
export function countLate(segments: readonly Segment[] | undefined): number {
  let late = 0;
  for (const { kind, lengths } of segments ?? []) if (kind === "extra") for (const length of lengths) late += length;
  return late;
}

/** Some of the fields, by position; undefined if there are none. */
export function cutExtra({ dialect, fields }: Extra, from: number, to: number): Extra | undefined {
  const entries = Object.entries(fields).slice(from, to);
  return entries.length === 0 ? undefined : { dialect, fields: Object.fromEntries(entries) };
}

function wholeSegments(item: OutputItem): readonly Segment[] {
  switch (item.type) {
    case "message":
      if (typeof item.content === "string") return segmentOf("text", 0, item.content);
      return item.content.flatMap((part, number) => {
        if (part.type === "text") return segmentsOf(part, number);
        return part.type === "refusal" ? segmentOf("refusal", number, part.text) : [];
      });
    case "reasoning":
      return [
        ...segmentOf("reasoning", 0, item.text),
        ...item.summary.flatMap((text, part) => segmentOf("summary", part, text)),
      ];
    case "tool-call":
      return segmentOf("arguments", 0, item.arguments);
    case "compaction":
    case "other":
      return [];
  }
}

/** A text in one piece, and each note on it. */
function segmentsOf({ text, logprobs, annotations = [] }: TextPart, part: number): readonly Segment[] {
  const lengths = annotations.map(() => 0);
  return segmentOf("text", part, text, logprobs).concat(
    lengths.length === 0 ? [] : { kind: "annotation", part, lengths },
  );
}

type TextPart = Extract<Part, { type: "text" }>;

/** A text in one piece. */
function segmentOf(
  kind: ItemDelta["kind"],
  part: number,
  text: string,
  logprobs?: readonly unknown[],
): readonly Segment[] {
  return text === "" ? [] : [{ kind, part, lengths: [text.length], logprobs: logprobs && [logprobs.length] }];
}

/** What an item's deltas are cut from. */
interface Source {
  readonly text: string;
  readonly logprobs: readonly unknown[];
  readonly annotations: readonly Annotation[];
}

const nothing: Source = { text: "", logprobs: [], annotations: [] };

/** An archive may describe pieces that the item does not have: they are empty, so that no text is emitted twice. */
function sourceOf(item: OutputItem, kind: ItemDelta["kind"], part: number): Source {
  switch (item.type) {
    case "message": {
      const parts: readonly Part[] =
        typeof item.content === "string" ? [{ type: "text", text: item.content }] : item.content;
      const content = parts[part];
      if (content?.type === "refusal" && kind === "refusal") return { ...nothing, text: content.text };
      if (content?.type !== "text" || (kind !== "text" && kind !== "annotation")) return nothing;
      return { text: content.text, logprobs: content.logprobs ?? [], annotations: content.annotations ?? [] };
    }
    case "reasoning":
      if (kind === "summary") return { ...nothing, text: item.summary[part] ?? "" };
      return kind === "reasoning" && part === 0 ? { ...nothing, text: item.text } : nothing;
    case "tool-call":
      return kind === "arguments" && part === 0 ? { ...nothing, text: item.arguments } : nothing;
    case "compaction":
    case "other":
      return nothing;
  }
}
