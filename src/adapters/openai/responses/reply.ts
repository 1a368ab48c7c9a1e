/** Reads a responses answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Extra } from "../../../core/item.ts";
import type { Finish } from "../../../core/turn.ts";
import { brokenOff } from "../../failures.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, countAt, isObject, listAt, objectAt, textAt } from "../../json.ts";
import { errorIn } from "../failure.ts";
import { requireJson, toArgumentsText } from "../json.ts";
import { annotationsAt, readAnnotation } from "../annotations.ts";
import { readLogprobs } from "../logprobs.ts";
import { extraOf } from "../native.ts";
import { type NoteSender, createNoteSender, placeOf } from "./notes.ts";
import { type AnswerReader, type ReplyReader, type Say, createStreamReader, requireObject } from "../stream.ts";
import { readUsage } from "../usage.ts";

/** Reads a stream. */
export function createReplyReader(scrub: Scrub): ReplyReader {
  return createStreamReader((say) => createAnswerReader(say, scrub), scrub);
}

/** Reads an answer that came whole, as the end of a stream of which nothing was sent before. */
export function readWholeReply(body: string, scrub: Scrub): readonly Delta[] {
  const deltas: Delta[] = [];
  const response = requireObject(requireJson(body, scrub));
  createAnswerReader((delta) => deltas.push(delta), scrub).accept({ type: endOf(response), response });
  return deltas;
}

function createAnswerReader(say: Say, scrub: Scrub): AnswerReader {
  const reading: Reading = {
    say,
    notes: createNoteSender(say),
    items: new Map(),
    open: -1,
    section: -1,
    sectionPlace: "",
    isOver: false,
  };
  return {
    accept(event) {
      const read = readers.get(event["type"]);
      if (read !== undefined) return read(reading, event, countAt(event, "output_index"));
      const failure = failureIn(event);
      if (failure !== undefined) throw toReportedFailure(failure, scrub);
    },
    stage: () => (reading.isOver ? "over" : "open"),
    end() {
      if (!reading.isOver) throw brokenOff();
    },
  };
}

/** An answer that is being read. */
interface Reading {
  readonly say: Say;
  readonly notes: NoteSender;
  /** Its items, by output index. */
  readonly items: Map<number, ItemReading>;
  /** The index of the item said last, while more of it may come; or -1. */
  open: number;
  /** Summary sections are numbered across items, to keep those of two items apart. */
  section: number;
  sectionPlace: string;
  isOver: boolean;
}

interface ItemReading {
  /** Something of it was said: words, or a call's arguments. */
  isSaid: boolean;
  /** What the dialect adds to a message, said with its first words: alone it would already be an answer. */
  phase: Extra | undefined;
  /** The fields that the dialect adds to a call, as said so far; undefined until it has begun. */
  callFields: string | undefined;
}

type ReadEvent = (reading: Reading, event: JsonObject, index: number) => void;

/** Other events, such as a hosted tool's progress, tell nothing that its finished item does not. */
const readers: ReadonlyMap<unknown, ReadEvent> = new Map<unknown, ReadEvent>(
  Object.entries({
    "response.output_item.added": (reading, event, index) => beginItem(reading, objectAt(event, "item") ?? {}, index),
    "response.output_text.delta": sayPiece((text, event, index, { notes }) => {
      notes.recordText(placeOf(event, index), text);
      return { type: "text", text, logprobs: readLogprobs(listAt(event, "logprobs")) };
    }),
    "response.output_text.annotation.added"({ notes }, event, index) {
      const annotation = readAnnotation(event["annotation"]);
      if (annotation !== undefined) notes.addNote(placeOf(event, index), annotation);
    },
    "response.refusal.delta": sayPiece((text) => ({ type: "refusal", text })),
    "response.reasoning_text.delta": sayPiece((text) => ({ type: "reasoning", text })),
    "response.reasoning_summary_text.delta": sayPiece((text, event, index, reading) => {
      return { type: "reasoning", text, summary: sectionAt(reading, index, countAt(event, "summary_index")) };
    }),
    "response.function_call_arguments.delta": sayPiece(toArguments),
    "response.custom_tool_call_input.delta": sayPiece(toArguments),
    "response.output_item.done": (reading, event, index) => endItem(reading, objectAt(event, "item") ?? {}, index),
    "response.completed": (reading, event) => endAnswer(reading, objectAt(event, "response") ?? {}),
    "response.incomplete"(reading, event) {
      const response = objectAt(event, "response") ?? {};
      endAnswer(reading, response, shortageOf(response));
    },
  } satisfies Record<string, ReadEvent>),
);

