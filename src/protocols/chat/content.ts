/** Reads the content of a message: a string, or parts (text, image, audio, file or refusal). */
import type { Content, Part } from "../../core/item.ts";
import {
  type Fields,
  missing,
  pathOf,
  readContent as read,
  readExtra,
  readNestedExtra,
  readString,
  requireName,
  requireObject,
  requireString,
} from "../fields.ts";

/** The content of a message that must have one. */
export function requireContent(message: Fields): Content {
  return readContent(message) ?? missing(pathOf(message, "content"));
}

export function readContent(message: Fields): Content | undefined {
  return read(message, "content", "a string or an array of content parts", readPart);
}

function readPart(part: Fields): Part {
  const type = requireString(part, "type");
  return (partReaders.get(type) ?? keepPart)(part);
}

const partReaders: ReadonlyMap<string, (part: Fields) => Part> = new Map([
  ["text", readText],
  ["refusal", readRefusal],
  ["image_url", readImage],
  ["input_audio", readAudio],
  ["file", readFile],
]);

function readText(part: Fields): Part {
  return { type: "text", text: requireString(part, "text"), extra: readExtra(part, knownOfText, "chat") };
}

function readRefusal(part: Fields): Part {
  return { type: "refusal", text: requireString(part, "refusal"), extra: readExtra(part, knownOfRefusal, "chat") };
}

function readImage(part: Fields): Part {
  const image = requireObject(part, "image_url");
  return {
    type: "image",
    url: requireName(image, "url"),
    detail: readString(image, "detail"),
    extra: readNestedExtra(image, knownOfImage, "chat"),
  };
}

function readAudio(part: Fields): Part {
  const audio = requireObject(part, "input_audio");
  return {
    type: "audio",
    data: requireName(audio, "data"),
    format: requireName(audio, "format"),
    extra: readNestedExtra(audio, knownOfAudio, "chat"),
  };
}

function readFile(part: Fields): Part {
  const file = requireObject(part, "file");
  const fileId = readString(file, "file_id");
  const content = readString(file, "file_data");
  if (fileId === undefined && content === undefined) missing(pathOf(file, "file_id"));
  return {
    type: "file",
    fileId,
    data: content,
    name: readString(file, "filename"),
    extra: readNestedExtra(file, knownOfFile, "chat"),
  };
}

/** The field of a part that holds what a model may refuse. */
export function leafOf(part: Part): string {
  switch (part.type) {
    case "image":
      return ".image_url.url";
    case "audio":
      return ".input_audio.data";
    case "file":
      return part.data === undefined ? ".file.file_id" : ".file.file_data";
    default:
      return "";
  }
}

/** A part of an unknown type is kept for a model of the same dialect. */
function keepPart(part: Fields): Part {
  return { type: "other", extra: { dialect: "chat", fields: part.values } };
}

const knownOfText = new Set(["type", "text"]);
const knownOfRefusal = new Set(["type", "refusal"]);
const knownOfImage = new Set(["url", "detail"]);
const knownOfAudio = new Set(["data", "format"]);
const knownOfFile = new Set(["file_id", "file_data", "filename"]);
