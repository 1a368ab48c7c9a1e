/** Reads `messages` into items: a message with several things in it becomes several items, in order. */
import { type Content, type Item, type Part, place, type ToolCall } from "../../core/item.ts";
import type { Extra } from "../../core/settings.ts";
import {
  type Fields,
  invalid,
  isPresent,
  missing,
  pathOf,
  readChoice,
  readContent as readParts,
  readExtra,
  readObject,
  readObjects,
  readString,
  requireName,
  requireObject,
  requireString,
} from "../fields.ts";

export function readMessages(body: Fields): readonly Item[] {
  const hint = isPresent(body, "input") ? " A request with 'input' goes to /v1/responses." : "";
  const messages = readObjects(body, "messages") ?? missing("messages", hint);
  if (messages.length === 0) {
    const why = "Expected an array with minimum length 1, but got an empty array instead.";
    invalid("messages", `Invalid 'messages': empty array. ${why}`, "empty_array");
  }
  const reading: Reading = { items: [], calls: new Map() };
  for (const message of messages) readMessage(message, reading);
  return reading.items;
}

interface Reading {
  readonly items: Item[];
  /** The newest call of each id, and of each function's name: the form before tools has no ids. */
  readonly calls: Map<string, ToolCall>;
}

const roles = ["system", "developer", "user", "assistant", "tool", "function"] as const;

function readMessage(message: Fields, reading: Reading): void {
  const role = readChoice(message, "role", roles) ?? missing(pathOf(message, "role"));
  if (role === "assistant") return readAssistant(message, reading);
  if (role === "tool" || role === "function") return readOutput(message, role, reading);
  const content = readContent(message) ?? missing(pathOf(message, "content"));
  const extra = readExtra(message, knownOfMessage, "chat");
  reading.items.push({ type: "message", role, content, name: readString(message, "name") || undefined, extra });
}

function readAssistant(message: Fields, reading: Reading): void {
  const content = withRefusal(readContent(message) ?? "", readString(message, "refusal"));
  const calls = readCalls(message, reading);
  const name = readString(message, "name") || undefined;
  const extra = readExtra(message, knownOfMessage, "chat");
  if (calls.length === 0 || content.length > 0 || name !== undefined || extra !== undefined)
    reading.items.push({ type: "message", role: "assistant", content, name, extra });
  for (const call of calls) {
    reading.items.push(call);
    reading.calls.set(`tool ${call.callId}`, call).set(`function ${call.name}`, call);
  }
}

function withRefusal(content: Content, refusal: string | undefined): Content {
  if (refusal === undefined || refusal === "") return content;
  const said: readonly Part[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return [...(content === "" ? [] : said), { type: "refusal", text: refusal }];
}

/** One without an id gets its place, so that a history that is sent again has the same ids. */
function readCalls(message: Fields, { items }: Reading): readonly ToolCall[] {
  const calls = (readObjects(message, "tool_calls") ?? []).map((call) => {
    const custom = readObject(call, "custom");
    const called = custom ?? requireObject(call, "function");
    const kind = custom === undefined ? "function" : "custom";
    return readCall(requireName(call, "id"), kind, called, readExtra(call, knownOfCall, "chat"));
  });
  const alone = readObject(message, "function_call");
  return alone === undefined ? calls : [readCall(`call_function_${items.length}`, "function", alone), ...calls];
}

function readCall(callId: string, kind: ToolCall["kind"], called: Fields, extra?: Extra): ToolCall {
  const written = readString(called, kind === "custom" ? "input" : "arguments") ?? "";
  return { type: "tool-call", kind, callId, name: requireName(called, "name"), arguments: written, extra };
}

/** It does not say what kind of tool it is from; the call does. */
function readOutput(message: Fields, role: "tool" | "function", { items, calls }: Reading): void {
  const id = requireName(message, role === "tool" ? "tool_call_id" : "name");
  const { kind = "function", callId = id } = calls.get(`${role} ${id}`) ?? {};
  const output = readContent(message) ?? (role === "function" ? "" : missing(pathOf(message, "content")));
  const extra = readExtra(message, role === "tool" ? knownOfOutput : knownOfMessage, "chat");
  items.push({ type: "tool-output", kind, callId, output, extra });
}

function readContent(message: Fields): Content | undefined {
  return readParts(message, "content", "a string or an array of content parts", readPart);
}

function readPart(part: Fields): Part {
  const type = requireString(part, "type");
  const known = knownOfPart.get(type);
  const extra = known && readExtra(part, known, "chat");
  switch (type) {
    case "text":
      return { type, text: requireString(part, "text"), extra };
    case "refusal":
      return { type, text: requireString(part, "refusal"), extra };
    case "image_url": {
      const image = requireObject(part, "image_url");
      const [url, detail] = [requireName(image, "url"), readString(image, "detail")];
      return { type: "image", url, detail, extra, [place]: pathOf(image, "url") };
    }
    case "input_audio": {
      const audio = requireObject(part, "input_audio");
      const [data, format] = [requireName(audio, "data"), requireName(audio, "format")];
      return { type: "audio", data, format, extra, [place]: pathOf(audio, "data") };
    }
    case "file": {
      const file = requireObject(part, "file");
      const [fileId, data] = [readString(file, "file_id"), readString(file, "file_data")];
      if (fileId === undefined && data === undefined) missing(pathOf(file, "file_id"));
      const at = pathOf(file, data === undefined ? "file_id" : "file_data");
      return { type, fileId, data, name: readString(file, "filename"), extra, [place]: at };
    }
    default:
      return { type: "other", extra: { dialect: "chat", fields: part.values }, [place]: pathOf(part) };
  }
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const knownOfPart: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  ["text", "refusal", "image_url", "input_audio", "file"].map((type) => [type, new Set(["type", type])]),
);
const knownOfCall = words("id type function custom index");
/** Here the name is the tool's, which we do not model. */
const knownOfOutput = words("role content tool_call_id");
/** The last two are of our own answers, or what the official client adds to them: nobody needs these. */
const knownOfMessage = words("role content name refusal tool_calls function_call tool_call_id annotations parsed");
