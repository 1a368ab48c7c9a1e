/** Reads the content of a message or a tool's output: a string, or a list of parts. */
import type { Content, Part } from "../../core/item.ts";
import {
  type Fields,
  missing,
  pathOf,
  readArray,
  readContent,
  readExtra,
  readNestedExtra,
  readString,
  requireName,
  requireObject,
  requireString,
} from "../fields.ts";
import { readAnnotations } from "./annotations.ts";

export function requireContent(fields: Fields, key: "content" | "output"): Content {
  return readContent(fields, key, "a string or an array", readPart) ?? missing(pathOf(fields, key));
}

function readPart(part: Fields): Part {
  const type = requireName(part, "type");
  return (partReaders.get(type) ?? keepPart)(part);
}

const partReaders: ReadonlyMap<string, (part: Fields) => Part> = new Map([
  ["input_text", readText],
  ["output_text", readText],
  ["text", readText],
  ["refusal", readRefusal],
  ["input_image", readImage],
  ["input_audio", readAudio],
  ["input_file", readFile],
]);

/** Annotations belong to the text and go back with it; log probabilities are no longer needed. */
function readText(part: Fields): Part {
  const text = requireString(part, "text");
  const annotations = readAnnotations(part);
  readArray(part, "logprobs");
  const extra = readExtra(part, knownOfText, "responses");
  return { type: "text", text, ...(annotations.length > 0 && { annotations }), extra };
}

function readRefusal(part: Fields): Part {
  return { type: "refusal", text: requireString(part, "refusal"), extra: readExtra(part, knownOfRefusal, "responses") };
}

function readImage(part: Fields): Part {
  const url = readString(part, "image_url");
  const fileId = readString(part, "file_id");
  if (url === undefined && fileId === undefined) missing(pathOf(part, "image_url"));
  const extra = readExtra(part, knownOfImage, "responses");
  return { type: "image", url, fileId, detail: readString(part, "detail"), extra };
}

function readAudio(part: Fields): Part {
  const audio = requireObject(part, "input_audio");
  return {
    type: "audio",
    data: requireString(audio, "data"),
    format: requireName(audio, "format"),
    extra: readNestedExtra(audio, knownOfAudio, "responses"),
  };
}

function readFile(part: Fields): Part {
  const fileId = readString(part, "file_id");
  const data = readString(part, "file_data");
  const url = readString(part, "file_url");
  if (fileId === undefined && data === undefined && url === undefined) missing(pathOf(part, "file_id"));
  const extra = readExtra(part, knownOfFile, "responses");
  return { type: "file", fileId, data, url, name: readString(part, "filename"), extra };
}

/** A part of an unknown type is kept for an adapter that knows it. */
function keepPart(part: Fields): Part {
  return { type: "other", extra: { dialect: "responses", fields: part.values } };
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

/** The official client adds `parsed` to the texts of an answer: nobody needs it. */
const knownOfText = new Set(["type", "text", "annotations", "logprobs", "parsed"]);
const knownOfRefusal = new Set(["type", "refusal"]);
const knownOfImage = new Set(["type", "image_url", "file_id", "detail"]);
const knownOfAudio = new Set(["data", "format"]);
const knownOfFile = new Set(["type", "file_id", "file_data", "file_url", "filename"]);
