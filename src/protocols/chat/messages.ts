/** Reads `messages` into items: a message that carries several things becomes several items, in order. */
import { GatewayError } from "../../core/errors.ts";
import type { Content, Extra, Item, Part, Role, ToolCall } from "../../core/item.ts";
import {
  type Fields,
  missing,
  notAllowed,
  pathOf,
  readArray,
  readObject,
  readObjects,
  readString,
  requireName,
  requireObject,
  requireString,
  toFields,
  wrongType,
} from "../fields.ts";

export function readMessages(body: Fields): readonly Item[] {
  const list = readArray(body, "messages") ?? missing("messages");
  if (list.length === 0) {
    throw new GatewayError(
      "invalid_value",
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      { param: "messages", wireCode: "empty_array" },
    );
  }
  const items: Item[] = [];
  for (const [index, value] of list.entries()) readMessage(toFields(value, `messages[${index}]`), items);
  return items;
}

function readMessage(message: Fields, items: Item[]): void {
  const role = requireString(message, "role");
  const read = readers[role] ?? notAllowed(pathOf(message, "role"), role, Object.keys(readers));
  read(message, items);
}

const readers: Readonly<Record<string, (message: Fields, items: Item[]) => void>> = {
  system: readSaid("system"),
  developer: readSaid("developer"),
  user: readSaid("user"),
  assistant: readAssistant,
  tool(message, items) {
    const callId = requireName(message, "tool_call_id");
    items.push({ type: "tool-output", kind: "function", callId, output: requireContent(message) });
  },
  // The form before tools had ids: the function's name is all that ties an output to its call.
  function(message, items) {
    const callId = requireName(message, "name");
    items.push({ type: "tool-output", kind: "function", callId, output: readContent(message) ?? "" });
  },
};

function readSaid(role: Role): (message: Fields, items: Item[]) => void {
  return (message, items) => {
    items.push({
      type: "message",
      role,
      content: requireContent(message),
      name: readName(message),
      extra: readExtra(message),
    });
  };
}

function readAssistant(message: Fields, items: Item[]): void {
  const content = readContent(message);
  const refusal = readString(message, "refusal");
  const calls = readObjects(message, "tool_calls")?.map(readCall) ?? [];
  const legacy = readObject(message, "function_call");
  if (legacy !== undefined) calls.push(readLegacyCall(legacy));
  const extra = readExtra(message);
  if (calls.length === 0 || refusal !== undefined || extra !== undefined || (content !== undefined && content !== "")) {
    items.push({
      type: "message",
      role: "assistant",
      content: withRefusal(content ?? "", refusal),
      name: readName(message),
      extra,
    });
  }
  items.push(...calls);
}

function withRefusal(content: Content, refusal: string | undefined): Content {
  if (refusal === undefined) return content;
  const parts: readonly Part[] =
    typeof content !== "string" ? content : content === "" ? [] : [{ type: "text", text: content }];
  return [...parts, { type: "refusal", text: refusal }];
}

function readCall(call: Fields): ToolCall {
  const callId = requireName(call, "id");
  const custom = readObject(call, "custom");
  if (custom !== undefined) {
    const name = requireName(custom, "name");
    return { type: "tool-call", kind: "custom", callId, name, arguments: readString(custom, "input") ?? "" };
  }
  const called = requireObject(call, "function");
  const name = requireName(called, "name");
  return { type: "tool-call", kind: "function", callId, name, arguments: readString(called, "arguments") ?? "" };
}

function readLegacyCall(call: Fields): ToolCall {
  const name = requireName(call, "name");
  return { type: "tool-call", kind: "function", callId: name, name, arguments: readString(call, "arguments") ?? "" };
}

function requireContent(message: Fields): Content {
  return readContent(message) ?? missing(pathOf(message, "content"));
}

function readContent(message: Fields): Content | undefined {
  const { content } = message.values;
  if (content === undefined || content === null) return undefined;
  if (typeof content === "string") return content;
  const path = pathOf(message, "content");
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of content parts", content);
  return content.map((value: unknown, index) => readPart(toFields(value, `${path}[${index}]`)));
}

function readPart(part: Fields): Part {
  const type = requireString(part, "type");
  return (partReaders[type] ?? keepPart)(part);
}

const partReaders: Readonly<Record<string, (part: Fields) => Part>> = {
  text: (part) => ({ type: "text", text: requireString(part, "text"), extra: toExtra(part, knownOfText) }),
  refusal: (part) => ({ type: "refusal", text: requireString(part, "refusal") }),
  image_url(part) {
    const image = requireObject(part, "image_url");
    return { type: "image", url: requireName(image, "url"), detail: readString(image, "detail") };
  },
  input_audio(part) {
    const audio = requireObject(part, "input_audio");
    return { type: "audio", data: requireName(audio, "data"), format: requireName(audio, "format") };
  },
  file(part) {
    const file = requireObject(part, "file");
    return {
      type: "file",
      fileId: readString(file, "file_id"),
      data: readString(file, "file_data"),
      name: readString(file, "filename"),
    };
  },
};

/** A part we have no word for goes through to a model of the same dialect. */
function keepPart(part: Fields): Part {
  return { type: "other", extra: { dialect: "chat", fields: part.values } };
}

function readName(message: Fields): string | undefined {
  return readString(message, "name") || undefined;
}

const knownOfText = new Set(["type", "text"]);
const knownOfMessage = new Set([
  "role",
  "content",
  "name",
  "refusal",
  "tool_calls",
  "function_call",
  "tool_call_id",
  // What our own answers carry and nobody needs back.
  "annotations",
]);

function readExtra(message: Fields): Extra | undefined {
  return toExtra(message, knownOfMessage);
}

function toExtra(fields: Fields, known: ReadonlySet<string>): Extra | undefined {
  let extra: Record<string, unknown> | undefined;
  for (const key in fields.values) {
    const value = fields.values[key];
    if (!known.has(key) && value !== null) (extra ??= {})[key] = value;
  }
  return extra === undefined ? undefined : { dialect: "chat", fields: extra };
}
