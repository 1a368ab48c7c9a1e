/** Writes notes on a text: this dialect knows only page citations, with their fields under their type's name. */
import type { Annotation } from "../../core/item.ts";

/** `offset`: how much text precedes the note's part, as a message here has a single text. */
export function toWireAnnotations(annotations: readonly Annotation[], offset: number): readonly object[] {
  return annotations.flatMap(({ type, fields }) => {
    // Clients that validate refuse a whole answer for an unknown type.
    if (type !== citation) return [];
    const { start_index, end_index, title, url } = fields;
    const places = { start_index: move(start_index, offset), end_index: move(end_index, offset) };
    return [{ type, [type]: { ...places, title, url } }];
  });
}

const citation = "url_citation";

function move(place: unknown, by: number): unknown {
  return typeof place === "number" ? place + by : place;
}
