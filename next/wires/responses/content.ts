/** The parts of a message or of a tool's output, both ways. */
import { type Annotation, type Content, fieldsOf, type Part, type Role } from "../../core/item.ts";
import {
  type Fields,
  isObject,
  isPresent,
  missing,
  pathOf,
  readContent,
  readExtra,
  readObjects,
  readString,
  requireName,
  requireObject,
  requireString,
  unsupported,
} from "../fields.ts";
import type { Said } from "../json.ts";

export function requireContent(fields: Fields, key: "content" | "output"): Content {
  return readContent(fields, key, "a string or an array", readPart) ?? missing(pathOf(fields, key));
}

function readPart(part: Fields): Part {
  const read = readers.get(requireName(part, "type"));
  if (read === undefined) return { type: "other", extra: { dialect: "responses", fields: part.values } };
  const extra = readExtra(part, knownOfPart, "responses");
  return extra === undefined ? read(part) : { ...read(part), extra };
}

const readers: ReadonlyMap<string, (part: Fields) => Part> = new Map([
  ["input_text", readText],
  ["output_text", readText],
  ["text", readText],
  ["refusal", (part) => ({ type: "refusal", text: requireString(part, "refusal") })],
  ["input_image", readImage],
  ["input_audio", readAudio],
  ["input_file", readFile],
]);

/** Annotations belong to the text and go back with it; log probabilities are no longer needed. */
function readText(part: Fields): Part {
  const text = requireString(part, "text");
  const notes = readObjects(part, "annotations") ?? [];
  if (notes.length === 0) return { type: "text", text };
  return { type: "text", text, annotations: notes.map((note) => toAnnotation(requireName(note, "type"), note.values)) };
}

function readImage(part: Fields): Part {
  requireOne(part, ["image_url", "file_id"]);
  const [url, fileId] = [readString(part, "image_url"), readString(part, "file_id")];
  return { type: "image", url, fileId, detail: readString(part, "detail") };
}

function readAudio(part: Fields): Part {
  const audio = requireObject(part, "input_audio");
  return { type: "audio", data: requireString(audio, "data"), format: requireName(audio, "format") };
}

function readFile(part: Fields): Part {
  requireOne(part, ["file_id", "file_data", "file_url"]);
  const [fileId, data, url] = [
    readString(part, "file_id"),
    readString(part, "file_data"),
    readString(part, "file_url"),
  ];
  return { type: "file", fileId, data, url, name: readString(part, "filename") };
}

function requireOne(part: Fields, keys: readonly [string, ...string[]]): void {
  if (!keys.some((key) => isPresent(part, key))) missing(pathOf(part, keys[0]));
}

/** Of all types. The official client adds `parsed` to the texts of an answer: nobody needs it. */
const knownOfPart = new Set(
  "type text annotations logprobs parsed refusal image_url input_audio file_id file_data file_url filename".split(" "),
);

/** A list of parts. What only another dialect knows is not shown to a caller, and never left out of what is sent. */
export function writeContent(content: Content, role: Role, isSent: boolean): readonly object[] {
  if (typeof content === "string") return [writeText(content, role)];
  return content.flatMap((part) => writePart(part, role) ?? (isSent ? refusePart(part) : []));
}

/** Only an assistant's words are output, even when they are sent back, and only an assistant refuses. */
function writePart(part: Part, role: Role): object | undefined {
  const added = fieldsOf(part.extra, "responses");
  switch (part.type) {
    case "text":
      return { ...added, ...writeText(part.text, role, part.logprobs, part.annotations) };
    case "refusal":
      return role === "assistant" ? { ...added, ...writeRefusal(part.text) } : writeText(part.text, role);
    case "image": {
      const { url: image_url, fileId: file_id, detail = "auto" } = part;
      return { ...added, type: "input_image", detail, image_url, file_id };
    }
    case "audio":
      return { ...added, type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file": {
      const { fileId: file_id, name: filename, data: file_data, url: file_url } = part;
      return { ...added, type: "input_file", file_id, filename, file_data, file_url };
    }
    case "other":
      return added;
  }
}

function refusePart({ extra }: Part): never {
  const why = `The adapter behind this model does not accept content of type '${String(extra?.fields["type"])}'.`;
  unsupported("input", `${why} Leave that part out, or send it as text, an image, audio or a file.`);
}

export function writeRefusal(refusal: string): object {
  return { type: "refusal", refusal };
}

export function writeText(
  text: string,
  role: Role,
  logprobs: readonly unknown[] = [],
  annotations: readonly Annotation[] = [],
): object {
  if (role !== "assistant") return { type: "input_text", text };
  const notes = annotations.map(writeAnnotation);
  return { type: "output_text", annotations: notes, logprobs: writeLogprobs(logprobs, true), text };
}

/** In this dialect the fields of a note stand beside its type. */
export function toAnnotation(type: string, { type: _, ...fields }: Said): Annotation {
  return { type, fields };
}

export function writeAnnotation({ type, fields }: Annotation): object {
  return { ...fields, type };
}

/** Log probabilities have bytes in an item, and none in an event. */
export function writeLogprobs(reported: readonly unknown[], hasBytes: boolean): readonly object[] {
  return reported.filter(isObject).map((entry) => {
    const { top_logprobs: listed } = entry;
    const others = Array.isArray(listed) ? listed.filter(isObject) : [];
    return Object.assign(writeLogprob(entry, hasBytes), {
      top_logprobs: others.map((each) => writeLogprob(each, hasBytes)),
    });
  });
}

function writeLogprob({ token, bytes, logprob }: Said, hasBytes: boolean): object {
  return hasBytes ? { token, bytes: bytes ?? [], logprob } : { token, logprob };
}
