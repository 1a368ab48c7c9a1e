/** Reads a channel's message as carefully as a request's body, because not every program is type-checked. */
import type { Content, Part } from "./core/item.ts";
import {
  type Fields,
  isObject,
  missing,
  notAllowed,
  pathOf,
  readString,
  requireObject,
  requireName,
  requireString,
  toFields,
  wrongType,
} from "./wires/fields.ts";

export interface Message {
  /** Text, or parts with images and files. */
  readonly content: Content;
  /** The conversation's name, which clients over HTTP send as X-Session-Id; without it nothing is remembered. */
  readonly session?: string | undefined;
  /** The session's owner; by default that of tokens without a name. */
  readonly owner?: string | undefined;
  /** By default the configured one, or the first chat model that adapters list. */
  readonly model?: string | undefined;
  /** Instructions to the model for this turn, placed first. */
  readonly instructions?: string | undefined;
  /** Cancels the turn. */
  readonly signal?: AbortSignal | undefined;
}

/** Throws an error that names the wrong field. */
export function readMessage(message: unknown): Message {
  const fields = toFields(message, "message");
  return {
    content: readContent(fields),
    session: readString(fields, "session"),
    owner: readString(fields, "owner"),
    model: readString(fields, "model") === undefined ? undefined : requireName(fields, "model"),
    instructions: readString(fields, "instructions"),
    signal: readSignal(fields),
  };
}

function readSignal(fields: Fields): AbortSignal | undefined {
  const { signal } = fields.values;
  if (signal === undefined || signal === null) return undefined;
  if (isSignal(signal)) return signal;
  throw wrongType(pathOf(fields, "signal"), "an AbortSignal", signal);
}

/** Some programs use one that is not the platform's own. */
function isSignal(value: unknown): value is AbortSignal {
  return isObject(value) && typeof value["aborted"] === "boolean" && typeof value["addEventListener"] === "function";
}

function readContent(fields: Fields): Content {
  const { content } = fields.values;
  const path = pathOf(fields, "content");
  if (content === undefined || content === null) return missing(path);
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of parts", content);
  for (const [index, part] of content.entries()) checkPart(toFields(part, `${path}[${index}]`));
  return content;
}

type Check = (fields: Fields, key: string) => unknown;

const partFields: Readonly<Record<Part["type"], Readonly<Record<string, Check>>>> = {
  text: { text: requireString },
  refusal: { text: requireString },
  image: { url: readString, fileId: readString, detail: readString },
  audio: { data: requireString, format: requireString },
  file: { fileId: readString, data: readString, url: readString, name: readString },
  other: { extra: requireObject },
};

/** The part's source: one must be present. */
const sources: Partial<Record<Part["type"], readonly [string, ...string[]]>> = {
  image: ["url", "fileId"],
  file: ["fileId", "data", "url"],
};

function checkPart(part: Fields): void {
  const type = requireString(part, "type");
  if (!Object.hasOwn(partFields, type)) notAllowed(pathOf(part, "type"), type, Object.keys(partFields));
  for (const [key, check] of Object.entries(partFields[type as Part["type"]])) check(part, key);
  const keys = sources[type as Part["type"]];
  if (keys !== undefined && !keys.some((key) => readString(part, key))) missing(pathOf(part, keys[0]));
}
