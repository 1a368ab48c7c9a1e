/** Reads the content of a message or a tool's output: a string, or a list of parts. */
import type { Content, Part } from "../../core/item.ts";
import {
  type Fields,
  missing,
  pathOf,
  readObjects,
  readString,
  requireName,
  requireObject,
  requireString,
  wrongType,
} from "../fields.ts";
import { readAnnotations } from "./annotations.ts";

export function readContent(fields: Fields, key: string): Content {
  const value = fields.values[key];
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return missing(pathOf(fields, key));
  if (!Array.isArray(value)) throw wrongType(pathOf(fields, key), "a string or an array", value);
  return (readObjects(fields, key) ?? []).map(readPart);
}

/** A part of an unknown type is kept for an adapter that knows it. */
function readPart(part: Fields): Part {
  switch (requireName(part, "type")) {
    case "input_text":
    case "output_text":
    case "text":
      return readText(part);
    case "refusal":
      return { type: "refusal", text: requireString(part, "refusal") };
    case "input_image":
      return readImage(part);
    case "input_file":
      return readFile(part);
    case "input_audio": {
      const audio = requireObject(part, "input_audio");
      return { type: "audio", data: requireString(audio, "data"), format: requireName(audio, "format") };
    }
    default:
      return { type: "other", extra: { dialect: "responses", fields: part.values } };
  }
}

/** Annotations belong to the text and go back with it; log probabilities are no longer needed. */
function readText(part: Fields): Part {
  const text = requireString(part, "text");
  const annotations = readAnnotations(part);
  return annotations.length === 0 ? { type: "text", text } : { type: "text", text, annotations };
}

function readImage(part: Fields): Part {
  const url = readString(part, "image_url");
  const fileId = readString(part, "file_id");
  if (url === undefined && fileId === undefined) missing(pathOf(part, "image_url"));
  return { type: "image", url, fileId, detail: readString(part, "detail") };
}

function readFile(part: Fields): Part {
  const fileId = readString(part, "file_id");
  const data = readString(part, "file_data");
  const url = readString(part, "file_url");
  if (fileId === undefined && data === undefined && url === undefined) missing(pathOf(part, "file_id"));
  return { type: "file", fileId, data, url, name: readString(part, "filename") };
}

/** The field of a part that holds what a model may refuse. */
export function leafOf(part: Part): string {
  switch (part.type) {
    case "image":
      return part.url === undefined ? ".file_id" : ".image_url";
    case "audio":
      return ".input_audio.data";
    case "file":
      if (part.data !== undefined) return ".file_data";
      return part.url === undefined ? ".file_id" : ".file_url";
    default:
      return "";
  }
}
