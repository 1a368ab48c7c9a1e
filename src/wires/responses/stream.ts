/** Tells an answer as server-sent events, in the order of the wire, numbered without gaps. */
import { GatewayError, toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Item } from "../../core/item.ts";
import type { Answer } from "../../core/turn.ts";
import { shownIdOf } from "./items.ts";
import { createResponseWriter, type Echo, type Progress, toText } from "./object.ts";
import { openInput, openText, type OpenText, type Say, type TextKind } from "./parts.ts";
import { type Sealing, showItem } from "./written.ts";

type ItemEnd = Extract<Event, { type: "item-end" }>;

/** One write for all events of a batch. `tellsError`: a failure is an `error` before it is the response's end. */
export function createSpeaker(
  heading: Heading,
  echo: Echo,
  sealing: Sealing,
  tellsError: boolean,
): (events: readonly Event[]) => string {
  const id = `resp_${heading.key}`;
  const writeResponse = createResponseWriter(heading, echo);
  /** The items that were told, as JSON. */
  const output: string[] = [];
  /** Where the open item stands. */
  let place = "";
  /** Its open texts, for raw reasoning may go on behind a section of its summary. */
  let open: { content?: OpenText | undefined; summary?: OpenText } = {};
  /** It is reasoning that is told as one section of a summary: the first word decides, as nobody waits for the rest. */
  let isSummarised: boolean | undefined;
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
    open = item.type === "tool-call" ? { content: openInput(say, item, place) } : {};
    isSummarised = echo.asked.summarises ? undefined : false;
    return say.event("response.output_item.added", `"item":${showItem(item, "in_progress", sealing)},${at}`);
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
      default:
        isSummarised ??= kind === "reasoning";
        return isSummarised ? addText("summary", 0, delta) : addText(kind, part, delta);
    }
  }

  function addText(kind: TextKind, part: number, delta: ItemDelta): string {
    const side = kind === "summary" ? "summary" : "content";
    const before = open[side];
    if (before?.kind === kind && before.number === part) return before.add(delta);
    const text = (open[side] = openText(say, kind, part, place));
    return (before?.close() ?? "") + text.begin() + text.add(delta);
  }

  function endItem(end: ItemEnd): string {
    const said = (open.summary?.close() ?? "") + (open.content?.close() ?? "");
    const at = output.length;
    return said + say.event("response.output_item.done", `"item":${keepItem(end)},"output_index":${at}`);
  }

  function keepItem({ item, whole }: ItemEnd): string {
    const section = isSummarised === true ? open.summary?.whole() : undefined;
    const status = whole ? "completed" : "incomplete";
    const shown = showItem(item, status, sealing, section === undefined ? undefined : [section]);
    output.push(shown);
    return shown;
  }

  /** What was heard of it stays, but for half a call. */
  function interruptItem(end: ItemEnd): string {
    const at = output.length;
    if (end.item.type !== "tool-call") keepItem(end);
    const place = { response_id: id, item_id: shownIdOf(end.item), output_index: at };
    return say.event("response.output_item.interrupted", toText(place));
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
    const isCancelled = answer.status === "cancelled";
    const error = isCancelled ? new GatewayError("cancelled", "The response was cancelled.") : answer.error;
    const status = isCancelled ? "failed" : answer.status;
    const said = error === undefined || isCancelled || !tellsError ? "" : sayError(error);
    const response = writeResponse({ ...answer, status, error }, output);
    return `${said}${say.event(`response.${status}`, `"response":${response}`)}data: [DONE]\n\n`;
  }

  /** Some readers look only within `error`, others only beside it. */
  function sayError(error: GatewayError): string {
    const { type, code, message, param } = toWireError(error);
    return say.event("error", toText({ error: { type, code, message, param }, code, message, param }));
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
        return say.event("response.interrupt.accepted", toText({ response_id: id }));
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
