/** Writes a turn for a program: as one JSON document, or as the last user's text. */
import type { Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Content, type Item, type Message, type Part, textOf } from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";
import type { Settings } from "../../core/settings.ts";

/** The program's standard input. What cannot be passed on is told as left out. */
export function writeInput(turn: Turn, input: "json" | "text" | "none", tell: Tell): string {
  const leaveOut = (what: string): void => tell({ type: "left-out", what });
  if (turn.settings.topLogprobs !== undefined) leaveOut("logprobs");
  if (input === "json") return `${JSON.stringify(toDocument(turn, leaveOut))}\n`;
  leaveOutAllButText(turn, leaveOut);
  return input === "text" ? promptOf(turn) : "";
}

export function promptOf({ items }: Turn): string {
  return textOf(lastFromUser(items)?.content ?? "");
}

function lastFromUser(items: readonly Item[]): Message | undefined {
  return items.findLast((item): item is Message => item.type === "message" && item.role === "user");
}

type LeaveOut = (what: string) => void;

/** A text alone carries no tools, no answer format, and nothing that stands beside the text. */
function leaveOutAllButText({ items, settings }: Turn, leaveOut: LeaveOut): void {
  const { tools, toolChoice, format } = settings;
  if (toolChoice?.type === "required" || toolChoice?.type === "tool") {
    const why = "The adapter behind this model offers it no tools. Leave it out, or use another model.";
    const param = "tool_choice";
    throw new GatewayError("unsupported_parameter", `Unsupported parameter: '${param}'. ${why}`, { param });
  }
  for (const tool of tools) leaveOut(`tool ${tool.type === "other" ? String(tool.extra.fields["type"]) : tool.name}`);
  if (format !== undefined && format.type !== "text") leaveOut("response format");
  const content = lastFromUser(items)?.content ?? "";
  const parts = typeof content === "string" ? [] : content.filter((part) => !isText(part));
  for (const kind of new Set(parts.map(kindOf))) leaveOut(`content ${kind}`);
}

function toDocument({ id, model, stream, items, settings }: Turn, leaveOut: LeaveOut): object {
  const { instructions, tools } = settings;
  const messages = items.flatMap((item) => toMessage(item, leaveOut));
  if (instructions !== undefined) messages.unshift({ role: "system", content: instructions });
  return { id: `resp_${id}`, model, stream, messages, tools, settings: toSettings(settings) };
}

/** Every message has a role and content, so a program need read nothing else. */
function toMessage(item: Item, leaveOut: LeaveOut): object[] {
  switch (item.type) {
    case "message":
      return [{ role: item.role, name: item.name, ...toContent(item.content, leaveOut) }];
    case "tool-call": {
      const { callId: call_id, name, kind, arguments: written } = item;
      return [{ role: "assistant", content: "", tool_call: { call_id, name, kind, arguments: written } }];
    }
    case "tool-output":
      return [{ role: "tool", call_id: item.callId, ...toContent(item.output, leaveOut) }];
    default:
      return []; // private to its maker
  }
}

function toContent(content: Content, leaveOut: LeaveOut): object {
  if (typeof content === "string") return { content };
  const attachments: object[] = [];
  for (const part of content) {
    if (part.type === "other") leaveOut(`content ${kindOf(part)}`);
    else if (!isText(part)) attachments.push(toAttachment(part));
  }
  return { content: textOf(content), ...(attachments.length > 0 && { attachments }) };
}

function toAttachment(part: Part): object {
  const written = { ...part, extra: undefined };
  return "fileId" in written ? { ...written, fileId: undefined, file_id: written.fileId } : written;
}

const isText = ({ type }: Part): boolean => type === "text" || type === "refusal";
const kindOf = (part: Part): string => (part.type === "other" ? String(part.extra.fields["type"]) : part.type);

function toSettings(settings: Settings): object {
  const { format } = settings;
  return {
    tool_choice: settings.toolChoice,
    parallel_tool_calls: settings.parallelToolCalls,
    format: format?.type === "text" ? undefined : format,
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    seed: settings.seed,
    stop: settings.stop,
    max_output_tokens: settings.maxOutputTokens,
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
  };
}
