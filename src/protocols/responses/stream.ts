/** Says an answer as server-sent events, in the order of the wire, numbered without gaps. */
import { GatewayError, toWireError } from "../../core/errors.ts";
import type { Event, OutputItem } from "../../core/event.ts";
import type { About } from "../../core/ports.ts";
import type { Answer } from "../../core/turn.ts";
import { createResponseWriter } from "./object.ts";
import { toItemId, toWireItem } from "./output.ts";
import { type ItemParts, type Say, createCallInput, createParts } from "./parts.ts";
import type { Echo } from "./request.ts";
import type { Sealing } from "./seal.ts";
import { createReasoningSummary, type ReasoningSummary, wantsSummary } from "./summary.ts";

type ItemEnd = Extract<Event, { type: "item-end" }>;

/** The returned function makes one write of all events of a batch. */
export function createSpeaker(
  about: About,
  echo: Echo,
  sealing: Sealing,
  saysError = true,
): (events: readonly Event[]) => string {
  const writeResponse = createResponseWriter(about, echo);
  const summarises = wantsSummary(echo);
  const output: string[] = [];
  let parts: ItemParts | undefined;
  let reasoningSummary: ReasoningSummary | undefined;
  let count = 0;
  let broken: ItemEnd | undefined;

  const say: Say = {
    event: (type, body) => `event: ${type}\ndata: {"type":"${type}",${body},"sequence_number":${count++}}\n\n`,
    number: () => count++,
  };

  function queueTurn(): string {
    const body = `"response":${writeResponse("queued", output)}`;
    return say.event("response.created", body) + say.event("response.queued", body);
  }

  function beginTurn(): string {
    const body = `"response":${writeResponse("in_progress", output)}`;
    // A queued one was already announced.
    return (count > 0 ? "" : say.event("response.created", body)) + say.event("response.in_progress", body);
  }

  function beginItem(item: OutputItem, index: number): string {
    const id = toItemId(about.id, item, index);
    // Readers collect items by these numbers, so a deleted item leaves no gap in them; only in the ids.
    const at = output.length;
    parts = item.type === "tool-call" ? createCallInput(say, item, id, at) : createParts(say, id, at);
    reasoningSummary = summarises && item.type === "reasoning" ? createReasoningSummary() : undefined;
    const body = JSON.stringify(toWireItem(item, id, "in_progress", sealing));
    return say.event("response.output_item.added", `"item":${body},"output_index":${at}`);
  }

  function endItem(end: ItemEnd): string {
    const said = parts?.close() ?? "";
    parts = undefined;
    const body = keepItem(end);
    return said + say.event("response.output_item.done", `"item":${body},"output_index":${output.length - 1}`);
  }

  function keepItem({ item, index, whole }: ItemEnd): string {
    const id = toItemId(about.id, item, index);
    const status = whole ? "completed" : "incomplete";
    const body = JSON.stringify(toWireItem(item, id, status, sealing, reasoningSummary?.sections()));
    output.push(body);
    return body;
  }

  /**
   * An item cut off by a failed turn is never sent as done: agents run a call that is done, and accept half an answer
   * as complete, whatever its status.
   */
  function endBroken(status: Answer["status"]): string {
    if (broken === undefined) return "";
    if (status === "incomplete") return endItem(broken);
    keepItem(broken);
    return "";
  }

  /** The wire has no event for a cancelled response, so it is sent as failed, but without an `error` event. */
  function endTurn(answer: Answer): string {
    const isCancelled = answer.status === "cancelled";
    const error = isCancelled ? new GatewayError("cancelled", "The response was cancelled.") : answer.error;
    const status = isCancelled ? "failed" : answer.status;
    const said = error === undefined || isCancelled || !saysError ? "" : sayError(error);
    const body = `"response":${writeResponse({ ...answer, status, error }, output)}`;
    return `${said}${say.event(`response.${status}`, body)}data: [DONE]\n\n`;
  }

  /** Some readers look only in `error`, others only beside it. */
  function sayError(error: GatewayError): string {
    const { type, code, message, param } = toWireError(error);
    const body = JSON.stringify({ error: { type, code, message, param }, code, message, param });
    return say.event("error", body.slice(1, -1));
  }

  function writeEvent(event: Event): string {
    switch (event.type) {
      case "turn-queued":
        return queueTurn();
      case "turn-start":
        return beginTurn();
      case "item-start":
        return beginItem(event.item, event.index);
      case "item-delta":
        return parts?.accept(reasoningSummary?.accept(event) ?? event) ?? "";
      case "item-end":
        if (event.whole) return endItem(event);
        broken = event;
        return "";
      case "turn-end":
        return endBroken(event.answer.status) + endTurn(event.answer);
    }
  }

  return (events) => {
    let said = "";
    for (const event of events) said += writeEvent(event);
    return said;
  };
}