/** What an event reports as failed; servers made for another wire do so in its form. */
function failureIn(event: JsonObject): unknown {
  if (event["type"] === "response.failed") return errorIn(objectAt(event, "response") ?? {}) ?? {};
  return event["type"] === "error" ? { ...event, ...objectAt(event, "error") } : errorIn(event);
}

type ToDelta = (text: string, event: JsonObject, index: number, reading: Reading) => Delta | undefined;

/** Reads an event with the next piece of an item. */
function sayPiece(toDelta: ToDelta): ReadEvent {
  return (reading, event, index) => {
    const text = textAt(event, "delta");
    const delta = text === undefined ? undefined : toDelta(text, event, index, reading);
    if (delta === undefined) return;
    const item = itemAt(reading, index);
    const opens = !item.isSaid && (delta.type === "text" || delta.type === "refusal");
    reading.say(opens && item.phase !== undefined ? { ...delta, extra: item.phase } : delta);
    item.isSaid = true;
    reading.open = index;
  };
}

/** If the call has not begun, its `done` item has the arguments. */
function toArguments(text: string, _: JsonObject, index: number, reading: Reading): Delta | undefined {
  return itemAt(reading, index).callFields === undefined ? undefined : { type: "tool-arguments", index, text };
}

function itemAt({ items }: Reading, index: number): ItemReading {
  let item = items.get(index);
  if (item === undefined) items.set(index, (item = { isSaid: false, phase: undefined, callFields: undefined }));
  return item;
}

function sectionAt(reading: Reading, index: number, summary: number): number {
  const place = `${index} ${summary}`;
  if (place !== reading.sectionPlace) reading.section += 1;
  reading.sectionPlace = place;
  return reading.section;
}

function beginItem(reading: Reading, item: JsonObject, index: number): void {
  reading.open = -1;
  if (item["type"] === "message") itemAt(reading, index).phase = phaseOf(item);
  else beginCall(reading, item, index);
}

function beginCall(reading: Reading, item: JsonObject, index: number): void {
  const kind = callKinds.get(item["type"]);
  const name = textAt(item, "name");
  // A call without a name yet begins when it is done.
  if (kind === undefined || name === undefined) return;
  const begun = itemAt(reading, index);
  const before = begun.callFields;
  const extra = extraOf(item, knownOfCall, "responses");
  begun.callFields = JSON.stringify(extra?.fields ?? {});
  if (before === undefined) {
    const callId = textAt(item, "call_id");
    const group = textAt(item, "namespace");
    const more = { ...(group !== undefined && { group }), ...(extra !== undefined && { extra }) };
    reading.say({ type: "tool-call", index, callId, name, kind, ...more });
  } else if (extra !== undefined && begun.callFields !== before) reading.say({ type: "tool-extra", index, extra });
}

