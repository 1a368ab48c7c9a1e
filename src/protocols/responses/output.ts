/** Writes the items of an answer the way a response object shows them. */
import type { OutputItem } from "../../core/event.ts";
import type { Part } from "../../core/item.ts";
import { toLogprobs } from "./logprobs.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** An item's id is made of the response's: the same item has the same id however it is told. */
export function toItemId(responseId: string, item: OutputItem, index: number): string {
  const digits = responseId.slice(responseId.indexOf("_") + 1);
  return `${toPrefix(item)}_${digits}${index.toString(16).padStart(4, "0")}`;
}

function toPrefix(item: OutputItem): "msg" | "rs" | "fc" | "ctc" {
  if (item.type === "message") return "msg";
  if (item.type === "reasoning") return "rs";
  return item.kind === "function" ? "fc" : "ctc";
}

/** `showsSeals`: with the opaque form of the reasoning. */
export function toWireItem(item: OutputItem, id: string, status: ItemStatus, showsSeals: boolean): object {
  switch (item.type) {
    case "message": {
      const content = typeof item.content === "string" ? [toTextPart(item.content)] : item.content.flatMap(toWirePart);
      return { id, type: "message", status, content, role: "assistant" };
    }
    case "reasoning":
      return {
        id,
        type: "reasoning",
        status,
        ...(item.text !== "" && { content: [toReasoningPart(item.text)] }),
        ...(showsSeals && item.encrypted !== undefined && { encrypted_content: item.encrypted }),
        summary: item.summary.map(toSummaryPart),
      };
    case "tool-call": {
      const { callId: call_id, name, arguments: written } = item;
      if (item.kind === "custom") return { id, type: "custom_tool_call", status, call_id, input: written, name };
      return { id, type: "function_call", status, arguments: written, call_id, name };
    }
  }
}

export function toTextPart(text: string, logprobs: readonly unknown[] = []): object {
  return { type: "output_text", annotations: [], logprobs: toLogprobs(logprobs), text };
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

/** An assistant says text and refusals; other parts are only ever said to it. */
function toWirePart(part: Part): object[] {
  if (part.type === "text") return [toTextPart(part.text, part.logprobs)];
  return part.type === "refusal" ? [toRefusalPart(part.text)] : [];
}
