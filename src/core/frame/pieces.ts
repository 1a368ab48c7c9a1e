/** Into which pieces an answer was cut when it was streamed: with the items themselves, enough to stream it again exactly. */
import type { ItemDelta, OutputItem } from "../event.ts";
import type { Part } from "../item.ts";

/** For each item of an answer the stretches of its deltas, in the order in which they were told. */
export type Pieces = readonly (readonly Stretch[])[];

/** Deltas of one kind and part that followed each other. */
interface Stretch {
  readonly kind: ItemDelta["kind"];
  readonly part: number;
  /** How long each delta's text was. */
  readonly lengths: readonly number[];
  /** How many log probabilities each delta carried, where there were any. */
  readonly logprobs?: readonly number[] | undefined;
}

export interface PiecesRecorder {
  beginItem(): void;
  hear(delta: Omit<ItemDelta, "type" | "index">): void;
  /** What was recorded; nothing when there were more pieces than may be kept. */
  toPieces(): Pieces | undefined;
}

/** So many deltas of one answer can be told again one by one. */
const maxPieces = 100_000;

export function createPiecesRecorder(): PiecesRecorder {
  const items: WritableStretch[][] = [];
  let current: WritableStretch | undefined;
  let count = 0;
  return {
    beginItem() {
      items.push([]);
      current = undefined;
    },
    hear({ kind, part, text, logprobs }) {
      if (++count > maxPieces) return;
      const isSame = current?.kind === kind && current.part === part;
      if (current === undefined || !isSame || (current.logprobs === undefined) !== (logprobs === undefined)) {
        current = { kind, part, lengths: [], logprobs: logprobs === undefined ? undefined : [] };
        items.at(-1)?.push(current);
      }
      current.lengths.push(text.length);
      current.logprobs?.push(logprobs?.length ?? 0);
    },
    toPieces: () => (count > maxPieces ? undefined : items),
  };
}

interface WritableStretch {
  kind: ItemDelta["kind"];
  part: number;
  lengths: number[];
  logprobs: number[] | undefined;
}

/** The deltas of a finished item, cut as they were; without a record each text is one piece. */
export function* cutItem(
  item: OutputItem,
  index: number,
  stretches: readonly Stretch[] | undefined,
): Generator<ItemDelta> {
  const told = new Map<string, { at: number; logprobsAt: number }>();
  for (const { kind, part, lengths, logprobs } of stretches ?? wholeStretches(item)) {
    const source = sourceOf(item, kind, part);
    const name = `${kind} ${part}`;
    const place = told.get(name) ?? { at: 0, logprobsAt: 0 };
    told.set(name, place);
    for (const [number, length] of lengths.entries()) {
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

function wholeStretches(item: OutputItem): readonly Stretch[] {
  switch (item.type) {
    case "message":
      if (typeof item.content === "string") return stretchOf("text", 0, item.content);
      return item.content.flatMap((part, number) => {
        if (part.type === "text") return stretchOf("text", number, part.text, part.logprobs);
        return part.type === "refusal" ? stretchOf("refusal", number, part.text) : [];
      });
    case "reasoning":
      return [
        ...stretchOf("reasoning", 0, item.text),
        ...item.summary.flatMap((text, part) => stretchOf("summary", part, text)),
      ];
    case "tool-call":
      return stretchOf("arguments", 0, item.arguments);
    case "compaction":
      return [];
  }
}

/** A text in one piece. */
function stretchOf(
  kind: ItemDelta["kind"],
  part: number,
  text: string,
  logprobs?: readonly unknown[],
): readonly Stretch[] {
  return text === "" ? [] : [{ kind, part, lengths: [text.length], logprobs: logprobs && [logprobs.length] }];
}

const nothing = { text: "", logprobs: [] as readonly unknown[] };

function sourceOf(item: OutputItem, kind: ItemDelta["kind"], part: number): typeof nothing {
  switch (item.type) {
    case "message": {
      const content: Part | undefined =
        typeof item.content === "string" ? { type: "text", text: item.content } : item.content[part];
      if (content?.type === "text") return { text: content.text, logprobs: content.logprobs ?? [] };
      return content?.type === "refusal" ? { text: content.text, logprobs: [] } : nothing;
    }
    case "reasoning":
      return { text: kind === "summary" ? (item.summary[part] ?? "") : item.text, logprobs: [] };
    case "tool-call":
      return { text: item.arguments, logprobs: [] };
    case "compaction":
      return nothing;
  }
}
