/** Notes on a text: this dialect knows those that cite a page, and has their fields under the name of their type. */
import type { Annotation } from "../../core/item.ts";

/** `offset`: so much text stands before the part that the note is on, as a message has one text here. */
export function toWireAnnotations(annotations: readonly Annotation[], offset: number): readonly object[] {
  return annotations.flatMap(({ type, fields }) => {
    // Clients that check what they read refuse the whole answer for a type that they do not know.
    if (type !== citation) return [];
    const entries = Object.entries(fields).map(([key, value]) => [key, isPlace(key, value) ? value + offset : value]);
    return [{ type, [type]: Object.fromEntries(entries) }];
  });
}

const citation = "url_citation";

function isPlace(key: string, value: unknown): value is number {
  return (key === "start_index" || key === "end_index") && typeof value === "number";
}
