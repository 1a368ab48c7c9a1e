/** Replays a stored turn, event by event, exactly as it was told the first time. */
import { GatewayError } from "../errors.ts";
import type { Event, Events, ItemEvent, OutputItem } from "../event.ts";
import { isRemoved } from "../item.ts";
import { inBatches } from "./batches.ts";
import { cutItem, type Pieces, toSkeleton } from "./pieces.ts";
import { type About, unplaced } from "../ports.ts";
import type { StoredFailure, StoredTurn } from "../store.ts";
import type { Answer } from "../turn.ts";

/** Each event is produced when it is wanted. Only the answer is kept for that: what was asked may be much longer. */
export function replayTurn(turn: StoredTurn): Generator<Event> {
  return tellAnswer(toAnswer(turn), turn.told?.background === true);
}

/** The same in batches, from the event at `from` on. */
export function replayInBatches(turn: StoredTurn, from = 0): Events {
  return inBatches(replayTurn(turn).drop(from));
}

function* tellAnswer(answer: Answer, wasQueued: boolean): Generator<Event> {
  if (wasQueued) yield { type: "turn-queued" };
  yield { type: "turn-start" };
  for (const [at, item] of answer.items.entries()) {
    const index = answer.places?.[at] ?? at;
    yield* replayItem(item, index, answer.pieces?.[index], index !== answer.brokenOff);
  }
  for (const [at, { items }] of (answer.others ?? []).entries()) {
    for (const [index, item] of items.entries())
      for (const event of replayItem(item, index)) yield { ...event, choice: at + 1 };
  }
  yield { type: "turn-end", answer };
}

function* replayItem(item: OutputItem, index: number, segments?: Pieces[number], whole = true): Generator<ItemEvent> {
  yield { type: "item-start", index, item: toSkeleton(item, segments) };
  yield* cutItem(item, index, segments);
  yield { type: "item-end", index, item, whole };
}

/** About how many characters are kept while a turn is replayed: its answer, and what its dialect remembers of it. */
export function sizeOfReplay({ output, told }: StoredTurn): number {
  return JSON.stringify([output, told]).length;
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
    ...(told?.extra !== undefined && { extra: told.extra }),
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
