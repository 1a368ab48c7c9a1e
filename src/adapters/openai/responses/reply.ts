/** Reads a responses answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Extra } from "../../../core/item.ts";
import type { Finish } from "../../../core/turn.ts";
import { brokenOff } from "../../failures.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, countAt, isObject, listAt, objectAt, textAt } from "../../json.ts";
import { errorIn } from "../failure.ts";
import { requireJson } from "../json.ts";
import { annotationsAt, readAnnotation } from "../annotations.ts";
import { readLogprobs } from "../logprobs.ts";
import { extraOf } from "../native.ts";
import { createNoteSender, placeOf } from "./notes.ts";
import { type AnswerReader, type ReplyReader, createStreamReader, requireObject } from "../stream.ts";
import { readUsage } from "../usage.ts";

/** Reads a stream. */
export function createReplyReader(scrub: Scrub): ReplyReader {
  return createStreamReader(createAnswerReader(scrub), scrub);
}

/** Reads an answer that came whole, as the end of a stream of which nothing was sent before. */
export function readWholeReply(body: string, scrub: Scrub): readonly Delta[] {
  const deltas: Delta[] = [];
  const response = requireObject(requireJson(body, scrub));
  createAnswerReader(scrub).accept({ type: endOf(response), response }, deltas);
  return deltas;
}

/** A message's phase (commentary or final) is also sent back in the next turn. */
function phaseOf(message: JsonObject): Extra | undefined {
  const phase = textAt(message, "phase");
  return phase === undefined ? undefined : { dialect: "responses", fields: { phase } };
}

