/** Reads a server's answer, whole or as events, into deltas: of an item that pieces have told only the rest is told at its end. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Item, Message, Reasoning } from "../../core/item.ts";
import type { Extra } from "../../core/settings.ts";
import type { Finish, Usage } from "../../core/turn.ts";
import { countAt, isObject, listAt, objectAt, parseSaid, readExtra, type Said, textAt } from "../fields.ts";
import { errorIn, upstreamError } from "../upstream-error.ts";
import type { Habits, Reader } from "../wire.ts";
import { knownOfItem, readItem, readOther } from "./items.ts";
import { markSource, noSeal } from "./seal.ts";

/** As the end of a stream of which nothing was heard before. */
export function readReply(text: string, habits: Habits): readonly Delta[] {
  const response = parseSaid(text);
  const reader = createReader(habits);
  const deltas: Delta[] = [];
  reader.accept({ ...response, type: `response.${textAt(response, "status")}`, response }, deltas);
  if (reader.isFinished) return deltas;
  throw new GatewayError("adapter_protocol", "The upstream's answer contains no finished response.");
}

/** An item that has begun. */
interface Heard {
  /** What the dialect adds to a message, such as its phase. */
  extra?: Extra | undefined;
  isCall?: boolean;
  /** Pieces have told its text. */
  isTold?: boolean;
}

export function createReader({ source }: Habits): Reader & { accept(event: Said, deltas: Delta[]): void } {
  /** By their index in the output. */
  const items: Heard[] = [];
  const itemAt = (index: number): Heard => (items[index] ??= {});
  let told: Delta[] = [];
  let isFinished = false;

  function begin(index: number, values: Said): void {
    if (values["type"] === "message") itemAt(index).extra = readExtra({ values, key: "" }, knownOfItem, "responses");
    else if (callTypes.has(values["type"])) beginCall(index, readWhole(values));
  }

  function beginCall(index: number, item: Item): void {
    const heard = itemAt(index);
    if (item.type !== "tool-call" || heard.isCall === true) return;
    const { callId, name, kind, group, extra } = item;
    heard.isCall = true;
    told.push({ type: "tool-call", index, callId, name, kind, group, extra });
  }

  function end(index: number, values: Said): void {
    const isTold = itemAt(index).isTold === true;
    const item = readWhole(values);
    switch (item.type) {
      case "message":
        tellMessage(item, isTold);
        if (values["status"] !== "incomplete") told.push({ type: "message-end", extra: item.extra });
        return;
      case "reasoning":
        return tellReasoning(item, isTold);
      case "tool-call":
        beginCall(index, item);
        if (!isTold) told.push({ type: "tool-arguments", index, text: item.arguments });
        return;
      default:
        told.push(readOther(values));
    }
  }

  /** The notes on a text are told behind it. */
  function tellMessage({ content, extra }: Message, isTold: boolean): void {
    const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
    for (const part of parts) {
      if (!isTold && part.type === "refusal") told.push({ type: "refusal", text: part.text, extra });
      if (part.type !== "text") continue;
      if (!isTold) told.push({ type: "text", text: part.text, logprobs: part.logprobs, extra });
      for (const annotation of part.annotations ?? []) told.push({ type: "annotation", annotation });
    }
  }

  function tellReasoning({ text, summary, encrypted }: Reasoning, isTold: boolean): void {
    const sections = summary.map((section, at) => ({ type: "reasoning", text: section, summary: at }) as const);
    if (!isTold) told.push({ type: "reasoning", text }, ...sections);
    if (encrypted !== undefined) told.push({ type: "reasoning-seal", encrypted: markSource(encrypted, source) });
  }

  function finish(response: Said, reason: Finish): void {
    // Some servers tell only the end of an answer.
    const unheard = items.length === 0 ? (listAt(response, "output") ?? []) : [];
    for (const [index, item] of unheard.entries()) if (isObject(item)) end(index, item);
    tellNotes(response, told);
    told.push({ type: "finish", reason });
    isFinished = true;
  }

  function accept(event: Said, deltas: Delta[]): void {
    told = deltas;
    const index = countAt(event, "output_index");
    const readPiece = pieces.get(event["type"]);
    if (readPiece !== undefined) {
      const heard = itemAt(index);
      const piece = readPiece(textAt(event, "delta") ?? "", event, index, heard.extra);
      // A call that was not begun is told whole at its end.
      if (piece.type === "tool-arguments" && heard.isCall !== true) return;
      heard.isTold = true;
      deltas.push(piece);
      return;
    }
    const response = objectAt(event, "response") ?? {};
    switch (event["type"]) {
      case "response.output_item.added":
        return begin(index, objectAt(event, "item") ?? {});
      case "response.output_item.done":
        return end(index, objectAt(event, "item") ?? {});
      case "response.completed":
        return finish(response, "stop");
      case "response.incomplete": {
        // An unknown reason counts as a limit.
        const isFiltered = objectAt(response, "incomplete_details")?.["reason"] === "content_filter";
        return finish(response, isFiltered ? "content-filter" : "length");
      }
      case "response.failed":
        throw upstreamError(response["error"] ?? {});
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
    accept,
    read(data, deltas) {
      if (!isFinished && data !== "[DONE]") accept(parseSaid(data), deltas);
    },
    get isFinished() {
      return isFinished;
    },
  };
}

type Piece = (text: string, event: Said, index: number, extra: Extra | undefined) => Delta;

/** The events that tell a text piece by piece. */
const pieces = new Map<unknown, Piece>([
  [
    "response.output_text.delta",
    (text, event, _, extra) => ({ type: "text", text, logprobs: readLogprobs(event), extra }),
  ],
  ["response.refusal.delta", (text, _event, _, extra) => ({ type: "refusal", text, extra })],
  ["response.reasoning_text.delta", (text) => ({ type: "reasoning", text })],
  [
    "response.reasoning_summary_text.delta",
    (text, event) => ({ type: "reasoning", text, summary: countAt(event, "summary_index") }),
  ],
  ["response.function_call_arguments.delta", (text, _, index) => ({ type: "tool-arguments", index, text })],
  ["response.custom_tool_call_input.delta", (text, _, index) => ({ type: "tool-arguments", index, text })],
]);

function readLogprobs(event: Said): readonly unknown[] | undefined {
  const logprobs = listAt(event, "logprobs") ?? [];
  return logprobs.length > 0 ? logprobs : undefined;
}

const callTypes = new Set<unknown>(["function_call", "custom_tool_call"]);

/** As a caller's. */
function readWhole(item: Said): Item {
  try {
    return readItem({ values: item, key: "" }, noSeal);
  } catch (cause) {
    throw new GatewayError("adapter_protocol", `The upstream sent an item that is none: ${String(cause)}`, { cause });
  }
}

/** Nearly all fields of a response repeat its request. */
function tellNotes(response: Said, deltas: Delta[]): void {
  const serviceTier = textAt(response, "service_tier");
  const moderation = objectAt(response, "moderation");
  const extra = moderation && ({ dialect: "responses", fields: { moderation } } as const);
  deltas.push({ type: "notes", notes: { serviceTier, extra } });
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
