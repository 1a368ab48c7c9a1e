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
} from "../fields.ts";
import { readContent, requireContent } from "./content.ts";
import { toExtra } from "./extra.ts";

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

/** How many items the messages up to each one have become. */
export function countItems(body: Fields): readonly number[] {
  const items: Item[] = [];
  return (readObjects(body, "messages") ?? []).map((message) => {
    readMessage(message, items);
    return items.length;
  });
}

function readMessage(message: Fields, items: Item[]): void {
  const role = requireString(message, "role");
  const read = readers.get(role) ?? notAllowed(pathOf(message, "role"), role, [...readers.keys()]);
  read(message, items);
}

const readers: ReadonlyMap<string, (message: Fields, items: Item[]) => void> = new Map([
  ["system", readSaid("system")],
  ["developer", readSaid("developer")],
  ["user", readSaid("user")],
  ["assistant", readAssistant],
  ["tool", readOutput],
  ["function", readLegacyOutput],
]);

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
  const refusal = readString(message, "refusal") || undefined;
  const calls = readObjects(message, "tool_calls")?.map(readCall) ?? [];
  const legacy = readObject(message, "function_call");
  if (legacy !== undefined) calls.push(readLegacyCall(legacy));
  const extra = readExtra(message);
  if (calls.length === 0 || refusal !== undefined || extra !== undefined || (content?.length ?? 0) > 0) {
    items.push({
      type: "message",
      role: "assistant",
      content: withRefusal(content ?? "", refusal),
      name: readName(message),
      extra,
    });
  }
  for (const call of calls) items.push(call);
}

function withRefusal(content: Content, refusal: string | undefined): Content {
  if (refusal === undefined) return content;
  const parts: readonly Part[] =
    typeof content !== "string" ? content : content === "" ? [] : [{ type: "text", text: content }];
  return [...parts, { type: "refusal", text: refusal }];
}

function readCall(call: Fields): ToolCall {
  const callId = requireName(call, "id");
  const extra = toExtra(call, knownOfCall);
  const custom = readObject(call, "custom");
  if (custom !== undefined) {
    const name = requireName(custom, "name");
    return { type: "tool-call", kind: "custom", callId, name, arguments: readString(custom, "input") ?? "", extra };
  }
  const called = requireObject(call, "function");
  const name = requireName(called, "name");
  return { type: "tool-call", kind: "function", callId, name, arguments: readString(called, "arguments") ?? "", extra };
}

function readLegacyCall(call: Fields): ToolCall {
  const name = requireName(call, "name");
  return { type: "tool-call", kind: "function", callId: name, name, arguments: readString(call, "arguments") ?? "" };
}

/** The message of an output does not say what kind of tool gave it; the call does. */
function readOutput(message: Fields, items: Item[]): void {
  const callId = requireName(message, "tool_call_id");
  const call = items.findLast((item) => item.type === "tool-call" && item.callId === callId);
  const kind = call?.type === "tool-call" ? call.kind : "function";
  items.push({ type: "tool-output", kind, callId, output: requireContent(message) });
}

/** The form before tools had ids: the function's name is all that ties an output to its call. */
function readLegacyOutput(message: Fields, items: Item[]): void {
  const callId = requireName(message, "name");
  items.push({ type: "tool-output", kind: "function", callId, output: readContent(message) ?? "" });
}

function readName(message: Fields): string | undefined {
  return readString(message, "name") || undefined;
}

const knownOfCall = new Set(["id", "type", "function", "custom", "index"]);
const knownOfMessage = new Set([
  "role",
  "content",
  "name",
  "refusal",
  "tool_calls",
  "function_call",
  "tool_call_id",
  // What our own answers carry, and what the official client adds to them: nobody needs it back.
  "annotations",
  "parsed",
]);

function readExtra(message: Fields): Extra | undefined {
  return toExtra(message, knownOfMessage);
}
