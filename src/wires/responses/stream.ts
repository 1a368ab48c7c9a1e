/** Tells an answer as server-sent events, in the order of the wire, numbered without gaps. */
import { type GatewayError, toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Annotation, Item } from "../../core/item.ts";
import type { Answer } from "../../core/turn.ts";
import type { Progress } from "../wire.ts";
import { writeAnnotation, writeSaid } from "./content.ts";
import { type ItemStatus, shownIdOf } from "./items.ts";

/** Writes an item as its caller sees it. */
type Show = (item: Item, status: ItemStatus) => string;
type ItemEnd = Extract<Event, { type: "item-end" }>;

/** One write for all events of a batch. `tellsError`: a failure is an `error` before it is the response's end. */
export function createSpeaker(
  heading: Heading,
  writeResponse: (state: Progress | Answer, output: readonly string[]) => string,
  show: Show,
  tellsError: boolean,
): (events: readonly Event[]) => string {
  const id = `resp_${heading.key}`;
  /** The items that were told, as JSON. */
  const output: string[] = [];
  /** Where the open item stands. */
  let place = "";
  /** Its open texts, for raw reasoning may go on behind a section of its summary. */
  let open: { content?: OpenText | undefined; summary?: OpenText } = {};
  let brokenOff: ItemEnd | undefined;
  let isInterrupted = false;
  let count = 0;

  const say: Say = {
    event: (type, body) => `event: ${type}\ndata: {"type":"${type}",${body},"sequence_number":${count++}}\n\n`,
    number: () => count++,
  };

  function announce(state: Progress): string {
    const body = `"response":${writeResponse(state, output)}`;
    // One that was queued has been created.
    return (count > 0 ? "" : say.event("response.created", body)) + say.event(`response.${state}`, body);
  }

  function beginItem(item: Item): string {
    const at = `"output_index":${output.length}`;
    place = `"item_id":${JSON.stringify(shownIdOf(item))},${at}`;
    open = { content: openInput(say, item, place) };
    return say.event("response.output_item.added", `"item":${show(item, "in_progress")},${at}`);
  }

  function addTo(delta: ItemDelta): string {
    const { kind, part, annotation } = delta;
    switch (kind) {
      case "extra": // The whole call has it.
        return "";
      case "arguments":
        return open.content?.add(delta) ?? "";
      case "annotation":
        return annotation === undefined ? "" : (open.content?.annotate(annotation) ?? "");
      default: {
        const side = kind === "summary" ? "summary" : "content";
        const before = open[side];
        if (before?.kind === kind && before.number === part) return before.add(delta);
        const text = (open[side] = openText(say, kind, part, place));
        return (before?.close() ?? "") + text.begin() + text.add(delta);
      }
    }
  }

  function endItem(end: ItemEnd): string {
    const said = (open.summary?.close() ?? "") + (open.content?.close() ?? "");
    const at = output.length;
    return said + say.event("response.output_item.done", `"item":${keepItem(end)},"output_index":${at}`);
  }

  function keepItem({ item, whole }: ItemEnd): string {
    const shown = show(item, whole ? "completed" : "incomplete");
    output.push(shown);
    return shown;
  }

  /** What was heard of it stays, but for half a call. */
  function interruptItem(end: ItemEnd): string {
    const at = `"output_index":${output.length}`;
    if (end.item.type !== "tool-call") keepItem(end);
    return say.event(
      "response.output_item.interrupted",
      `"response_id":"${id}","item_id":${JSON.stringify(shownIdOf(end.item))},${at}`,
    );
  }

  /** What a failure cut off is never told as done: agents run a call that is done, and keep half an answer for a whole one. */
  function endBrokenOff({ status }: Answer): string {
    if (brokenOff === undefined) return "";
    if (status === "incomplete") return endItem(brokenOff);
    keepItem(brokenOff);
    return "";
  }

  /** The wire has no event for a cancelled response: it is told as failed, but without an `error`. */
  function endTurn(answer: Answer): string {
    const { error } = answer;
    const status = answer.status === "cancelled" ? "failed" : answer.status;
    const said = error !== undefined && status === answer.status && tellsError ? sayError(error) : "";
    const response = writeResponse({ ...answer, status }, output);
    return `${said}${say.event(`response.${status}`, `"response":${response}`)}data: [DONE]\n\n`;
  }

  /** Some readers look only within `error`, others only beside it. */
  function sayError(error: GatewayError): string {
    const { type, ...flat } = toWireError(error);
    return say.event("error", JSON.stringify({ error: { type, ...flat }, ...flat }).slice(1, -1));
  }

  function tell(event: Event): string {
    switch (event.type) {
      case "turn-queued":
        return announce("queued");
      case "turn-start":
        return announce("in_progress");
      case "item-start":
        return beginItem(event.item);
      case "item-delta":
        return addTo(event);
      case "item-end":
        if (event.whole) return endItem(event);
        if (isInterrupted) return interruptItem(event);
        brokenOff = event;
        return "";
      case "turn-interrupted":
        isInterrupted = true;
        return say.event("response.interrupt.accepted", `"response_id":"${id}"`);
      case "turn-end":
        return endBrokenOff(event.answer) + endTurn(event.answer);
    }
  }

  return (events) => {
    let said = "";
    for (const event of events) said += tell(event);
    return said;
  };
}

