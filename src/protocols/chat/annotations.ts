/** Notes on a text: this dialect knows those that cite a page, and has their fields under the name of their type. */
import type { Annotation } from "../../core/item.ts";

/** `offset`: so much text stands before the part that the note is on, as a message has one text here. */
export function toWireAnnotations(annotations: readonly Annotation[], offset: number): readonly object[] {
  return annotations.flatMap(({ type, fields }) => {
    // Clients that check what they read refuse the whole answer for a type that they do not know.
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
