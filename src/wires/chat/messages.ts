/** Messages, read into items and written from them: a message with several things in it is several items, in order. */
import type { Content, Item, Message, Part, Reasoning, ToolCall, ToolOutput } from "../../core/item.ts";
import { type Extra, fieldsOf } from "../../core/settings.ts";
import type { Turn } from "../../core/turn.ts";
import { inJson } from "../again.ts";
import { refusePart } from "../common.ts";
import { toFunctionCall } from "../custom-tools.ts";
import {
  type Fields,
  invalid,
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
  type Said,
} from "../fields.ts";
import type { Habits } from "../wire.ts";
import { toCall } from "./answer.ts";
import { joinFields } from "./signatures.ts";

export function readMessages(body: Fields): readonly Item[] {
  const messages = readObjects(body, "messages") ?? missing("messages");
  if (messages.length === 0)
    invalid("messages", "Invalid 'messages': empty array. Expected at least one message.", "empty_array");
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

function withRefusal(content: Content, refusal = ""): Content {
  if (refusal === "") return content;
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
  const output = readContent(message) ?? missing(pathOf(message, "content"));
  const extra = readExtra(message, role === "tool" ? knownOfOutput : knownOfMessage, "chat");
  items.push({ type: "tool-output", kind, callId, output, extra });
}

function readContent(message: Fields): Content | undefined {
  return readParts(message, "content", readPart);
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

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const knownOfPart: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  ["text", "refusal", "image_url", "input_audio", "file"].map((type) => [type, new Set(["type", type])]),
);
const knownOfCall = words("id type function custom index");
/** Here the name is the tool's, which we do not model. */
const knownOfOutput = words("role content tool_call_id");
/** The last two are of our own answers, or what the official client adds to them: nobody needs these. */
const knownOfMessage = words("role content name refusal tool_calls function_call tool_call_id annotations parsed");

interface AssistantMessage {
  readonly role: "assistant";
  content: unknown;
  tool_calls?: Said[];
  reasoning_content?: string;
}

/** Items in their real roles: what the assistant said and then called is one message. What has no place was left out before. */
export function writeMessages({ items, settings }: Turn, habits: Habits): unknown[] {
  // Every server knows `system`; OpenAI's treat it as `developer`.
  const developerRole = habits.developerRole ?? (settings.native?.dialect === "chat" ? "developer" : "system");
  const writer = new MessageWriter(habits, developerRole);
  if (settings.instructions !== undefined) writer.messages.push({ role: "system", content: settings.instructions });
  for (const item of items) writer.write(item);
  writer.end();
  return writer.messages;
}

class MessageWriter {
  readonly messages: unknown[] = [];
  readonly #habits: Habits;
  readonly #developerRole: string;
  /** The message that calls may still join, and the fields that its caller gave it. */
  #open: AssistantMessage | undefined;
  #own: Said = {};
  /** Goes with what was then said or called. */
  #thoughts: Reasoning[] = [];
  /** What tools returned beside text: their messages have no place for it, so it follows the last of them. */
  #shown: Part[] = [];

  constructor(habits: Habits, developerRole: string) {
    this.#habits = habits;
    this.#developerRole = developerRole;
  }

  write(item: Item): void {
    if (item.type !== "tool-output") this.#show();
    if (item.type === "message") this.#say(item);
    else if (item.type === "reasoning") this.#thoughts.push(item);
    else if (item.type === "tool-call") this.#call(item);
    else if (item.type === "tool-output") this.#answer(item);
  }

  end(): void {
    this.#show();
    this.#closeAssistant();
  }

  #say({ role, content, name, extra }: Message): void {
    const fields = { ...fieldsOf(extra, "chat"), name };
    if (role === "assistant") return this.#addThoughts(this.#openAssistant(writeContent(content), fields));
    this.#closeAssistant();
    const written = role === "developer" ? this.#developerRole : role;
    this.messages.push({ ...fields, role: written, content: writeContent(content) });
  }

  #call(made: ToolCall): void {
    const message = this.#open ?? this.#openAssistant(null);
    const isOwn = this.#habits.hasCustomTools || made.kind !== "custom";
    (message.tool_calls ??= []).push(toCall(isOwn ? made : toFunctionCall(made)));
    // A message without text that only carries its caller's fields.
    if (message.content === "") message.content = null;
    this.#addThoughts(message);
  }

  #answer({ callId, output, extra }: ToolOutput): void {
    this.#closeAssistant();
    const others = typeof output === "string" ? [] : output.filter((part) => !isText(part));
    const texts = typeof output === "string" || others.length === 0 ? output : output.filter(isText);
    const content = writeContent(texts);
    this.messages.push({ ...fieldsOf(extra, "chat"), role: "tool", tool_call_id: callId, content });
    if (others.length > 0) this.#shown.push({ type: "text", text: `Output of tool call ${callId}:` }, ...others);
  }

  #show(): void {
    if (this.#shown.length === 0) return;
    this.messages.push({ role: "user", content: writeContent(this.#shown) });
    this.#shown = [];
  }

  #openAssistant(content: AssistantMessage["content"], fields: Said = {}): AssistantMessage {
    this.#open = { ...fields, role: "assistant", content };
    this.#own = fields;
    this.messages.push(this.#open);
    return this.#open;
  }

  #closeAssistant(): void {
    if (this.#open !== undefined) this.#addThoughts(this.#open);
    this.#open = undefined;
    this.#thoughts = [];
  }

  /** What its caller shows of the reasoning counts more than what is remembered. */
  #addThoughts(message: AssistantMessage): void {
    if (this.#thoughts.length === 0) return;
    const isShown = Boolean(this.#own["reasoning_content"] || this.#own["reasoning"]);
    for (const { text, summary, extra } of this.#thoughts) {
      if (this.#habits.sendsReasoning && !isShown)
        message.reasoning_content = (message.reasoning_content ?? "") + (text || summary.join("\n\n"));
      if (extra?.dialect === "chat" && extra.source === this.#habits.source)
        joinFields(message, extra.fields, this.#own);
    }
    this.#thoughts = [];
  }
}

const isText = ({ type }: Part): boolean => type === "text" || type === "refusal";

/** One plain text is written as a string: some servers know no other form. */
function writeContent(content: Content): unknown {
  if (typeof content === "string") return inJson(content);
  const [first] = content;
  if (first === undefined) return "";
  const isPlain = content.length === 1 && first.type === "text" && first.extra?.dialect !== "chat";
  return isPlain ? inJson(first.text) : content.map(writePart);
}

function writePart(part: Part): Said {
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
      if (part.fileId === undefined && part.data === undefined) return refusePart(part);
      return { ...extra, type: "file", file: { file_id: part.fileId, file_data: part.data, filename: part.name } };
    case "other":
      return extra ?? refusePart(part);
  }
}
