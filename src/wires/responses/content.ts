/** The parts of a message or of a tool's output, both ways. */
import { type Annotation, type Content, type Part, place, type Role } from "../../core/item.ts";
import { fieldsOf } from "../../core/settings.ts";
import {
  type Fields,
  isObject,
  isPresent,
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
  unsupported,
} from "../fields.ts";
import type { Said } from "../json.ts";

export function requireContent(fields: Fields, key: "content" | "output"): Content {
  return readContent(fields, key, "a string or an array", readPart) ?? missing(pathOf(fields, key));
}

function readPart(part: Fields): Part {
  const read = readers.get(requireName(part, "type"));
  if (read === undefined)
    return { type: "other", extra: { dialect: "responses", fields: part.values }, [place]: pathOf(part) };
  const extra = readExtra(part, knownOfPart, "responses");
  return extra === undefined ? read(part) : { ...read(part), extra };
}

/** The field that has what a model is shown. */
function placeIn(part: Fields, keys: readonly string[]): string {
  return pathOf(part, keys.find((key) => isPresent(part, key)) ?? keys.at(-1));
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
  requireOne(part, ["image_url", "file_id"]);
  const [url, fileId] = [readString(part, "image_url"), readString(part, "file_id")];
  const detail = readString(part, "detail");
  return { type: "image", url, fileId, detail, [place]: placeIn(part, ["image_url", "file_id"]) };
}

function readAudio(part: Fields): Part {
  const audio = requireObject(part, "input_audio");
  const [data, format] = [requireString(audio, "data"), requireName(audio, "format")];
  return { type: "audio", data, format, [place]: pathOf(audio, "data") };
}

function readFile(part: Fields): Part {
  requireOne(part, ["file_id", "file_data", "file_url"]);
  const [fileId, data, url] = [
    readString(part, "file_id"),
    readString(part, "file_data"),
    readString(part, "file_url"),
  ];
  const name = readString(part, "filename");
  return { type: "file", fileId, data, url, name, [place]: placeIn(part, ["file_data", "file_url", "file_id"]) };
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
  if (typeof content === "string") return [role === "assistant" ? writeSaid(content) : writeAsked(content)];
  return content.flatMap((part) => writePart(part, role) ?? (isSent ? refusePart(part) : []));
}

/** Only an assistant's words are output, even when they are sent back, and only an assistant refuses. */
function writePart(part: Part, role: Role): object | undefined {
  const added = fieldsOf(part.extra, "responses");
  switch (part.type) {
    case "text":
      if (role !== "assistant") return { ...added, ...writeAsked(part.text) };
      return { ...added, ...writeSaid(part.text, part.logprobs, part.annotations) };
    case "refusal":
      return { ...added, ...(role === "assistant" ? writeRefusal(part.text) : writeAsked(part.text)) };
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

function refusePart({ extra, [place]: at = "input" }: Part): never {
  const why = `The adapter behind this model does not accept content of type '${String(extra?.fields["type"])}'.`;
  unsupported(at, `${why} Leave that part out, or send it as text, an image, audio or a file.`);
}

function writeAsked(text: string): object {
  return { type: "input_text", text };
}

export function writeRefusal(refusal: string): object {
  return { type: "refusal", refusal };
}

/** A text of an answer, with every field of the wire. */
export function writeSaid(text: string, logprobs: readonly unknown[] = [], notes: readonly Annotation[] = []): object {
  return {
    type: "output_text",
    annotations: notes.map(writeAnnotation),
    logprobs: writeLogprobs(logprobs, true),
    text,
  };
}

export function writeAnnotation({ type, fields }: Annotation): object {
  return { ...fields, type };
}

/** Log probabilities have bytes in an item, and none in an event. */
export function writeLogprobs(reported: readonly unknown[], hasBytes: boolean): readonly object[] {
  const write = ({ token, bytes = [], logprob }: Said, top_logprobs?: readonly object[]): object =>
    hasBytes ? { token, bytes: bytes ?? [], logprob, top_logprobs } : { token, logprob, top_logprobs };
  return reported.filter(isObject).map((entry) => {
    const { top_logprobs: others } = entry;
    const written = Array.isArray(others) ? others.filter(isObject).map((other) => write(other)) : [];
    return write(entry, written);
  });
}
