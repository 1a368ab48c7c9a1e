/** Tells an answer as server-sent events, in the order of the wire, numbered without gaps. */
import { GatewayError, toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Item } from "../../core/item.ts";
import type { Answer } from "../../core/turn.ts";
import { type Echo, toText } from "./echo.ts";
import { createResponseWriter } from "./object.ts";
import { shownIdOf } from "./other.ts";
import { createInput, createParts, type Say, type Texts } from "./parts.ts";
import { type Sealing, showItem } from "./written.ts";

type ItemEnd = Extract<Event, { type: "item-end" }>;

/** One write for all events of a batch. `tellsError`: a failure is an `error` before it is the response's end. */
export function createSpeaker(
  heading: Heading,
  echo: Echo,
  sealing: Sealing,
  tellsError: boolean,
): (events: readonly Event[]) => string {
  const writeResponse = createResponseWriter(heading, echo);
  /** The items that were told, as JSON. */
  const output: string[] = [];
  let texts: Texts | undefined;
  /** The open item is reasoning that is told as its own summary: the first word decides, as nobody waits for the rest. */
  let isSummarised: boolean | undefined;
  let brokenOff: ItemEnd | undefined;
  let count = 0;

  const say: Say = {
    event: (type, body) => `event: ${type}\ndata: {"type":"${type}",${body},"sequence_number":${count++}}\n\n`,
    number: () => count++,
  };

  const showOutput = (state: Parameters<typeof writeResponse>[0]): string =>
    `"response":${writeResponse(state, output)}`;

  function beginItem(item: Item): string {
    const at = output.length;
    const id = shownIdOf(item);
    texts = item.type === "tool-call" ? createInput(say, item, id, at) : createParts(say, id, at);
    isSummarised = echo.asked.summarises ? undefined : false;
    const shown = showItem(item, "in_progress", sealing);
    return say.event("response.output_item.added", `"item":${shown},"output_index":${at}`);
  }

  function addTo(delta: ItemDelta): string {
    const { kind, part } = delta;
    isSummarised ??= kind === "reasoning";
    if (!isSummarised) return texts?.add(kind, part, delta) ?? "";
    return texts?.add("summary", kind === "reasoning" ? 0 : part + 1, delta) ?? "";
  }

  function endItem(end: ItemEnd): string {
    const said = texts?.close() ?? "";
    const shown = keepItem(end);
    return said + say.event("response.output_item.done", `"item":${shown},"output_index":${output.length - 1}`);
  }

  function keepItem({ item, whole }: ItemEnd): string {
    const sections = isSummarised === true && item.type === "reasoning" ? [item.text, ...item.summary] : undefined;
    const shown = showItem(item, whole ? "completed" : "incomplete", sealing, sections);
    output.push(shown);
    texts = undefined;
    return shown;
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
    return `${said}${say.event(`response.${status}`, showOutput({ ...answer, status, error }))}data: [DONE]\n\n`;
  }

  /** Some readers look only within `error`, others only beside it. */
  function sayError(error: GatewayError): string {
    const { type, code, message, param } = toWireError(error);
    return say.event("error", toText({ error: { type, code, message, param }, code, message, param }));
  }

  function tell(event: Event): string {
    switch (event.type) {
      case "turn-queued": {
        const body = showOutput("queued");
        return say.event("response.created", body) + say.event("response.queued", body);
      }
      case "turn-start": {
        const body = showOutput("in_progress");
        // A queued one was announced already.
        return (count > 0 ? "" : say.event("response.created", body)) + say.event("response.in_progress", body);
      }
      case "item-start":
        return beginItem(event.item);
      case "item-delta":
        return addTo(event);
      case "item-end":
        if (event.whole) return endItem(event);
        brokenOff = event;
        return "";
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
