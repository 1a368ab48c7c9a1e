/** Notes on a text: chat writes their fields under the name of their type, responses beside it. */
import type { Annotation } from "../../core/item.ts";
import { type JsonObject, isObject, listAt, objectAt, textAt } from "../json.ts";

/** In either form, as servers mix them up; what has no type is none. */
export function annotationsAt(from: JsonObject): readonly Annotation[] {
  return (listAt(from, "annotations") ?? []).flatMap((entry) => readAnnotation(entry) ?? []);
}

export function readAnnotation(entry: unknown): Annotation | undefined {
  if (!isObject(entry)) return undefined;
  const type = textAt(entry, "type");
  const { type: _, ...beside } = entry;
  return type === undefined ? undefined : { type, fields: objectAt(entry, type) ?? beside };
}

/** As responses are sent it back. */
export function writeAnnotation({ type, fields }: Annotation): JsonObject {
  return { ...fields, type };
}
