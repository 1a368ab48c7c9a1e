/** Notes on a text: in this dialect their fields stand beside their type. */
import type { Annotation } from "../../core/item.ts";
import { type Fields, readObjects, requireName } from "../fields.ts";

export function readAnnotations(part: Fields): readonly Annotation[] {
  return (readObjects(part, "annotations") ?? []).map((annotation) => {
    const { type: _, ...fields } = annotation.values;
    return { type: requireName(annotation, "type"), fields };
  });
}

export function toWireAnnotation({ type, fields }: Annotation): object {
  return { ...fields, type };
}
