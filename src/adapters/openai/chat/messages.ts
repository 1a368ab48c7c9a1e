/** Writes items as chat messages in their real roles; an assistant's successive words and calls are one message. */
import { GatewayError } from "../../../core/errors.ts";
import { type Content, fieldsOf, type Item, type Message, type Part, type ToolCall } from "../../../core/item.ts";
import { toFunctionCall } from "../../custom.ts";
import { refusePart } from "../../failures.ts";
import { type JsonObject, objectAt } from "../../json.ts";
import { showOutputs } from "../../outputs.ts";
import type { Form } from "../written.ts";
import { gatherPieces, type SignedFields } from "./pieces.ts";

interface AssistantMessage {
  readonly role: "assistant";
  content: string | unknown[] | null;
  tool_calls?: unknown[];
  reasoning_content?: string;
}

/** The role that steers a server's model. */
export type DeveloperRole = "developer" | "system";

interface MessageOptions {
  /** Sends reasoning with what the assistant then said or called; chat itself has no field for it. */
  readonly sendsReasoning?: boolean | undefined;
  readonly developerRole: DeveloperRole;
  /** How calls of custom tools are written. */
  readonly customTools?: "custom" | "function" | undefined;
  /** The server: others may refuse what signs its model's reasoning. */
  readonly source?: string | undefined;
}

export function toForm(options: MessageOptions): Form {
  return { name: options.developerRole, write: (items) => writeMessages(items, options), isSeam };
}

/** Calls join what the assistant said before, and media that tools return follow the last of their outputs. */
function isSeam(items: readonly Item[], index: number): boolean {
  const [before, item] = [items[index - 1], items[index]];
  if (before === undefined || item === undefined || isFromOthers(item)) return true;
  if (item.type === "tool-output") return before.type !== "tool-output";
  return before.type === "tool-output" || isFromOthers(before);
}

function isFromOthers(item: Item): boolean {
  return item.type === "message" && item.role !== "assistant";
}

function writeMessages(
  items: readonly Item[],
  { sendsReasoning = false, developerRole, customTools, source }: MessageOptions,
): readonly unknown[] {
  const messages: unknown[] = [];
  /** The assistant message that calls may still join. */
  let open: AssistantMessage | undefined;
  /** The caller's fields already contain that reasoning. */
  let isReasoningSent = false;
  /** Reasoning before the assistant's next message. */
  let reasoningText = "";
  /** What signs it, or the open message, if it came late. */
  let signatures: JsonObject[] | undefined;
  /** What signs the messages that are written. */
  const signed = new Map<AssistantMessage, SignedFields>();

  function openAssistant(fields: JsonObject): AssistantMessage {
    open = { ...fields, role: "assistant", content: null };
    isReasoningSent = hasReasoning(fields);
    messages.push(open);
    return open;
  }

  function addReasoning(assistant: AssistantMessage): void {
    if (reasoningText !== "" && !isReasoningSent)
      assistant.reasoning_content = (assistant.reasoning_content ?? "") + reasoningText;
    reasoningText = "";
    if (signatures !== undefined) sign(assistant, signatures);
  }

  function sign(assistant: AssistantMessage, added: readonly JsonObject[]): void {
    const all = signed.get(assistant) ?? gatherPieces();
    for (const fields of added) all.add(fields);
    signed.set(assistant, all);
    signatures = undefined;
  }

  /** The next message is another's; reasoning without a message is dropped. */
  function closeAssistant(): void {
    if (open !== undefined && signatures !== undefined) sign(open, signatures);
    open = undefined;
    reasoningText = "";
    signatures = undefined;
  }

  function say(message: Message): void {
    const content = writeContent(message.content);
    const fields = { ...fieldsOf(message.extra, "chat"), ...(message.name !== undefined && { name: message.name }) };
    // Nothing may come between calls and their outputs, so later text joins the calls.
    if (open?.tool_calls !== undefined) {
      isReasoningSent ||= open.reasoning_content === undefined && hasReasoning(fields);
      Object.assign(open, { ...fields, ...open });
      if (content !== "") open.content = joinContents(open.content, content);
    } else openAssistant(fields).content = content;
    if (open !== undefined) addReasoning(open);
  }

  for (const item of showOutputs(items)) {
    switch (item.type) {
      case "reasoning":
        if (sendsReasoning) reasoningText += textOfReasoning(item);
        if (item.extra?.dialect === "chat" && item.extra.source === source) (signatures ??= []).push(item.extra.fields);
        break;
      case "tool-call": {
        const assistant = open ?? openAssistant({});
        const isAdapted = item.kind === "custom" && customTools === "function";
        (assistant.tool_calls ??= []).push(writeCall(isAdapted ? toFunctionCall(item) : item));
        // A message without text that only carries the caller's own fields.
        if (assistant.content === "") assistant.content = null;
        addReasoning(assistant);
        break;
      }
      case "tool-output":
        closeAssistant();
        messages.push({
          ...fieldsOf(item.extra, "chat"),
          role: "tool",
          tool_call_id: item.callId,
          content: writeContent(item.output),
        });
        break;
      case "message":
        if (item.role === "assistant") say(item);
        else {
          closeAssistant();
          messages.push({
            ...fieldsOf(item.extra, "chat"),
            role: item.role === "developer" ? developerRole : item.role,
            content: writeContent(item.content),
            name: item.name,
          });
        }
    }
  }
  closeAssistant();
  // Fields that a message has from its caller count more.
  for (const [message, all] of signed) Object.assign(message, { ...all.toFields(), ...message });
  return messages;
}

