/** The parts of a message or of a tool's output, both ways. */
import type { Annotation, Content, Part, Role } from "../../core/item.ts";
import { fieldsOf } from "../../core/settings.ts";
import { refusePart } from "../common.ts";
import {
  type Fields,
  missing,
  pathOf,
  readArray,
  readContent,
  readExtra,
  readObjects,
  readString,
  requireName,
  requireObject,
  requireString,
} from "../fields.ts";

export function requireContent(fields: Fields, key: "content" | "output"): Content {
  return readContent(fields, key, readPart) ?? missing(pathOf(fields, key));
}

function readPart(part: Fields): Part {
  const read = readers.get(requireName(part, "type"));
  if (read === undefined) return { type: "other", extra: { dialect: "responses", fields: part.values } };
  const extra = readExtra(part, knownOfPart, "responses");
  return extra === undefined ? read(part) : { ...read(part), extra };
}

const readers = new Map<string, (part: Fields) => Part>([
  ["input_text", readText],
  ["output_text", readText],
  ["text", readText],
  ["refusal", (part) => ({ type: "refusal", text: requireString(part, "refusal") })],
  ["input_image", readImage],
  ["input_audio", readAudio],
  ["input_file", readFile],
]);

function readText(part: Fields): Part {
  const text = requireString(part, "text");
  const notes = readObjects(part, "annotations") ?? [];
  const logprobs = readArray(part, "logprobs") ?? [];
  if (notes.length === 0 && logprobs.length === 0) return { type: "text", text };
  // In this dialect the fields of a note stand beside its type.
  const annotations = notes.map((note): Annotation => {
    const { type: _type, ...fields } = note.values;
    return { type: requireName(note, "type"), fields };
  });
  return { type: "text", text, ...(notes.length > 0 && { annotations }), ...(logprobs.length > 0 && { logprobs }) };
}

function readImage(part: Fields): Part {
  const [url, fileId] = [readString(part, "image_url"), readString(part, "file_id")];
  if ((url ?? fileId) === undefined) missing(pathOf(part, "image_url"));
  return { type: "image", url, fileId, detail: readString(part, "detail") };
}

function readAudio(part: Fields): Part {
  const audio = requireObject(part, "input_audio");
  return { type: "audio", data: requireString(audio, "data"), format: requireName(audio, "format") };
}

function readFile(part: Fields): Part {
  const [fileId, data] = [readString(part, "file_id"), readString(part, "file_data")];
  const url = readString(part, "file_url");
  if ((fileId ?? data ?? url) === undefined) missing(pathOf(part, "file_id"));
  return { type: "file", fileId, data, url, name: readString(part, "filename") };
}

/** Of all types. The official client adds `parsed` to the texts of an answer: nobody needs it. */
const knownOfPart = new Set(
  "type text annotations logprobs parsed refusal image_url input_audio file_id file_data file_url filename".split(" "),
);

/** A list of parts. What only another dialect knows is not shown to a caller, and never left out of what is sent. */
export function writeContent(content: Content, role: Role, isSent: boolean): readonly object[] {
  if (typeof content === "string") return [writePart({ type: "text", text: content }, role) ?? {}];
  return content.flatMap((part) => writePart(part, role) ?? (isSent ? refusePart(part) : []));
}

/** Only an assistant's words are output, even when they are sent back. */
function writePart(part: Part, role: Role): object | undefined {
  const added = fieldsOf(part.extra, "responses");
  switch (part.type) {
    case "text":
      if (role !== "assistant") return { ...added, type: "input_text", text: part.text };
      return { ...added, ...writeSaid(part.text, part.logprobs, part.annotations) };
    case "refusal":
      return { ...added, type: "refusal", refusal: part.text };
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

/** A text of an answer, with every field of the wire. */
export function writeSaid(text: string, logprobs: readonly unknown[] = [], notes: readonly Annotation[] = []): object {
  return { type: "output_text", annotations: notes.map(writeAnnotation), logprobs, text };
}

export function writeAnnotation({ type, fields }: Annotation): object {
  return { ...fields, type };
}
