/** Reads `messages` into items: a message with several things in it becomes several items, in order. */
import { GatewayError } from "../../core/errors.ts";
import type { Content, Part, Role, ToolCall } from "../../core/item.ts";
import type { Earlier } from "../../core/ports.ts";
import type { Ask } from "../../core/turn.ts";
import {
  type Fields,
  invalid,
  isObject,
  isPresent,
  missing,
  notAllowed,
  pathOf,
  readArray,
  readExtra,
  readObject,
  readObjects,
  readString,
  requireName,
  requireObject,
  requireString,
  toFields,
} from "../fields.ts";
import { type Calls, createCalls } from "./calls.ts";
import { readContent, requireContent } from "./content.ts";

/** `earlier` messages have been read before. */
export function readMessages(body: Fields, earlier?: Earlier): ReadMessages {
  const list = readArray(body, "messages") ?? missing("messages", hintAt(body));
  if (list.length === 0) {
    const why = "Expected an array with minimum length 1, but got an empty array instead.";
    invalid("messages", `Invalid 'messages': empty array. ${why}`, "empty_array");
  }
  // The form before tools has no ids, so all that came before is needed.
  const known = earlier !== undefined && !list.slice(earlier.length).some(usesFunctions) ? earlier : undefined;
  const reading = beginReading(list, known?.items);
  for (let index = known?.length ?? 0; index < list.length; index += 1) {
    readMessage(toFields(list[index], "messages", body, index), reading);
  }
  const items = known?.items.concat(reading.items) ?? reading.items;
  return { items, isUnsettled: known === undefined && list.some(usesFunctions) };
}

interface ReadMessages extends Pick<Ask, "items"> {
  /** Among them are calls that may be read otherwise if others follow. */
  readonly isUnsettled: boolean;
}

function usesFunctions(message: unknown): boolean {
  return isObject(message) && (message["role"] === "function" || (message["function_call"] ?? null) !== null);
}

/** What a body without messages was probably meant for. */
function hintAt(body: Fields): string {
  return isPresent(body, "input") ? " A request with 'input' goes to /v1/responses." : "";
}

/** Which message an item is from: a message may have become several items, or none. */
export function messageOf(body: Fields, itemIndex: number): number {
  const messages = readObjects(body, "messages") ?? [];
  const reading = beginReading(messages.map(({ values }) => values));
  return messages.findIndex((message) => {
    readMessage(message, reading);
    return reading.items.length > itemIndex;
  });
}

/** What has been read so far. */
interface Reading {
  readonly items: Ask["items"][number][];
  readonly calls: Calls;
}

function beginReading(list: readonly unknown[], earlier?: Ask["items"]): Reading {
  return { items: [], calls: createCalls(list, earlier) };
}

function readMessage(message: Fields, reading: Reading): void {
  const role = requireString(message, "role");
  const read = readers.get(role) ?? notAllowed(pathOf(message, "role"), role, [...readers.keys()]);
  read(message, reading);
}

const readers: ReadonlyMap<string, (message: Fields, reading: Reading) => void> = new Map([
  ["system", readSaid("system")],
  ["developer", readSaid("developer")],
  ["user", readSaid("user")],
  ["assistant", readAssistant],
  ["tool", readOutput],
  ["function", readFunctionOutput],
]);

function readSaid(role: Role): (message: Fields, reading: Reading) => void {
  return (message, { items }) => {
    items.push({
      type: "message",
      role,
      content: requireContent(message),
      name: readName(message),
      extra: readExtra(message, knownOfMessage, "chat"),
    });
  };
}

function readAssistant(message: Fields, { items, calls: known }: Reading): void {
  const content = readContent(message);
  const refusal = readString(message, "refusal") || undefined;
  const calls = readCalls(message, known);
  const name = readName(message);
  const extra = readExtra(message, knownOfMessage, "chat");
  const hasWords = refusal !== undefined || (content?.length ?? 0) > 0;
  if (calls.length === 0 || hasWords || name !== undefined || extra !== undefined) {
    items.push({ type: "message", role: "assistant", content: withRefusal(content ?? "", refusal), name, extra });
  }
  for (const call of calls) items.push(call);
  if (calls.length > 0) known.add(calls);
}

function withRefusal(content: Content, refusal: string | undefined): Content {
  if (refusal === undefined) return content;
  const parts: readonly Part[] =
    typeof content !== "string" ? content : content === "" ? [] : [{ type: "text", text: content }];
  return [...parts, { type: "refusal", text: refusal }];
}

/**
 * With both forms, `function_call` is the first of `tool_calls`; its caller may not know the others, so only answered
 * ones count.
 */
function readCalls(message: Fields, known: Calls): readonly ToolCall[] {
  const calls = readObjects(message, "tool_calls")?.map(readCall) ?? [];
  const alone = readObject(message, "function_call");
  if (alone === undefined) return calls;
  if (calls.length === 0) return [readFunctionCall(alone, known)];
  return calls.filter(({ callId }, index) => index === 0 || known.isAnswered(callId));
}

function readCall(call: Fields): ToolCall {
  const callId = requireName(call, "id");
  // Many leave it out; what the call has says the same.
  readString(call, "type");
  const extra = readExtra(call, knownOfCall, "chat");
  const custom = readObject(call, "custom");
  if (custom !== undefined) {
    const name = requireName(custom, "name");
    return { type: "tool-call", kind: "custom", callId, name, arguments: readString(custom, "input") ?? "", extra };
  }
  const called = requireObject(call, "function");
  const name = requireName(called, "name");
  return { type: "tool-call", kind: "function", callId, name, arguments: readString(called, "arguments") ?? "", extra };
}

function readFunctionCall(call: Fields, known: Calls): ToolCall {
  const name = requireName(call, "name");
  const written = readString(call, "arguments") ?? "";
  const extra = readExtra(call, knownOfFunctionCall, "chat");
  return { type: "tool-call", kind: "function", callId: known.newId(name, written), name, arguments: written, extra };
}

/** An output does not say what kind of tool it is from; the call does. */
function readOutput(message: Fields, { items, calls }: Reading): void {
  const callId = requireName(message, "tool_call_id");
  const kind = calls.find(callId)?.kind ?? "function";
  const extra = readExtra(message, knownOfOutput, "chat");
  items.push({ type: "tool-output", kind, callId, output: requireContent(message), extra });
}

/** The form before tools has no ids: only the function's name ties an output to its call. */
function readFunctionOutput(message: Fields, { items, calls }: Reading): void {
  const name = requireName(message, "name");
  const call = calls.findByName(name);
  if (call === undefined) {
    throw new GatewayError(
      "tool_call_mismatch",
      `No call to the function '${name}' precedes this message. Such a message has no call id, so also send the assistant message with its 'function_call', or use 'tools'.`,
      { param: pathOf(message) },
    );
  }
  const { kind, callId } = call;
  const extra = readExtra(message, knownOfMessage, "chat");
  items.push({ type: "tool-output", kind, callId, output: readContent(message) ?? "", extra });
}

function readName(message: Fields): string | undefined {
  return readString(message, "name") || undefined;
}

const knownOfCall = new Set(["id", "type", "function", "custom", "index"]);
const knownOfFunctionCall = new Set(["name", "arguments"]);
/** Here the name is the tool's, which we do not model. */
const knownOfOutput = new Set(["role", "content", "tool_call_id"]);
const knownOfMessage = new Set([
  "role",
  "content",
  "name",
  "refusal",
  "tool_calls",
  "function_call",
  "tool_call_id",
  // Fields of our own answers, and what the official client adds to them: nobody needs these.
  "annotations",
  "parsed",
]);
