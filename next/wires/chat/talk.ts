/** Writes items as chat messages in their real roles: what the assistant said and then called is one message. */
import type { Tell } from "../../core/adapter.ts";
import {
  type Extra,
  fieldsOf,
  type Message,
  type Part,
  type Reasoning,
  type ToolCall,
  type ToolOutput,
} from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";
import type { Said } from "../json.ts";
import type { Habits } from "../wire.ts";
import { toCall } from "./completion.ts";
import { toFunctionCall } from "./custom.ts";
import { writeContent } from "./parts.ts";
import { joinFields } from "./reasoning.ts";

interface AssistantMessage {
  readonly role: "assistant";
  content: string | unknown[] | null;
  tool_calls?: unknown[];
  reasoning_content?: string;
}

export function writeMessages({ items, settings }: Turn, habits: Habits, tell: Tell): unknown[] {
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
    (message.tool_calls ??= []).push(writeCall(made, habits));
    // A message without text that only carries its caller's fields.
    if (message.content === "") message.content = null;
    addThoughts(message);
  }

  function answer({ callId, output, extra }: ToolOutput): void {
    closeAssistant();
    const texts = typeof output === "string" ? output : output.filter(isText);
    const fields = fieldsOf(extra, "chat");
    messages.push({ ...fields, role: "tool", tool_call_id: callId, content: writeContent(texts) });
    if (texts.length === output.length) return;
    shown.push({ type: "text", text: `Output of tool call ${callId}:` });
    for (const part of output) if (typeof part !== "string" && !isText(part)) shown.push(part);
  }

  function show(): void {
    if (shown.length > 0) messages.push({ role: "user", content: writeContent(shown) });
    shown = [];
  }

  if (settings.instructions !== undefined) messages.push({ role: "system", content: settings.instructions });
  for (const item of items) {
    if (item.type !== "tool-output") show();
    if (item.type === "message") say(item);
    else if (item.type === "reasoning") thoughts.push(item);
    else if (item.type === "tool-call") call(item);
    else if (item.type === "tool-output") answer(item);
    else
      tell({ type: "left-out", what: `item ${item.type === "other" ? String(item.extra.fields["type"]) : item.type}` });
  }
  show();
  closeAssistant();
  return messages;
}

const isText = ({ type }: Part): boolean => type === "text" || type === "refusal";

function writeCall(made: ToolCall, { hasCustomTools }: Habits): Said {
  return toCall(hasCustomTools || made.kind !== "custom" ? made : toFunctionCall(made));
}
