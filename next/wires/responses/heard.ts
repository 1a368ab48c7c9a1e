/** Reads a server's answer, whole or as events, into deltas. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Finish, Usage } from "../../core/turn.ts";
import { countAt, listAt, objectAt, parseSaid, type Said, textAt } from "../json.ts";
import { errorIn, upstreamError } from "../upstream-error.ts";
import type { Habits, Reader } from "../wire.ts";
import { createItemsReader, readNote } from "./heard-items.ts";

/** As the end of a stream of which nothing was heard before. */
export function readReply(text: string, habits: Habits): readonly Delta[] {
  const response = parseSaid(text);
  const deltas: Delta[] = [];
  createEventReader(habits).accept({ type: endOf(response), response }, deltas);
  return deltas;
}

export function createReader(habits: Habits): Reader {
  const events = createEventReader(habits);
  return {
    read(data, deltas) {
      if (!events.isOver() && data !== "[DONE]") events.accept(parseSaid(data), deltas);
    },
    get isFinished() {
      return events.isOver();
    },
  };
}

function createEventReader({ source }: Habits) {
  let told: Delta[] = [];
  const items = createItemsReader(source, (delta) => told.push(delta));
  let isOver = false;

  function end(response: Said, shortage?: Finish): void {
    items.endAll(response);
    readNotes(response, told);
    told.push({ type: "finish", reason: shortage ?? (items.hasCalls() ? "tool-calls" : "stop") });
    isOver = true;
  }

  function accept(event: Said): void {
    const index = countAt(event, "output_index");
    const part = countAt(event, "content_index");
    const text = textAt(event, "delta") ?? "";
    switch (event["type"]) {
      case "response.output_text.delta":
        return items.addText(index, part, text, listAt(event, "logprobs"));
      case "response.output_text.annotation.added":
        return items.addNote(index, part, readNote(event["annotation"]));
      case "response.refusal.delta":
        return items.addRefusal(index, part, text);
      case "response.reasoning_text.delta":
        return items.addReasoning(index, part, text);
      case "response.reasoning_summary_text.delta":
        return items.addSummary(index, countAt(event, "summary_index"), text);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return items.addArguments(index, text);
      case "response.function_call_arguments.done":
        return items.endArguments(index, event["arguments"]);
      case "response.custom_tool_call_input.done":
        return items.endArguments(index, event["input"]);
      case "response.output_item.added":
        return items.begin(objectAt(event, "item") ?? {}, index);
      case "response.output_item.done":
        return items.end(objectAt(event, "item") ?? {}, index);
      case "response.completed":
        return end(objectAt(event, "response") ?? {});
      case "response.incomplete": {
        const response = objectAt(event, "response") ?? {};
        return end(response, shortageOf(response));
      }
      case "response.failed":
        throw upstreamError(objectAt(event, "response")?.["error"] ?? {});
      case "error":
        throw upstreamError({ ...event, ...objectAt(event, "error") });
      default: {
        // Others, such as a hosted tool's progress, tell nothing that its finished item does not.
        const error = errorIn(event);
        if (error !== undefined) throw upstreamError(error);
      }
    }
  }

  return {
    accept(event: Said, deltas: Delta[]): void {
      told = deltas;
      accept(event);
    },
    isOver: (): boolean => isOver,
  };
}

/** The event that would have brought this response. */
function endOf(response: Said): string {
  const { status } = response;
  if (status === "failed" || errorIn(response) !== undefined) return "response.failed";
  if (status === "incomplete") return "response.incomplete";
  if (!unfinished.has(status) && listAt(response, "output") !== undefined) return "response.completed";
  throw new GatewayError("adapter_protocol", "The upstream's answer contains no finished response.");
}

const unfinished: ReadonlySet<unknown> = new Set(["queued", "in_progress", "cancelled"]);

/** Why a response is incomplete; an unknown reason counts as a limit. */
function shortageOf(response: Said): Finish {
  const reason = objectAt(response, "incomplete_details")?.["reason"];
  return reason === "content_filter" ? "content-filter" : "length";
}

/** Nearly all fields of a response repeat its request. */
function readNotes(response: Said, deltas: Delta[]): void {
  const serviceTier = textAt(response, "service_tier");
  const moderation = objectAt(response, "moderation");
  const extra = moderation && ({ dialect: "responses", fields: { moderation } } as const);
  deltas.push({ type: "notes", notes: { serviceTier, ...(extra && { extra }) } });
  const usage = objectAt(response, "usage");
  if (usage !== undefined) deltas.push({ type: "usage", usage: readUsage(usage) });
}

function readUsage(usage: Said): Usage {
  const details = objectAt(usage, "input_tokens_details");
  return {
    inputTokens: countAt(usage, "input_tokens"),
    cachedTokens: countAt(details, "cached_tokens"),
    cacheWriteTokens: countAt(details, "cache_write_tokens") || undefined,
    outputTokens: countAt(usage, "output_tokens"),
    reasoningTokens: countAt(objectAt(usage, "output_tokens_details"), "reasoning_tokens"),
  };
}