/** Says what the pieces of a complete item have not. */
function endItem(reading: Reading, item: JsonObject, index: number): void {
  const begun = itemAt(reading, index);
  const isNews = !begun.isSaid;
  begun.isSaid = true;
  sayRest(reading, item, index);
  reading.open = -1;
  switch (item["type"]) {
    case "message":
      return endMessage(reading, item, index, isNews);
    case "reasoning": {
      if (isNews) sayReasoning(reading, item, index);
      const encrypted = textAt(item, "encrypted_content");
      if (encrypted !== undefined) reading.say({ type: "reasoning-seal", encrypted });
      return;
    }
    case "function_call":
    case "custom_tool_call": {
      beginCall(reading, item, index);
      if (begun.callFields === undefined) {
        throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
      }
      const text = toArgumentsText(item[item["type"] === "function_call" ? "arguments" : "input"]);
      if (isNews && text !== "") reading.say({ type: "tool-arguments", index, text });
      return;
    }
    default:
      if (!isNews || textAt(item, "type") === undefined) return;
      if (isCallersSearch(item)) return saySearch(reading, item, index);
      // What we have no type for, such as a hosted tool's call, is for callers of this dialect.
      reading.say(toOther(item));
  }
}

function endMessage({ say, notes }: Reading, item: JsonObject, index: number, isNews: boolean): void {
  const extra = phaseOf(item);
  for (const [number, part] of partsAt(item, "content").entries()) {
    const place = { item: index, part: number };
    if (isNews) notes.recordText(place, sayPart(say, part, extra));
    notes.completeNotes(place, annotationsAt(part));
  }
  if (item["status"] !== "incomplete") say({ type: "message-end", extra });
}

/** Gives its text. */
function sayPart(say: Say, part: JsonObject, extra: Extra | undefined): string {
  const ofMessage = extra && { extra };
  const text = textAt(part, "text");
  if (text !== undefined) {
    say({ type: "text", text, logprobs: readLogprobs(listAt(part, "logprobs")), ...ofMessage });
  }
  const refusal = textAt(part, "refusal");
  if (refusal !== undefined) say({ type: "refusal", text: refusal, ...ofMessage });
  return text ?? "";
}

/** Some servers stream less of a text than the complete item has. */
function sayRest({ notes, open }: Reading, item: JsonObject | undefined, index: number): void {
  if (index !== open || item?.["type"] !== "message") return;
  for (const [part, whole] of partsAt(item, "content").entries())
    notes.completeText({ item: index, part }, textAt(whole, "text") ?? "");
}

function sayReasoning(reading: Reading, item: JsonObject, index: number): void {
  for (const key of ["content", "summary"] as const) {
    for (const [number, part] of partsAt(item, key).entries()) {
      const text = textAt(part, "text");
      const section = key === "summary" && text !== undefined && { summary: sectionAt(reading, index, number) };
      if (text !== undefined) reading.say({ type: "reasoning", text, ...section });
    }
  }
}

function saySearch(reading: Reading, item: JsonObject, index: number): void {
  itemAt(reading, index).callFields = "";
  reading.say({ type: "tool-call", index, callId: textAt(item, "call_id"), name: "tool_search", kind: "search" });
  reading.say({ type: "tool-arguments", index, text: JSON.stringify(item["arguments"] ?? {}) });
}

function endAnswer(reading: Reading, response: JsonObject, shortage?: Finish): void {
  const { say, items } = reading;
  const output = partsAt(response, "output");
  // Some servers stream only the end.
  if (!items.values().some(({ isSaid }) => isSaid)) output.forEach((item, index) => endItem(reading, item, index));
  sayRest(reading, output[reading.open], reading.open);
  const serviceTier = textAt(response, "service_tier");
  if (serviceTier !== undefined) say({ type: "notes", notes: { serviceTier } });
  const usage = objectAt(response, "usage");
  if (usage !== undefined) say({ type: "usage", usage: readUsage(usage, "input", "output") });
  const hasCalls = items.values().some(({ callFields }) => callFields !== undefined);
  say({ type: "finish", reason: shortage ?? (hasCalls ? "tool-calls" : "stop") });
  reading.isOver = true;
}

/** A message's phase (commentary or final) is also sent back in the next turn. */
function phaseOf(message: JsonObject): Extra | undefined {
  const phase = textAt(message, "phase");
  return phase === undefined ? undefined : { dialect: "responses", fields: { phase } };
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

function partsAt(from: JsonObject, key: string): readonly JsonObject[] {
  return (listAt(from, key) ?? []).filter(isObject);
}
