/** Notes on the texts of an answer: each is told once and behind its text, and its places count through a message's texts. */
import type { Delta } from "../../../core/delta.ts";
import type { Annotation } from "../../../core/item.ts";
import { completeAnnotation } from "../annotations.ts";

/** A part of a message, by the numbers that the wire gives to both. */
export interface PartPlace {
  readonly item: number;
  readonly part: number;
}

export interface NoteTeller {
  /** So many characters more of the part's text are told. */
  hearText(place: PartPlace, length: number): void;
  /** A note on its own. One that comes before its text waits, and those after it with it, until the part is whole. */
  hearNote(place: PartPlace, annotation: Annotation, deltas: Delta[]): void;
  /** All notes of a part that is whole, of which some may be told. */
  hearAll(place: PartPlace, annotations: readonly Annotation[], deltas: Delta[]): void;
}

export function createNoteTeller(): NoteTeller {
  const texts = new Map<string, { readonly start: number; length: number }>();
  const told = new Map<string, number>();
  const waiting = new Set<string>();

  function tell(place: PartPlace, annotation: Annotation, deltas: Delta[]): void {
    const name = nameOf(place);
    told.set(name, (told.get(name) ?? 0) + 1);
    const { start, length } = texts.get(name) ?? { start: 0, length: 0 };
    const whole = completeAnnotation(annotation, length);
    if (whole !== undefined) deltas.push({ type: "annotation", annotation: move(whole, start) });
  }

  /** Texts that follow each other become one, so much of which stands before this part. */
  function startOf({ item, part }: PartPlace): number {
    const before = texts.get(nameOf({ item, part: part - 1 }));
    return before === undefined ? 0 : before.start + before.length;
  }

  return {
    hearText(place, length) {
      if (length === 0) return;
      const name = nameOf(place);
      const text = texts.get(name) ?? { start: startOf(place), length: 0 };
      text.length += length;
      texts.set(name, text);
    },
    hearNote(place, annotation, deltas) {
      const name = nameOf(place);
      if (!texts.has(name)) waiting.add(name);
      if (!waiting.has(name)) tell(place, annotation, deltas);
    },
    hearAll(place, annotations, deltas) {
      for (const annotation of annotations.slice(told.get(nameOf(place)) ?? 0)) tell(place, annotation, deltas);
    },
  };
}

function nameOf({ item, part }: PartPlace): string {
  return `${item} ${part}`;
}

function move({ type, fields }: Annotation, by: number): Annotation {
  if (by === 0) return { type, fields };
  const entries = Object.entries(fields).map(([key, value]) => [key, isIndex(key, value) ? value + by : value]);
  return { type, fields: Object.fromEntries(entries) };
}

function isIndex(key: string, value: unknown): value is number {
  return (key === "start_index" || key === "end_index") && typeof value === "number";
}