function createAnswerReader(scrub: Scrub): AnswerReader {
  /** The extra fields of begun calls, as sent so far, by output index. */
  const calls = new Map<number, string>();
  /** Output indexes of items with something sent; for a call, its arguments. */
  const told = new Set<number>();
  /** Phases of messages that have begun, by output index. */
  const phases = new Map<number, Extra>();
  const notes = createNoteSender();
  /** The output index of the item sent last, while more of it may come; or -1. */
  let open = -1;
  /** Summary sections are numbered across items, to keep those of two items apart. */
  let section = -1;
  let sectionPlace = "";
  let over = false;

  function beginItem(item: JsonObject, index: number, deltas: Delta[]): void {
    open = -1;
    const phase = item["type"] === "message" ? phaseOf(item) : undefined;
    if (phase !== undefined) phases.set(index, phase);
    beginCall(item, index, deltas);
  }

  function beginCall(item: JsonObject, index: number, deltas: Delta[]): void {
    const kind = callKinds.get(item["type"]);
    const name = textAt(item, "name");
    // A call without a name yet begins when it is done.
    if (kind === undefined || name === undefined) return;
    const extra = extraOf(item, knownOfCall, "responses");
    const before = calls.get(index);
    const added = JSON.stringify(extra?.fields ?? {});
    calls.set(index, added);
    if (before === undefined) {
      const callId = textAt(item, "call_id");
      const group = textAt(item, "namespace");
      const more = { ...(group !== undefined && { group }), ...(extra !== undefined && { extra }) };
      deltas.push({ type: "tool-call", index, callId, name, kind, ...more });
    } else if (extra !== undefined && added !== before) deltas.push({ type: "tool-extra", index, extra });
  }

  function emit(event: JsonObject, index: number, toDelta: (text: string) => Delta, deltas: Delta[]): void {
    const text = textAt(event, "delta");
    if (text === undefined) return;
    const delta = toDelta(text);
    open = index;
    if (told.has(index)) return void deltas.push(delta);
    told.add(index);
    deltas.push(withPhase(delta, index));
  }

  /** A phase goes with its message's first words: alone it would already be an answer, with nothing said. */
  function withPhase(delta: Delta, index: number): Delta {
    const extra = phases.get(index);
    const isSaid = delta.type === "text" || delta.type === "refusal";
    return extra !== undefined && isSaid ? { ...delta, extra } : delta;
  }

  function sectionAt(index: number, summary: number): number {
    const place = `${index} ${summary}`;
    if (place !== sectionPlace) section += 1;
    sectionPlace = place;
    return section;
  }

  /** Sends what the pieces of a complete item have not. */
  function acceptItem(item: JsonObject, index: number, deltas: Delta[]): void {
    const isNews = !told.has(index);
    told.add(index);
    emitRest(item, index, deltas);
    open = -1;
    switch (item["type"]) {
      case "message": {
        const extra = phaseOf(item);
        for (const [number, part] of partsAt(item, "content").entries()) {
          const place = { item: index, part: number };
          if (isNews) notes.recordText(place, emitPart(part, extra, deltas));
          notes.completeNotes(place, annotationsAt(part), deltas);
        }
        if (item["status"] !== "incomplete") deltas.push({ type: "message-end", extra });
        return;
      }
      case "reasoning": {
        if (isNews) emitReasoning(item, index, deltas);
        const encrypted = textAt(item, "encrypted_content");
        if (encrypted !== undefined) deltas.push({ type: "reasoning-seal", encrypted });
        return;
      }
      case "function_call":
      case "custom_tool_call": {
        beginCall(item, index, deltas);
        if (!calls.has(index)) {
          throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
        }
        const text = textAt(item, item["type"] === "function_call" ? "arguments" : "input");
        if (isNews && text !== undefined) deltas.push({ type: "tool-arguments", index, text });
        return;
      }
      default:
        if (!isNews || textAt(item, "type") === undefined) return;
        if (isCallersSearch(item)) return emitSearch(item, index, deltas);
        // What we have no type for, such as a hosted tool's call, is for callers of this dialect.
        deltas.push(toOther(item));
    }
  }

  /** Some servers stream less of a text than the complete item has. */
  function emitRest(item: JsonObject | undefined, index: number, deltas: Delta[]): void {
    if (index !== open || item?.["type"] !== "message") return;
    for (const [part, whole] of partsAt(item, "content").entries())
      notes.completeText({ item: index, part }, textAt(whole, "text") ?? "", deltas);
  }

  function emitSearch(item: JsonObject, index: number, deltas: Delta[]): void {
    calls.set(index, "");
    deltas.push({ type: "tool-call", index, callId: textAt(item, "call_id"), name: "tool_search", kind: "search" });
    deltas.push({ type: "tool-arguments", index, text: JSON.stringify(item["arguments"] ?? {}) });
  }

  function note(event: JsonObject, index: number, deltas: Delta[]): void {
    const annotation = readAnnotation(event["annotation"]);
    if (annotation !== undefined) notes.addNote(placeOf(event, index), annotation, deltas);
  }

  function emitReasoning(item: JsonObject, index: number, deltas: Delta[]): void {
    for (const part of partsAt(item, "content")) {
      const text = textAt(part, "text");
      if (text !== undefined) deltas.push({ type: "reasoning", text });
    }
    for (const [number, part] of partsAt(item, "summary").entries()) {
      const text = textAt(part, "text");
      if (text !== undefined) deltas.push({ type: "reasoning", text, summary: sectionAt(index, number) });
    }
  }

  function acceptEnd(response: JsonObject, shortage: Finish | undefined, deltas: Delta[]): void {
    const output = partsAt(response, "output");
    // Some servers stream only the end.
    if (told.size === 0) output.forEach((item, index) => acceptItem(item, index, deltas));
    emitRest(output[open], open, deltas);
    const serviceTier = textAt(response, "service_tier");
    if (serviceTier !== undefined) deltas.push({ type: "notes", notes: { serviceTier } });
    const usage = objectAt(response, "usage");
    if (usage !== undefined) deltas.push({ type: "usage", usage: readUsage(usage, "input", "output") });
    deltas.push({ type: "finish", reason: shortage ?? (calls.size > 0 ? "tool-calls" : "stop") });
    over = true;
  }

  return {
    accept(event, deltas) {
      const index = countAt(event, "output_index");
      switch (event["type"]) {
        case "response.output_item.added":
          return beginItem(objectAt(event, "item") ?? {}, index, deltas);
        case "response.output_text.delta": {
          notes.recordText(placeOf(event, index), textAt(event, "delta") ?? "");
          const logprobs = readLogprobs(listAt(event, "logprobs"));
          return emit(event, index, (text) => ({ type: "text", text, logprobs }), deltas);
        }
        case "response.output_text.annotation.added":
          return note(event, index, deltas);
        case "response.refusal.delta":
          return emit(event, index, (text) => ({ type: "refusal", text }), deltas);
        case "response.reasoning_text.delta":
          return emit(event, index, (text) => ({ type: "reasoning", text }), deltas);
        case "response.reasoning_summary_text.delta": {
          const summary = sectionAt(index, countAt(event, "summary_index"));
          return emit(event, index, (text) => ({ type: "reasoning", text, summary }), deltas);
        }
        case "response.function_call_arguments.delta":
        case "response.custom_tool_call_input.delta":
          // If the call has not begun, its `done` item has the arguments.
          if (calls.has(index)) emit(event, index, (text) => ({ type: "tool-arguments", index, text }), deltas);
          return;
        case "response.output_item.done":
          return acceptItem(objectAt(event, "item") ?? {}, index, deltas);
        case "response.completed":
          return acceptEnd(objectAt(event, "response") ?? {}, undefined, deltas);
        case "response.incomplete": {
          const response = objectAt(event, "response") ?? {};
          return acceptEnd(response, shortageOf(response), deltas);
        }
        case "response.failed":
          throw toReportedFailure(errorIn(objectAt(event, "response") ?? {}) ?? {}, scrub);
        case "error":
          throw toReportedFailure({ ...event, ...objectAt(event, "error") }, scrub);
        default: {
          // Servers made for another wire report failures in its form. Other events, such as a hosted tool's progress,
          // tell nothing that its finished item does not.
          const error = errorIn(event);
          if (error !== undefined) throw toReportedFailure(error, scrub);
        }
      }
    },
    stage: () => (over ? "over" : "open"),
    end() {
      if (!over) throw brokenOff();
    },
  };
}

