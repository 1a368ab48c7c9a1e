/** The content of a message, a string or parts, read and written. */
import { GatewayError } from "../../core/errors.ts";
import { type Content, fieldsOf, type Part } from "../../core/item.ts";
import {
  type Fields,
  missing,
  pathOf,
  readContent as read,
  readExtra,
  readString,
  requireName,
  requireObject,
  requireString,
} from "../fields.ts";

export function readContent(message: Fields): Content | undefined {
  return read(message, "content", "a string or an array of content parts", readPart);
}

/** The content of a message that must have one. */
export function requireContent(message: Fields): Content {
  return readContent(message) ?? missing(pathOf(message, "content"));
}

function readPart(part: Fields): Part {
  const type = requireString(part, "type");
  const known = knownOf.get(type);
  const extra = known && readExtra(part, known, "chat");
  switch (type) {
    case "text":
      return { type, text: requireString(part, "text"), extra };
    case "refusal":
      return { type, text: requireString(part, "refusal"), extra };
    case "image_url": {
      const image = requireObject(part, "image_url");
      return { type: "image", url: requireName(image, "url"), detail: readString(image, "detail"), extra };
    }
    case "input_audio": {
      const audio = requireObject(part, "input_audio");
      return { type: "audio", data: requireName(audio, "data"), format: requireName(audio, "format"), extra };
    }
    case "file": {
      const file = requireObject(part, "file");
      const [fileId, data] = [readString(file, "file_id"), readString(file, "file_data")];
      if (fileId === undefined && data === undefined) missing(pathOf(file, "file_id"));
      return { type, fileId, data, name: readString(file, "filename"), extra };
    }
    default:
      return { type: "other", extra: { dialect: "chat", fields: part.values } };
  }
}

/** Fields of a part that we have words for, by its type. */
const knownOf: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  ["text", "refusal", "image_url", "input_audio", "file"].map((type) => [type, new Set(["type", type])]),
);

/** One plain text is written as a string: some servers know no other form. */
export function writeContent(content: Content): string | unknown[] {
  if (typeof content === "string") return content;
  const [first] = content;
  if (first === undefined) return "";
  const isPlain = content.length === 1 && first.type === "text" && first.extra?.dialect !== "chat";
  return isPlain ? first.text : content.map(writePart);
}

function writePart(part: Part): unknown {
  const extra = fieldsOf(part.extra, "chat");
  switch (part.type) {
    case "text":
      return { ...extra, type: "text", text: part.text };
    case "refusal":
      return { ...extra, type: "refusal", refusal: part.text };
    case "image":
      if (part.url === undefined) return { ...extra, type: "file", file: { file_id: part.fileId } };
      return { ...extra, type: "image_url", image_url: { url: part.url, detail: part.detail } };
    case "audio":
      return { ...extra, type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      if (part.fileId === undefined && part.data === undefined)
        refusePart("files by URL. Send the file's content, or the id of an uploaded one.");
      return { ...extra, type: "file", file: { file_id: part.fileId, file_data: part.data, filename: part.name } };
    case "other":
      return (
        extra ?? refusePart(`content of type '${String(part.extra.fields["type"])}'. Send it as text, image or file.`)
      );
  }
}

function refusePart(what: string): never {
  throw new GatewayError("unsupported_parameter", `The adapter behind this model does not accept ${what}`);
}
