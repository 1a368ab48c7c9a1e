/** Reads `messages` into items: a message with several things in it becomes several items, in order. */
import { GatewayError } from "../../core/errors.ts";
import type { Content, Item, Part, ToolCall } from "../../core/item.ts";
import {
  type Fields,
  invalid,
  isPresent,
  missing,
  pathOf,
  readChoice,
  readExtra,
  readObject,
  readObjects,
  readString,
  requireName,
  requireObject,
} from "../fields.ts";
import { readContent, requireContent } from "./parts.ts";

export function readMessages(body: Fields): readonly Item[] {
  const hint = isPresent(body, "input") ? " A request with 'input' goes to /v1/responses." : "";
  const messages = readObjects(body, "messages") ?? missing("messages", hint);
  if (messages.length === 0) {
    const why = "Expected an array with minimum length 1, but got an empty array instead.";
    invalid("messages", `Invalid 'messages': empty array. ${why}`, "empty_array");
  }
  const reading: Reading = { items: [], byId: new Map(), byName: new Map(), nameless: 0 };
  for (const message of messages) readMessage(message, reading);
  return reading.items;
}

interface Reading {
  readonly items: Item[];
  /** The newest call of each id, and of each function: the form before tools has no ids. */
  readonly byId: Map<string, ToolCall>;
  readonly byName: Map<string, ToolCall>;
  /** How many calls came without an id. */
  nameless: number;
}

const roles = ["system", "developer", "user", "assistant", "tool", "function"] as const;

function readMessage(message: Fields, reading: Reading): void {
  const role = readChoice(message, "role", roles) ?? missing(pathOf(message, "role"));
  switch (role) {
    case "assistant":
      return readAssistant(message, reading);
    case "tool":
      return readOutput(message, reading);
    case "function":
      return readFunctionOutput(message, reading);
    default: {
      const extra = readExtra(message, knownOfMessage, "chat");
      reading.items.push({ type: "message", role, content: requireContent(message), name: readName(message), extra });
    }
  }
}

function readAssistant(message: Fields, reading: Reading): void {
  const content = withRefusal(readContent(message) ?? "", readString(message, "refusal"));
  const alone = readObject(message, "function_call");
  const calls = readObjects(message, "tool_calls")?.map(readCall) ?? [];
  if (alone !== undefined) calls.unshift(readFunctionCall(alone, reading));
  const name = readName(message);
  const extra = readExtra(message, knownOfMessage, "chat");
  if (calls.length === 0 || content.length > 0 || name !== undefined || extra !== undefined)
    reading.items.push({ type: "message", role: "assistant", content, name, extra });
  for (const call of calls) {
    reading.items.push(call);
    reading.byId.set(call.callId, call);
    reading.byName.set(call.name, call);
  }
}

function withRefusal(content: Content, refusal: string | undefined): Content {
  if (refusal === undefined || refusal === "") return content;
  const refused: Part = { type: "refusal", text: refusal };
  if (typeof content !== "string") return [...content, refused];
  return content === "" ? [refused] : [{ type: "text", text: content }, refused];
}

function readCall(call: Fields): ToolCall {
  const callId = requireName(call, "id");
  const extra = readExtra(call, knownOfCall, "chat");
  const custom = readObject(call, "custom");
  const kind = custom === undefined ? "function" : "custom";
  const called = custom ?? requireObject(call, "function");
  const written = readString(called, custom === undefined ? "arguments" : "input") ?? "";
  return { type: "tool-call", kind, callId, name: requireName(called, "name"), arguments: written, extra };
}

/** Numbered by its place, so that a history that is sent again has the same ids. */
function readFunctionCall(call: Fields, reading: Reading): ToolCall {
  const callId = `call_function_${reading.nameless++}`;
  const written = readString(call, "arguments") ?? "";
  const extra = readExtra(call, knownOfFunctionCall, "chat");
  return { type: "tool-call", kind: "function", callId, name: requireName(call, "name"), arguments: written, extra };
}

/** An output does not say what kind of tool it is from; the call does. */
function readOutput(message: Fields, { items, byId }: Reading): void {
  const callId = requireName(message, "tool_call_id");
  const kind = byId.get(callId)?.kind ?? "function";
  const extra = readExtra(message, knownOfOutput, "chat");
  items.push({ type: "tool-output", kind, callId, output: requireContent(message), extra });
}

function readFunctionOutput(message: Fields, { items, byName }: Reading): void {
  const name = requireName(message, "name");
  const call = byName.get(name);
  if (call === undefined) {
    const why = `No call to the function '${name}' precedes this message. Also send the assistant message with its 'function_call', or use 'tools'.`;
    throw new GatewayError("tool_call_mismatch", why, { param: pathOf(message) });
  }
  const extra = readExtra(message, knownOfMessage, "chat");
  const { kind, callId } = call;
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
  ...["role", "content", "name", "refusal", "tool_calls", "function_call", "tool_call_id"],
  // Fields of our own answers, and what the official client adds to them: nobody needs these.
  ...["annotations", "parsed"],
]);