/** Writes the events of a stream and numbers them. */
interface Say {
  event(type: string, body: string): string;
  /** The number for an event that is put together elsewhere. */
  number(): number;
}

/** A part of a message or of reasoning, or the input of a call. */
type OpenText = ReturnType<typeof openText>;
type TextKind = keyof typeof kinds;

const content = { part: "content_part", index: "content_index", said: "text" };
const section = { part: "reasoning_summary_part", index: "summary_index", said: "text" };

/** The wire's names for each kind. A call's input is no part of anything. */
const kinds = {
  text: { ...content, name: "output_text", write: writeSaid },
  refusal: { ...content, name: "refusal", said: "refusal", write: (refusal: string) => ({ type: "refusal", refusal }) },
  reasoning: { ...content, name: "reasoning_text", write: (text: string) => ({ type: "reasoning_text", text }) },
  summary: { ...section, name: "reasoning_summary_text", write: (text: string) => ({ type: "summary_text", text }) },
  function: { name: "function_call_arguments", said: "arguments", part: undefined },
  custom: { name: "custom_tool_call_input", said: "input", part: undefined },
} as const;

/** A text while it is told, of which every token makes an event. `item`: where it stands; `last`: what else its end tells. */
function openText(say: Say, kind: TextKind, number: number, item: string, last = "") {
  const form = kinds[kind];
  const place = form.part === undefined ? item : `"${form.index}":${number},${item}`;
  const type = `response.${form.name}`;
  // Only the text and what follows it are missing.
  const before = `event: ${type}.delta\ndata: {"type":"${type}.delta",${place},"delta":`;
  const logprobs: unknown[] = [];
  const annotations: Annotation[] = [];
  let whole = "";

  const sayPart = (step: "added" | "done"): string => {
    if (form.part === undefined) return "";
    const part = JSON.stringify(form.write(whole, logprobs, annotations));
    return say.event(`response.${form.part}.${step}`, `${place},"part":${part}`);
  };
  const list = (reported: readonly unknown[]): string =>
    kind === "text" ? `,"logprobs":${reported.length === 0 ? "[]" : JSON.stringify(reported)}` : "";

  return {
    kind,
    number,
    begin: (): string => sayPart("added"),
    add({ text, logprobs: reported = [] }: ItemDelta): string {
      whole += text;
      for (const entry of reported) logprobs.push(entry);
      return `${before}${JSON.stringify(text)}${list(reported)},"sequence_number":${say.number()}}\n\n`;
    },
    annotate(annotation: Annotation): string {
      const at = annotations.push(annotation) - 1;
      const note = `"annotation":${JSON.stringify(writeAnnotation(annotation))},"annotation_index":${at}`;
      return say.event(`${type}.annotation.added`, `${note},${place}`);
    },
    close: (): string =>
      say.event(`${type}.done`, `${place},"${form.said}":${JSON.stringify(whole)}${list(logprobs)}${last}`) +
      sayPart("done"),
  };
}

/** Of a call; of a search the wire tells nothing until it is complete. */
function openInput(say: Say, item: Item, place: string): OpenText | undefined {
  if (item.type !== "tool-call" || item.kind === "search") return undefined;
  return openText(say, item.kind, 0, place, item.kind === "function" ? `,"name":${JSON.stringify(item.name)}` : "");
}
