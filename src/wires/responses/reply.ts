/** Reads a server's answer, whole or as events, into deltas: of the whole only the rest is told that no piece has told. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Item, Part } from "../../core/item.ts";
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
  const deltas: Delta[] = [];
  readEvents(habits).accept({ type: endOf(response), response }, deltas);
  return deltas;
}

export function createReader(habits: Habits): Reader {
  const events = readEvents(habits);
  return {
    read(data, deltas) {
      if (!events.isFinished() && data !== "[DONE]") events.accept(parseSaid(data), deltas);
    },
    get isFinished() {
      return events.isFinished();
    },
  };
}

type TextKind = "text" | "refusal" | "thought" | "section" | "arguments";

interface Heard {
  /** By their number in it. */
  readonly texts: Partial<Record<TextKind, string[]>>;
  /** What the dialect adds to a message, such as its phase. */
  extra?: Extra | undefined;
  isCall?: boolean;
  isEnded?: boolean;
}

function readEvents({ source }: Habits) {
  /** By their index in the output. */
  const items: Heard[] = [];
  const itemAt = (index: number): Heard => (items[index] ??= { texts: {} });
  let told: Delta[] = [];
  let isFinished = false;

  function add(index: number, kind: TextKind, part: number, text: string, logprobs?: readonly unknown[]): void {
    const item = itemAt(index);
    // A call that has no name yet is told at its end.
    if (text === "" || (kind === "arguments" && item.isCall !== true)) return;
    const texts = (item.texts[kind] ??= []);
    texts[part] = (texts[part] ?? "") + text;
    told.push(toDelta(index, kind, part, text, item.extra, logprobs));
  }

  /** What the whole has beyond that part of it which was told; nothing if it is another text. */
  function addRest(index: number, kind: TextKind, part: number, whole: string, logprobs?: readonly unknown[]): void {
    const before = itemAt(index).texts[kind]?.[part] ?? "";
    if (whole.startsWith(before)) add(index, kind, part, whole.slice(before.length), logprobs);
  }

  function begin(index: number, item: Said): void {
    if (item["type"] === "message")
      itemAt(index).extra = readExtra({ values: item, key: "" }, knownOfItem, "responses");
    else if (callTypes.has(item["type"]) && textAt(item, "name") !== undefined) beginCall(index, readWhole(item));
  }

  function beginCall(index: number, item: Item): void {
    const heard = itemAt(index);
    if (item.type !== "tool-call" || heard.isCall === true) return;
    const { callId, name, kind, group, extra } = item;
    heard.isCall = true;
    told.push({ type: "tool-call", index, callId, name, kind, group, extra });
  }

  function end(index: number, values: Said): void {
    const heard = itemAt(index);
    if (heard.isEnded === true) return;
    heard.isEnded = true;
    const item = readWhole(values);
    switch (item.type) {
      case "message": {
        const { content, extra } = item;
        heard.extra = extra;
        if (typeof content === "string") addRest(index, "text", 0, content);
        else for (const [at, part] of content.entries()) endPart(index, at, part);
        if (values["status"] !== "incomplete") told.push({ type: "message-end", extra });
        return;
      }
      case "reasoning":
        addRest(index, "thought", 0, item.text);
        for (const [at, section] of item.summary.entries()) addRest(index, "section", at, section);
        if (item.encrypted !== undefined)
          told.push({ type: "reasoning-seal", encrypted: markSource(item.encrypted, source) });
        return;
      case "tool-call":
        beginCall(index, item);
        return addRest(index, "arguments", 0, item.arguments);
      default:
        told.push(readOther(values));
    }
  }

  /** The notes on a text are told behind it. */
  function endPart(index: number, at: number, part: Part): void {
    if (part.type === "refusal") addRest(index, "refusal", at, part.text);
    if (part.type !== "text") return;
    addRest(index, "text", at, part.text, part.logprobs);
    for (const annotation of part.annotations ?? []) told.push({ type: "annotation", annotation });
  }

  /** Some servers tell only the end of an answer, and some no end of its items. */
  function finish(response: Said, shortage?: Finish): void {
    const isNews = items.length === 0;
    for (const [index, item] of (listAt(response, "output") ?? []).entries())
      if (isObject(item) && (isNews || items[index] !== undefined)) end(index, item);
    tellNotes(response, told);
    const reason = items.some(({ isCall }) => isCall === true) ? "tool-calls" : "stop";
    told.push({ type: "finish", reason: shortage ?? reason });
    isFinished = true;
  }

  function accept(event: Said, deltas: Delta[]): void {
    told = deltas;
    const index = countAt(event, "output_index");
    const piece = pieces.get(event["type"]);
    if (piece !== undefined) {
      const [kind, place] = piece;
      return add(index, kind, countAt(event, place), textAt(event, "delta") ?? "", listAt(event, "logprobs"));
    }
    const response = objectAt(event, "response") ?? {};
    switch (event["type"]) {
      case "response.function_call_arguments.done":
      case "response.custom_tool_call_input.done":
        return addRest(index, "arguments", 0, textAt(event, "arguments") ?? textAt(event, "input") ?? "");
      case "response.output_item.added":
        return begin(index, objectAt(event, "item") ?? {});
      case "response.output_item.done":
        return end(index, objectAt(event, "item") ?? {});
      case "response.completed":
        return finish(response);
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

  return { accept, isFinished: () => isFinished };
}

function toDelta(
  index: number,
  kind: TextKind,
  part: number,
  text: string,
  extra: Extra | undefined,
  logprobs: readonly unknown[] = [],
): Delta {
  switch (kind) {
    case "text":
      return { type: "text", text, logprobs: logprobs.length > 0 ? logprobs : undefined, extra };
    case "refusal":
      return { type: "refusal", text, extra };
    case "thought":
      return { type: "reasoning", text };
    case "section":
      // Sections of all items have numbers of their own.
      return { type: "reasoning", text, summary: index * mostSections + part };
    case "arguments":
      return { type: "tool-arguments", index, text };
  }
}

/** More than any summary has. */
const mostSections = 10_000;

/** Pieces of texts: what they belong to, and the name of its number. */
const pieces = new Map<unknown, readonly [kind: TextKind, place: string]>([
  ["response.output_text.delta", ["text", "content_index"]],
  ["response.refusal.delta", ["refusal", "content_index"]],
  ["response.reasoning_text.delta", ["thought", ""]],
  ["response.reasoning_summary_text.delta", ["section", "summary_index"]],
  ["response.function_call_arguments.delta", ["arguments", ""]],
  ["response.custom_tool_call_input.delta", ["arguments", ""]],
]);

const callTypes = new Set<unknown>(["function_call", "custom_tool_call"]);

/** As a caller's. */
function readWhole(item: Said): Item {
  try {
    return readItem({ values: item, key: "" }, noSeal);
  } catch (cause) {
    throw new GatewayError("adapter_protocol", `The upstream sent an item that is none: ${String(cause)}`, { cause });
  }
}

/** The event that would have brought this response. */
function endOf(response: Said): string {
  const { status } = response;
  if (status === "failed" || errorIn(response) !== undefined) return "response.failed";
  if (status === "incomplete") return "response.incomplete";
  if (!unfinished.has(status) && listAt(response, "output") !== undefined) return "response.completed";
  throw new GatewayError("adapter_protocol", "The upstream's answer contains no finished response.");
}

const unfinished = new Set<unknown>(["queued", "in_progress", "cancelled"]);

/** Nearly all fields of a response repeat its request. */
function tellNotes(response: Said, deltas: Delta[]): void {
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
