/** Writes items as response objects and lists show them. */
import type { OutputItem } from "../../core/event.ts";
import { toAddress } from "../../core/conversation/address.ts";
import { type Annotation, fieldsOf, type Item, type Message, type Part } from "../../core/item.ts";
import { isObject } from "../fields.ts";
import { toWireAnnotation } from "./annotations.ts";
import { toLogprobs } from "./logprobs.ts";
import { ownIdOf, toWireOther } from "./other.ts";
import { type Sealing, sealCompaction, sealReasoning } from "./seal.ts";
import { toWireFound, toWireSearch } from "./search.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** An item's id derives from the response's: it is the same however the item is sent. */
export function toItemId(responseId: string, item: OutputItem, index: number): string {
  return `${toPrefix(item)}_${toAddress({ turnId: responseId, side: "output", index })}`;
}

/** The kind of an item, as its id's prefix; for an item that only this dialect knows, the id from its maker. */
export function toPrefix(item: Item): string {
  switch (item.type) {
    case "message":
      return "msg";
    case "reasoning":
      return "rs";
    case "tool-call":
      return callPrefixes[item.kind];
    case "tool-output":
      return outputPrefixes[item.kind];
    case "compaction":
      return "cmp";
    case "other":
      return ownIdOf(item);
  }
}

const callPrefixes = { function: "fc", custom: "ctc", search: "tsc" } as const;
const outputPrefixes = { function: "fco", custom: "ctco", search: "tso" } as const;

/** `sections`: shown instead of an item's reasoning and summary. */
export function toWireItem(
  item: Item,
  id: string,
  status: ItemStatus,
  sealing: Sealing,
  sections?: readonly string[],
): object {
  switch (item.type) {
    case "message": {
      const content = toWireContent(item);
      const phase = fieldsOf(item.extra, "responses")?.["phase"];
      return { id, type: "message", status, content, ...(phase !== undefined && { phase }), role: item.role };
    }
    case "reasoning": {
      const isShown = sealing.showsSeals && status !== "in_progress";
      const sealed = isShown ? sealReasoning(item, sealing.seal, sections !== undefined) : undefined;
      return {
        id,
        type: "reasoning",
        status,
        ...(item.text !== "" && sections === undefined && { content: [toReasoningPart(item.text)] }),
        ...(sealed !== undefined && { encrypted_content: sealed }),
        summary: (sections ?? item.summary).map(toSummaryPart),
      };
    }
    case "tool-call": {
      const { callId: call_id, name, arguments: written } = item;
      const added = {
        ...fieldsOf(item.extra, "responses"),
        ...(item.group !== undefined && { namespace: item.group }),
      };
      if (item.kind === "search") return { ...added, id, status, ...toWireSearch(item) };
      if (item.kind === "custom")
        return { ...added, id, type: "custom_tool_call", status, call_id, input: written, name };
      return { ...added, id, type: "function_call", status, arguments: written, call_id, name };
    }
    case "tool-output": {
      if (item.kind === "search") return { id, status, ...toWireFound(item) };
      const type = item.kind === "custom" ? "custom_tool_call_output" : "function_call_output";
      const output = typeof item.output === "string" ? item.output : item.output.flatMap(toInputPart);
      return { ...fieldsOf(item.extra, "responses"), id, type, status, call_id: item.callId, output };
    }
    case "compaction":
      return { id, type: "compaction", encrypted_content: sealCompaction(item, sealing.seal) };
    case "other":
      return toWireOther(item, id, status === "in_progress");
  }
}

/** A text part of an answer. */
export function toTextPart(
  text: string,
  logprobs: readonly unknown[] = [],
  annotations: readonly Annotation[] = [],
): object {
  return {
    type: "output_text",
    annotations: annotations.map(toWireAnnotation),
    logprobs: toLogprobs(logprobs, true),
    text,
  };
}

export function toRefusalPart(refusal: string): object {
  return { type: "refusal", refusal };
}

export function toReasoningPart(text: string): object {
  return { type: "reasoning_text", text };
}

export function toSummaryPart(text: string): object {
  return { type: "summary_text", text };
}

function toWireContent({ role, content }: Message): readonly object[] {
  const isSaid = role === "assistant";
  if (typeof content === "string") return [isSaid ? toTextPart(content) : toInputText(content)];
  return content.flatMap(isSaid ? toSaidPart : toInputPart);
}

/** An assistant's text has annotations and probabilities; all else is the same on both sides. */
function toSaidPart(part: Part): readonly object[] {
  return part.type === "text" ? [toTextPart(part.text, part.logprobs, part.annotations)] : toInputPart(part);
}

function toInputPart(part: Part): readonly object[] {
  const added = fieldsOf(part.extra, "responses");
  switch (part.type) {
    case "text":
      return [{ ...added, ...toInputText(part.text) }];
    case "refusal":
      return [{ ...added, ...toRefusalPart(part.text) }];
    case "image": {
      const { url: image_url, fileId: file_id, detail = "auto" } = part;
      return [{ ...added, type: "input_image", detail, image_url, file_id }];
    }
    case "audio": {
      const inside = added?.["input_audio"];
      const { data, format } = part;
      return [{ ...added, type: "input_audio", input_audio: { ...(isObject(inside) && inside), data, format } }];
    }
    case "file": {
      const { fileId: file_id, name: filename, data: file_data, url: file_url } = part;
      return [{ ...added, type: "input_file", file_id, filename, file_data, file_url }];
    }
    case "other":
      return added === undefined ? [] : [added];
  }
}

function toInputText(text: string): object {
  return { type: "input_text", text };
}
