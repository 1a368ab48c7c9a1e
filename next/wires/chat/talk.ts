/** Writes items as chat messages in their real roles: what the assistant said and then called is one message. */
import type { Tell } from "../../core/adapter.ts";
import { type Extra, fieldsOf, type Message, type Part, type Reasoning, type ToolCall } from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";
import type { Habits } from "../wire.ts";
import { toFunctionCall } from "./custom.ts";
import { writeContent } from "./parts.ts";
import { joinFields } from "./reasoning.ts";

interface AssistantMessage {
  role: "assistant";
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
  /** What tools returned beside text, for which their messages have no place: it follows the last of successive outputs. */
  let shown: Part[] = [];

  if (settings.instructions !== undefined) messages.push({ role: "system", content: settings.instructions });

  function openAssistant(fields: Extra["fields"] = {}, content: AssistantMessage["content"] = null): AssistantMessage {
    open = { ...fields, role: "assistant", content };
    own = fields;
    messages.push(open);
    return open;
  }

  /** Reasoning that its caller shows counts more than what is remembered of it. */
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

  function show(): void {
    if (shown.length > 0) messages.push({ role: "user", content: writeContent(shown) });
    shown = [];
  }

  function say({ role, content, name, extra }: Message): void {
    const fields = fieldsOf(extra, "chat");
    const written = writeContent(content);
    if (role === "assistant") {
      addThoughts(openAssistant(name === undefined ? fields : { ...fields, name }, written));
      return;
    }
    closeAssistant();
    messages.push({ ...fields, role: role === "developer" ? developerRole : role, content: written, name });
  }

  function call(made: ToolCall): void {
    const message = open ?? openAssistant();
    (message.tool_calls ??= []).push(writeCall(made, habits));
    // A message without text that only carries its caller's fields.
    if (message.content === "") message.content = null;
    addThoughts(message);
  }

  for (const item of items) {
    if (item.type !== "tool-output") show();
    switch (item.type) {
      case "message":
        say(item);
        break;
      case "reasoning":
        thoughts.push(item);
        break;
      case "tool-call":
        call(item);
        break;
      case "tool-output": {
        closeAssistant();
        const { callId, output, extra } = item;
        const texts = typeof output === "string" ? output : output.filter(isText);
        messages.push({
          ...fieldsOf(extra, "chat"),
          role: "tool",
          tool_call_id: callId,
          content: writeContent(texts),
        });
        if (typeof output === "string" || texts.length === output.length) break;
        shown.push({ type: "text", text: `Output of tool call ${callId}:` }, ...output.filter((part) => !isText(part)));
        break;
      }
      default:
        tell({
          type: "left-out",
          what: `item ${item.type === "other" ? String(item.extra.fields["type"]) : item.type}`,
        });
    }
  }
  show();
  closeAssistant();
  return messages;
}

const isText = ({ type }: Part): boolean => type === "text" || type === "refusal";

function writeCall(made: ToolCall, { hasCustomTools }: Habits): unknown {
  const {
    kind,
    callId: id,
    name,
    extra,
    arguments: written,
  } = hasCustomTools || made.kind !== "custom" ? made : toFunctionCall(made);
  const called =
    kind === "custom"
      ? { type: kind, custom: { name, input: written } }
      : { type: "function", function: { name, arguments: written } };
  return { ...fieldsOf(extra, "chat"), id, ...called };
}
