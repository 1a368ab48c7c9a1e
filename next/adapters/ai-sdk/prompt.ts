/** Writes items as a prompt: system texts first, what the assistant said and called as one message, then results. */
import type {
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3TextPart,
} from "@ai-sdk/provider";
import { GatewayError } from "../../core/errors.ts";
import { type Content, isInstruction, type Item, type Part, textOf, type ToolCall } from "../../core/item.ts";
import { toFunctionCall } from "../../wires/custom-tools.ts";
import { parseObject } from "../../wires/fields.ts";
import { about, type MediaRules, readDataUrl } from "../media/media.ts";
import { readSeal, type Seal } from "./seal.ts";

type WrittenPart = LanguageModelV3TextPart | LanguageModelV3FilePart;
type AssistantPart = Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number];
type ToolPart = Extract<LanguageModelV3Message, { role: "tool" }>["content"][number];

export function writePrompt(
  instructions: string | undefined,
  items: readonly Item[],
  rules: MediaRules,
): LanguageModelV3Prompt {
  // Not every provider takes system texts in the midst of a talk.
  const system = items.flatMap((item) => (item.type === "message" && isInstruction(item) ? textOf(item.content) : []));
  const prompt: LanguageModelV3Prompt = [instructions ?? "", ...system]
    .filter((content) => content !== "")
    .map((content) => ({ role: "system", content }));
  const seals = new Map(items.flatMap((item) => [[item, item.type === "reasoning" ? readSeal(item.encrypted) : {}]]));
  const marks: Seal["calls"] = Object.assign({}, ...Array.from(seals.values(), ({ calls }) => calls));
  const names = new Map<string, string>();
  /** What tools returned beside text: not every provider takes it there, so it follows the last of them. */
  let shown: Part[] = [];

  function say(part: AssistantPart): void {
    const last = prompt.at(-1);
    if (last?.role === "assistant") last.content.push(part);
    else prompt.push({ role: "assistant", content: [part] });
  }

  function giveBack(part: ToolPart): void {
    const last = prompt.at(-1);
    if (last?.role === "tool") last.content.push(part);
    else prompt.push({ role: "tool", content: [part] });
  }

  function show(content: Content): void {
    const parts = writeContent(content, rules);
    prompt.push({ role: "user", content: parts.length === 0 ? [{ type: "text", text: "" }] : parts });
  }

  for (const item of [...items, undefined]) {
    if (item?.type !== "tool-output" && shown.length > 0) {
      show(shown);
      shown = [];
    }
    switch (item?.type) {
      case "message":
        if (item.role === "user") show(item.content);
        else if (item.role === "assistant") for (const part of writeContent(item.content, rules)) say(part);
        break;
      case "reasoning": {
        const { block } = seals.get(item) ?? {};
        if (block !== undefined) say({ type: "reasoning", text: block.text, providerOptions: block.options });
        else if (item.text !== "") say({ type: "reasoning", text: item.text });
        break;
      }
      case "tool-call":
        names.set(item.callId, item.name);
        say({
          type: "tool-call",
          toolCallId: item.callId,
          toolName: item.name,
          input: toInput(item),
          providerOptions: marks?.[item.callId],
        });
        break;
      case "tool-output": {
        const { callId, output } = item;
        const toolName = names.get(callId) ?? "unknown";
        giveBack({
          type: "tool-result",
          toolCallId: callId,
          toolName,
          output: { type: "text", value: textOf(output) },
        });
        const others =
          typeof output === "string" ? [] : output.filter(({ type }) => type !== "text" && type !== "refusal");
        if (others.length > 0) shown.push({ type: "text", text: `Output of tool call ${callId}:` });
        for (const part of others) shown.push(part);
      }
    }
  }
  return prompt;
}

/** Providers want an object, even if a model wrote none. */
function toInput(call: ToolCall): unknown {
  const { arguments: written } = call.kind === "custom" ? toFunctionCall(call) : call;
  return parseObject(written) ?? (written.trim() === "" ? {} : { invalid: written });
}

/** Some providers refuse empty texts. */
function writeContent(content: Content, rules: MediaRules): WrittenPart[] {
  const parts: readonly Part[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return parts.flatMap((part) => {
    try {
      return writePart(part, rules);
    } catch (thrown) {
      throw about(part, thrown);
    }
  });
}

function writePart(part: Part, rules: MediaRules): WrittenPart | readonly [] {
  switch (part.type) {
    case "text":
    case "refusal":
      return part.text === "" ? [] : { type: "text", text: part.text };
    case "image":
      return writeFile(part.url, undefined, "image/*", rules);
    case "audio":
      return { type: "file", mediaType: `audio/${part.format === "mp3" ? "mpeg" : part.format}`, data: part.data };
    case "file":
      return writeFile(part.data ?? part.url, part.name, "application/octet-stream", rules);
    case "other":
      throw unsupported(`content of type '${String(part.extra.fields["type"])}'`);
  }
}

/** `source` is a URL, or plain base64. */
function writeFile(source: string | undefined, filename: string | undefined, otherwise: string, rules: MediaRules) {
  if (source === undefined) throw unsupported("an uploaded file by its id");
  const file = { type: "file", filename } as const;
  if (/^data:/i.test(source)) {
    const { bytes, type } = readDataUrl(source, rules);
    return { ...file, mediaType: type, data: bytes };
  }
  const url = /^https?:/i.test(source) ? URL.parse(source) : null;
  const isPdf = source.startsWith(pdfStart) || /\.pdf$/i.test(filename ?? url?.pathname ?? "");
  return { ...file, mediaType: isPdf ? "application/pdf" : otherwise, data: url ?? source };
}

/** `%PDF-` in base64. */
const pdfStart = "JVBERi0";

function unsupported(what: string): GatewayError {
  const message = `The adapter behind this model does not take ${what}. Send the content itself, or a URL.`;
  return new GatewayError("unsupported_parameter", message);
}