/** In either of the fields that servers use. */
function hasReasoning({ reasoning_content, reasoning }: JsonObject): boolean {
  return Boolean(reasoning_content || reasoning);
}

function textOfReasoning({ text, summary }: Extract<Item, { type: "reasoning" }>): string {
  return text === "" ? summary.join("\n\n") : text;
}

function writeCall(call: ToolCall): unknown {
  const { callId: id, name } = call;
  return call.kind === "custom"
    ? { ...fieldsOf(call.extra, "chat"), id, type: "custom", custom: { name, input: call.arguments } }
    : { ...fieldsOf(call.extra, "chat"), id, type: "function", function: { name, arguments: call.arguments } };
}

/** One plain text is written as a string: some servers know no other form. */
function writeContent(content: Content): string | unknown[] {
  if (typeof content === "string") return content;
  const [first] = content;
  if (first === undefined) return "";
  if (content.length === 1 && first.type === "text" && first.extra?.dialect !== "chat") return first.text;
  return content.map(writePart);
}

function writePart(part: Part): unknown {
  const added = fieldsOf(part.extra, "chat");
  const addedTo = (key: string) => objectAt(added ?? {}, key);
  switch (part.type) {
    case "text":
      return { ...added, type: "text", text: part.text };
    case "refusal":
      return { ...added, type: "refusal", refusal: part.text };
    case "image":
      if (part.url === undefined) return { ...added, type: "file", file: { file_id: part.fileId } };
      return {
        ...added,
        type: "image_url",
        image_url: { ...addedTo("image_url"), url: part.url, detail: part.detail },
      };
    case "audio":
      return {
        ...added,
        type: "input_audio",
        input_audio: { ...addedTo("input_audio"), data: part.data, format: part.format },
      };
    case "file":
      if (part.fileId === undefined && part.data === undefined) {
        throw new GatewayError(
          "unsupported_parameter",
          "This gateway's adapter does not accept files by URL. Send the file's content, or the id of an uploaded one.",
          { part },
        );
      }
      return {
        ...added,
        type: "file",
        file: { ...addedTo("file"), file_id: part.fileId, file_data: part.data, filename: part.name },
      };
    case "other":
      return added ?? refusePart(part);
  }
}

function joinContents(before: string | unknown[] | null, after: string | unknown[]): string | unknown[] {
  if (before === null || before === "") return after;
  return [...toParts(before), ...toParts(after)];
}

function toParts(content: string | unknown[]): unknown[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
