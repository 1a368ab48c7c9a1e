/** Writes items as chat messages in their real roles: what the assistant said and then called is one message. */
import { GatewayError } from "../../core/errors.ts";
import {
  type Content,
  type Message,
  type Part,
  type Reasoning,
  type ToolCall,
  type ToolOutput,
  place,
} from "../../core/item.ts";
import { type Extra, fieldsOf } from "../../core/settings.ts";
import type { Turn } from "../../core/turn.ts";
import { toFunctionCall } from "../custom-tools.ts";
import type { Said } from "../json.ts";
import type { Habits } from "../wire.ts";
import { toCall } from "./completion.ts";
import { joinFields } from "./reasoning.ts";

interface AssistantMessage {
  readonly role: "assistant";
  content: string | unknown[] | null;
  tool_calls?: unknown[];
  reasoning_content?: string;
}

export function writeMessages({ items, settings }: Turn, habits: Habits): unknown[] {
  const messages: unknown[] = [];
  // Every server knows `system`; OpenAI's treat it as `developer`.
  const developerRole = habits.developerRole ?? (settings.native?.dialect === "chat" ? "developer" : "system");
  /** The message that calls may still join, and the fields that its caller gave it. */
  let open: AssistantMessage | undefined;
  let own: Extra["fields"] = {};
  /** Goes with what was then said or called. */
  let thoughts: Reasoning[] = [];
  /** What tools returned beside text: their messages have no place for it, so it follows the last of them. */
  let shown: Part[] = [];

  function openAssistant(content: AssistantMessage["content"], fields: Extra["fields"] = {}): AssistantMessage {
    open = { ...fields, role: "assistant", content };
    own = fields;
    messages.push(open);
    return open;
  }

  /** What its caller shows of the reasoning counts more than what is remembered. */
  function addThoughts(message: AssistantMessage): void {
    const isShown = Boolean(own["reasoning_content"] || own["reasoning"]);
    for (const { text, summary, extra } of thoughts) {
      if (habits.sendsReasoning && !isShown)
        message.reasoning_content = (message.reasoning_content ?? "") + (text || summary.join("\n\n"));
      if (extra?.dialect === "chat" && extra.source === habits.source) joinFields(message, extra.fields, own);
    }
    thoughts = [];
  }

  function closeAssistant(): void {
    if (open !== undefined) addThoughts(open);
    open = undefined;
    thoughts = [];
  }

  function say({ role, content, name, extra }: Message): void {
    const fields = { ...fieldsOf(extra, "chat"), name };
    if (role === "assistant") return addThoughts(openAssistant(writeContent(content), fields));
    closeAssistant();
    messages.push({ ...fields, role: role === "developer" ? developerRole : role, content: writeContent(content) });
  }

  function call(made: ToolCall): void {
    const message = open ?? openAssistant(null);
    const isOwn = habits.hasCustomTools || made.kind !== "custom";
    (message.tool_calls ??= []).push(toCall(isOwn ? made : toFunctionCall(made)));
    // A message without text that only carries its caller's fields.
    if (message.content === "") message.content = null;
    addThoughts(message);
  }

  function answer({ callId, output, extra }: ToolOutput): void {
    closeAssistant();
    const others = typeof output === "string" ? [] : output.filter((part) => !isText(part));
    const texts = typeof output === "string" || others.length === 0 ? output : output.filter(isText);
    const fields = fieldsOf(extra, "chat");
    messages.push({ ...fields, role: "tool", tool_call_id: callId, content: writeContent(texts) });
    if (others.length > 0) shown.push({ type: "text", text: `Output of tool call ${callId}:` });
    for (const part of others) shown.push(part);
  }

  function show(): void {
    if (shown.length > 0) messages.push({ role: "user", content: writeContent(shown) });
    shown = [];
  }

  if (settings.instructions !== undefined) messages.push({ role: "system", content: settings.instructions });
  // What this wire has no place for was left out before.
  for (const item of items) {
    if (item.type !== "tool-output") show();
    if (item.type === "message") say(item);
    else if (item.type === "reasoning") thoughts.push(item);
    else if (item.type === "tool-call") call(item);
    else if (item.type === "tool-output") answer(item);
  }
  show();
  closeAssistant();
  return messages;
}

const isText = ({ type }: Part): boolean => type === "text" || type === "refusal";

/** One plain text is written as a string: some servers know no other form. */
function writeContent(content: Content): string | unknown[] {
  if (typeof content === "string") return content;
  const [first] = content;
  if (first === undefined) return "";
  const isPlain = content.length === 1 && first.type === "text" && first.extra?.dialect !== "chat";
  return isPlain ? first.text : content.map(writePart);
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
      if (part.fileId === undefined && part.data === undefined) return refusePart("files by URL", part);
      return { ...extra, type: "file", file: { file_id: part.fileId, file_data: part.data, filename: part.name } };
    case "other":
      return extra ?? refusePart(`content of type '${String(part.extra.fields["type"])}'`, part);
  }
}

/** Never left out: the answer depends on it. */
function refusePart(what: string, { [place]: param }: Part): never {
  const message = `The adapter behind this model does not accept ${what}. Send it as text, or as a file's content.`;
  throw new GatewayError("unsupported_parameter", message, { param });
}