/** The event that would have brought this response. */
function endOf(response: JsonObject): string {
  const status = response["status"];
  if (status === "failed" || errorIn(response) !== undefined) return "response.failed";
  if (status === "incomplete") return "response.incomplete";
  if (!unfinished.has(status) && listAt(response, "output") !== undefined) return "response.completed";
  throw new GatewayError("adapter_protocol", "The upstream's answer contains no finished response.");
}

const unfinished: ReadonlySet<unknown> = new Set(["queued", "in_progress", "cancelled"]);

/** A tool search for the caller to run; the server's own are marked, or have no id. */
function isCallersSearch(item: JsonObject): boolean {
  const isServers = item["execution"] === "server" || textAt(item, "call_id") === undefined;
  return item["type"] === "tool_search_call" && !isServers;
}

/** Items that await the caller have a call id, or an id that the caller's answer names. */
function toOther(item: JsonObject): Delta {
  const id = textAt(item, item["type"] === "mcp_approval_request" ? "id" : "call_id");
  const side = textAt(item, "type")?.endsWith("_output") === true ? "tools" : "model";
  const extra = { dialect: "responses", fields: item } as const;
  return { type: "other", extra, ...(id !== undefined && { exchange: { side, id } }) };
}

const knownOfCall = new Set(["type", "id", "status", "call_id", "name", "namespace", "arguments", "input"]);

const callKinds: ReadonlyMap<unknown, "function" | "custom"> = new Map([
  ["function_call", "function"],
  ["custom_tool_call", "custom"],
]);

/** Why a response is incomplete; an unknown reason counts as a limit. */
function shortageOf(response: JsonObject): Finish {
  const reason = objectAt(response, "incomplete_details")?.["reason"];
  return reason === "content_filter" ? "content-filter" : "length";
}

/** Gives its text. */
function emitPart(part: JsonObject, extra: Extra | undefined, deltas: Delta[]): string {
  const ofMessage = extra && { extra };
  const text = textAt(part, "text");
  if (text !== undefined) {
    deltas.push({ type: "text", text, logprobs: readLogprobs(listAt(part, "logprobs")), ...ofMessage });
  }
  const refusal = textAt(part, "refusal");
  if (refusal !== undefined) deltas.push({ type: "refusal", text: refusal, ...ofMessage });
  return text ?? "";
}

function partsAt(from: JsonObject, key: string): readonly JsonObject[] {
  return (listAt(from, key) ?? []).filter(isObject);
}
