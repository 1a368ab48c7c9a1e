/** Reads a responses answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Finish } from "../../../core/turn.ts";
import { brokenOff } from "../../failures.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, countAt, listAt, objectAt, textAt } from "../../json.ts";
import { readAnnotation } from "../annotations.ts";
import { errorIn } from "../failure.ts";
import { requireJson, toArgumentsText } from "../json.ts";
import { readLogprobs } from "../logprobs.ts";
import { type AnswerReader, type ReplyReader, type Say, createStreamReader, requireObject } from "../stream.ts";
import { readUsage } from "../usage.ts";
import { type ItemReader, createItemReader } from "./item-reader.ts";

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
  const reading: Reading = { say, items: createItemReader(say), isOver: false };
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
  readonly items: ItemReader;
  isOver: boolean;
}

/** `index` is that of the event's item. */
type ReadEvent = (reading: Reading, event: JsonObject, index: number) => void;

/** Other events, such as a hosted tool's progress, tell nothing that its finished item does not. */
const readers: ReadonlyMap<unknown, ReadEvent> = new Map<unknown, ReadEvent>(
  Object.entries({
    "response.output_item.added": ({ items }, event, index) => items.begin(objectAt(event, "item") ?? {}, index),
    "response.output_text.delta": piece((items, text, event, index) => {
      items.addText(index, countAt(event, "content_index"), text, readLogprobs(listAt(event, "logprobs")));
    }),
    "response.output_text.annotation.added"({ items }, event, index) {
      const note = readAnnotation(event["annotation"]);
      if (note !== undefined) items.addNote(index, countAt(event, "content_index"), note);
    },
    "response.refusal.delta": piece((items, text, _, index) => items.addRefusal(index, text)),
    "response.reasoning_text.delta": piece((items, text, _, index) => items.addReasoning(index, text)),
    "response.reasoning_summary_text.delta": piece((items, text, event, index) => {
      items.addReasoning(index, text, countAt(event, "summary_index"));
    }),
    "response.function_call_arguments.delta": piece((items, text, _, index) => items.addArguments(index, text)),
    "response.custom_tool_call_input.delta": piece((items, text, _, index) => items.addArguments(index, text)),
    "response.function_call_arguments.done"({ items }, event, index) {
      items.completeArguments(index, toArgumentsText(event["arguments"]));
    },
    "response.custom_tool_call_input.done"({ items }, event, index) {
      items.completeArguments(index, toArgumentsText(event["input"]));
    },
    "response.output_item.done": ({ items }, event, index) => items.end(objectAt(event, "item") ?? {}, index),
    "response.completed": (reading, event) => endAnswer(reading, objectAt(event, "response") ?? {}),
    "response.incomplete"(reading, event) {
      const response = objectAt(event, "response") ?? {};
      endAnswer(reading, response, shortageOf(response));
    },
  } satisfies Record<string, ReadEvent>),
);

type AddPiece = (items: ItemReader, text: string, event: JsonObject, index: number) => void;

/** Reads an event with the next piece of an item. */
function piece(add: AddPiece): ReadEvent {
  return ({ items }, event, index) => {
    const text = textAt(event, "delta");
    if (text !== undefined) add(items, text, event, index);
  };
}

/** What an event reports as failed; servers made for another wire do so in its form. */
function failureIn(event: JsonObject): unknown {
  if (event["type"] === "response.failed") return errorIn(objectAt(event, "response") ?? {}) ?? {};
  return event["type"] === "error" ? { ...event, ...objectAt(event, "error") } : errorIn(event);
}

function endAnswer(reading: Reading, response: JsonObject, shortage?: Finish): void {
  const { say, items } = reading;
  items.endAll(response);
  const serviceTier = textAt(response, "service_tier");
  if (serviceTier !== undefined) say({ type: "notes", notes: { serviceTier } });
  // Nearly all other fields repeat the request.
  const moderation = objectAt(response, "moderation");
  if (moderation !== undefined)
    say({ type: "notes", notes: { extra: { dialect: "responses", fields: { moderation } } } });
  const usage = objectAt(response, "usage");
  if (usage !== undefined) say({ type: "usage", usage: readUsage(usage, "input", "output") });
  say({ type: "finish", reason: shortage ?? (items.hasCalls() ? "tool-calls" : "stop") });
  reading.isOver = true;
}

/** Why a response is incomplete; an unknown reason counts as a limit. */
function shortageOf(response: JsonObject): Finish {
  const reason = objectAt(response, "incomplete_details")?.["reason"];
  return reason === "content_filter" ? "content-filter" : "length";
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
