/** Tracks an answer's texts and sends each note once, after its text, with positions counted across a message. */
import type { Annotation } from "../../../core/item.ts";
import { countAt, type JsonObject } from "../../json.ts";
import { completeAnnotation } from "../annotations.ts";
import type { Say } from "../stream.ts";

/** A part of a message, by the wire's indexes. */
export interface PartPlace {
  readonly item: number;
  readonly part: number;
}

/** The part that an event is about. */
export function placeOf(event: JsonObject, item: number): PartPlace {
  return { item, part: countAt(event, "content_index") };
}

export interface NoteSender {
  /** Records text sent for the part. */
  recordText(place: PartPlace, text: string): void;
  /** Sends the rest of its whole text; nothing if it differs from what was sent, or a later part has begun. */
  completeText(place: PartPlace, whole: string): void;
  /** A single note. One that precedes its text waits, and so do those after it, until the part is complete. */
  addNote(place: PartPlace, annotation: Annotation): void;
  /** All notes of a complete part; some may have been sent. */
  completeNotes(place: PartPlace, annotations: readonly Annotation[]): void;
}

export function createNoteSender(say: Say): NoteSender {
  const texts = new Map<string, { readonly start: number; said: string }>();
  const told = new Map<string, number>();
  const waiting = new Set<string>();

  function emit(place: PartPlace, annotation: Annotation): void {
    const name = nameOf(place);
    told.set(name, (told.get(name) ?? 0) + 1);
    const { start, said } = texts.get(name) ?? { start: 0, said: "" };
    const whole = completeAnnotation(annotation, said.length);
    if (whole !== undefined) say({ type: "annotation", annotation: move(whole, start) });
  }

  /** Consecutive texts become one; this much of it precedes this part. */
  function startOf({ item, part }: PartPlace): number {
    const before = texts.get(nameOf({ item, part: part - 1 }));
    return before === undefined ? 0 : before.start + before.said.length;
  }

  return {
    recordText(place, text) {
      if (text === "") return;
      const name = nameOf(place);
      const known = texts.get(name);
      if (known === undefined) texts.set(name, { start: startOf(place), said: text });
      else known.said += text;
    },
    completeText({ item, part }, whole) {
      const known = texts.get(nameOf({ item, part }));
      if (known === undefined || texts.has(nameOf({ item, part: part + 1 }))) return;
      const { said } = known;
      if (whole.length === said.length || !whole.startsWith(said)) return;
      known.said = whole;
      say({ type: "text", text: whole.slice(said.length) });
    },
    addNote(place, annotation) {
      const name = nameOf(place);
      if (!texts.has(name)) waiting.add(name);
      if (!waiting.has(name)) emit(place, annotation);
    },
    completeNotes(place, annotations) {
      for (const annotation of annotations.slice(told.get(nameOf(place)) ?? 0)) emit(place, annotation);
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
