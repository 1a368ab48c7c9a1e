/** Replays a stored turn, event by event, exactly as it was told the first time. */
import { GatewayError } from "../errors.ts";
import type { Event, Events, ItemEvent, OutputItem } from "../event.ts";
import { isRemoved } from "../item.ts";
import { cutItem, type Pieces, toSkeleton } from "./pieces.ts";
import { type About, unplaced } from "../ports.ts";
import type { StoredFailure, StoredTurn } from "../store.ts";
import type { Answer } from "../turn.ts";

export function replayTurn(turn: StoredTurn): readonly Event[] {
  const answer = toAnswer(turn);
  const events: Event[] = turn.told?.background === true ? [{ type: "turn-queued" }] : [];
  events.push({ type: "turn-start" });
  for (const [at, item] of answer.items.entries()) {
    const index = answer.places?.[at] ?? at;
    for (const event of replayItem(item, index, answer.pieces?.[index], index !== answer.brokenOff)) events.push(event);
  }
  for (const [at, { items }] of (answer.others ?? []).entries()) {
    for (const [index, item] of items.entries())
      for (const event of replayItem(item, index)) events.push({ ...event, choice: at + 1 });
  }
  events.push({ type: "turn-end", answer });
  return events;
}

function* replayItem(item: OutputItem, index: number, segments?: Pieces[number], whole = true): Generator<ItemEvent> {
  yield { type: "item-start", index, item: toSkeleton(item, segments) };
  yield* cutItem(item, index, segments);
  yield { type: "item-end", index, item, whole };
}

/** How many events are told at once, so that a slow reader does not hold all of a long answer's text. */
const eventsAtOnce = 500;

/** The same, in batches. */
export async function* replayInBatches(turn: StoredTurn): Events {
  const events = replayTurn(turn);
  for (let at = 0; at < events.length; at += eventsAtOnce) yield events.slice(at, at + eventsAtOnce);
}

/** Whether its events are known exactly as they were told, so that they can be resumed in the middle. */
export function isExact(turn: StoredTurn): boolean {
  // The order of several answers' events is unknown.
  if (turn.told?.others !== undefined) return false;
  return turn.output.length === 0 || (turn.told?.pieces !== undefined && !turn.output.some(isRemoved));
}

/** What its caller was told before the first word. */
export function toAbout(turn: StoredTurn): About {
  const { id, createdAt, model, session, told } = turn;
  return {
    id,
    createdAt,
    model,
    session: session ?? told?.session,
    history: told?.history,
    contextItems: told?.contextItems,
    omittedItems: told?.omittedItems ?? 0,
    truncation: told?.truncation ?? "disabled",
    remarks: told?.remarks ?? [],
  };
}

/** The result of a turn that is over; one still stored as running was left behind. */
export function toAnswer(turn: StoredTurn): Answer {
  const { status, usage, told, output } = turn;
  const failure = status === "running" ? interrupted : told?.failure;
  return {
    status: status === "running" || status === "shown" ? "failed" : status,
    finish: told?.finish ?? (status === "incomplete" ? "length" : "stop"),
    items: output.filter(isOutput),
    ...(output.some(isRemoved) && { places: output.flatMap((item, index) => (isOutput(item) ? [index] : [])) }),
    ...(told?.others !== undefined && { others: told.others }),
    usage,
    error: failure && toError(failure),
    notes: told?.notes ?? {},
    endedAt: told?.endedAt ?? turn.createdAt,
    brokenOff: brokenOffOf(turn),
    pieces: told?.pieces,
  };
}

/**
 * The index of the item that was being said when the answer broke off. A turn that is not stored for a replay does not
 * tell: then it is the last, unless a seal had completed that.
 */
export function brokenOffOf({ status, told, output }: StoredTurn): number | undefined {
  if (told !== undefined) return told.brokenOff;
  const last = output.at(-1);
  const isSealed = last?.type === "reasoning" && last.encrypted !== undefined;
  return status === "incomplete" && !isSealed ? output.length - 1 : undefined;
}

/** The failure of a turn that was running when the gateway stopped. */
export const interrupted: StoredFailure = {
  code: "interrupted",
  message: "The gateway was stopped while this turn ran. Send the request again.",
};

/** A running turn that nobody works on, as failed. */
export function toAbandoned(turn: StoredTurn, failure: StoredFailure, endedAt: Date): StoredTurn {
  const { history, contextItems, omittedItems, truncation } = unplaced;
  const told = turn.told ?? { history, contextItems, omittedItems, truncation, finish: "stop", notes: {} };
  return { ...turn, status: "failed", told: { ...told, endedAt, failure } };
}

export function toStoredFailure(error: GatewayError): StoredFailure {
  const { code, message, param, wireCode, retryAfterSeconds } = error;
  const own = { param: param ?? undefined, wireCode: wireCode === code ? undefined : wireCode };
  return { code, message, ...own, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

/** A stored failure as an error again. */
export function toError({ code, message, ...rest }: StoredFailure): GatewayError {
  return new GatewayError(code, message, rest);
}

function isOutput(item: StoredTurn["output"][number]): item is OutputItem {
  return item.type !== "tool-output";
}
