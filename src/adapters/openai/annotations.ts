/** Notes on a text: chat nests their fields under their type's name, responses does not. */
import type { Annotation } from "../../core/item.ts";
import { type JsonObject, countAt, isCount, isObject, listAt, objectAt, textAt } from "../json.ts";

/** Accepts either form, as servers mix them up; a type is required. */
export function annotationsAt(from: JsonObject): readonly Annotation[] {
  return (listAt(from, "annotations") ?? []).flatMap((entry) => readAnnotation(entry) ?? []);
}

export function readAnnotation(entry: unknown): Annotation | undefined {
  if (!isObject(entry)) return undefined;
  const type = textAt(entry, "type");
  const { type: _, ...beside } = entry;
  return type === undefined ? undefined : { type, fields: objectAt(entry, type) ?? beside };
}

/**
 * The note with every field that its type requires, on a text of this length so far: clients that validate refuse a
 * whole answer for an incomplete note. Undefined if it does not say what it cites.
 */
export function completeAnnotation({ type, fields }: Annotation, textLength: number): Annotation | undefined {
  const form = forms.get(type);
  if (form === undefined) return { type, fields };
  const [source] = form.source;
  if (form.source.some((key) => textAt(fields, key) === undefined)) return undefined;
  const isNamed = form.name === undefined || typeof fields[form.name] === "string";
  const name = isNamed ? {} : { [form.name]: fields[source] };
  return { type, fields: { ...fields, ...name, ...form.placeOf(fields, textLength) } };
}

/** The note with its positions counted from a place so far before the text. */
export function moveAnnotation({ type, fields }: Annotation, by: number): Annotation {
  if (by === 0) return { type, fields };
  const entries = Object.entries(fields).map(([key, value]) => [key, isIndex(key, value) ? value + by : value]);
  return { type, fields: Object.fromEntries(entries) };
}

function isIndex(key: string, value: unknown): value is number {
  return (key === "start_index" || key === "end_index") && typeof value === "number";
}

/** Whether the wires know its type. Clients that validate refuse a whole answer for one that they do not know. */
export function isDescribed({ type }: Annotation): boolean {
  return forms.has(type);
}

/** For the responses wire. */
export function writeAnnotation({ type, fields }: Annotation): JsonObject {
  return { ...fields, type };
}

interface Form {
  /** What it cites, which nobody can make up. */
  readonly source: readonly [string, ...string[]];
  /** The key of its name, which defaults to the source. */
  readonly name?: string;
  readonly placeOf: (fields: JsonObject, textLength: number) => JsonObject;
}

/** The types that the wires describe. */
const forms: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["url_citation", { source: ["url"], name: "title", placeOf: spanOf }],
  ["file_citation", { source: ["file_id"], name: "filename", placeOf: indexOf }],
  ["container_file_citation", { source: ["file_id", "container_id"], name: "filename", placeOf: spanOf }],
  ["file_path", { source: ["file_id"], placeOf: indexOf }],
]);

/** Invalid positions are ignored; a note without any covers the whole text. */
function spanOf(fields: JsonObject, textLength: number): JsonObject {
  const start = countAt(fields, "start_index");
  const end = fields["end_index"];
  return { start_index: start, end_index: isCount(end) ? end : Math.max(start, textLength) };
}

function indexOf(fields: JsonObject): JsonObject {
  return { index: countAt(fields, "index") };
}
