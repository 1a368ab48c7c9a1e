/** Writes a turn for a program: as one JSON document, or as the last user's text. */
import type { Tell } from "../../core/adapter.ts";
import { type Content, type Item, type Message, type Part, textOf } from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";
import type { Settings } from "../../core/settings.ts";
import { unsupported } from "../../wires/fields.ts";

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
  if (toolChoice?.type === "required" || toolChoice?.type === "tool")
    unsupported("tool_choice", "The adapter behind this model offers it no tools. Leave it out, or use another model.");
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

const passedOn = [
  ...([
    "toolChoice",
    "parallelToolCalls",
    "format",
    "stop",
    "maxOutputTokens",
    "reasoningEffort",
    "verbosity",
  ] as const),
  ...(["temperature", "topP", "presencePenalty", "frequencyPenalty", "seed"] as const),
];

const toWireName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function toSettings(settings: Settings): object {
  return Object.fromEntries(passedOn.map((name) => [toWireName(name), settings[name]]));
}
