/** What the model sees: the path before this turn, then what the caller sent, in real roles. */
import { itemsOf } from "./chain.ts";
import { GatewayError } from "../errors.ts";
import { type Exchange, type Item, isSteering, type OtherItem } from "../item.ts";
import type { Place } from "./place.ts";
import type { StoredTurn } from "../store.ts";
import type { Ask } from "../turn.ts";

export function assembleContext(place: Place, ask: Ask<Item>): readonly Item[] {
  if (place.path.length === 0) return checkTools(ask.items, place, ask);
  const told = place.base.concat(place.input);
  const items = (place.instead ?? talkOf(place.path, told)).concat(told);
  const seen = place.by === "hint" ? steering(place, ask).concat(items.filter((item) => !isSteering(item))) : items;
  return checkTools(seen, place, ask);
}

/**
 * What was said on a path, from the last time on that it was made short, without halves that deletion left behind. What is
 * told `next` may answer an older call.
 */
export function talkOf(path: readonly StoredTurn[], next: readonly Item[] = []): readonly Item[] {
  const short = path.findLastIndex((turn) => turn.output.some((item) => item.type === "compaction"));
  const items = short === -1 ? itemsOf(path) : [...(path[short]?.output ?? []), ...itemsOf(path.slice(short + 1))];
  return short !== -1 || path.some((turn) => turn.gap === true) ? withoutHalves(items, path.at(-1), next) : items;
}

/** Leaves out outputs whose call is gone, and calls whose output is; those of the newest turn may still be answered. */
function withoutHalves(items: readonly Item[], newest: StoredTurn | undefined, next: readonly Item[]): readonly Item[] {
  const called = new Set<string>();
  const answered = new Set<string>();
  for (const item of items) if (item.type === "tool-call") called.add(item.callId);
  for (const item of items.concat(next)) if (item.type === "tool-output") answered.add(item.callId);
  return items.filter((item) => {
    if (item.type === "tool-output") return called.has(item.callId);
    return (
      item.type !== "tool-call" ||
      answered.has(item.callId) ||
      newest?.output.includes(item) ||
      newest?.input.includes(item)
    );
  });
}

/** In a session the request's own system messages apply; if it has none, the newest that a turn of the thread had. */
function steering(place: Place, ask: Ask<Item>): readonly Item[] {
  const own = ask.items.filter(isSteering);
  if (own.length > 0 || ask.settings.instructions !== undefined) return own;
  return place.path.findLast((turn) => turn.input.some(isSteering))?.input.filter(isSteering) ?? [];
}

/** Every tool output needs its call. A call without output is an error, or left out where a hint found the session. */
function checkTools(items: readonly Item[], place: Place, ask: Ask<Item>): readonly Item[] {
  const called = new Set<string>();
  const answered = new Set<string>();
  for (const item of items) {
    if (item.type === "tool-call") called.add(item.callId);
    if (item.type !== "tool-output") continue;
    if (!called.has(item.callId)) {
      throw new GatewayError(
        "tool_call_mismatch",
        `No tool call found for function call output with call_id ${item.callId}.`,
        { param: ask.itemsParam },
      );
    }
    answered.add(item.callId);
  }
  if (place.by === "hint") return pairTools(items, answered);
  if (called.size === answered.size || place.by === "nothing") return items;
  const open = [...called].find((callId) => !answered.has(callId));
  throw new GatewayError("tool_call_mismatch", `No tool output found for function call ${open}.`, {
    param: ask.itemsParam,
  });
}

/** Leaves out calls that nobody answered, and puts an output that came late behind its call, where models expect it. */
function pairTools(items: readonly Item[], answered: ReadonlySet<string>): readonly Item[] {
  const given = new Set<string | undefined>();
  for (const item of items) if (item.type === "other") given.add(exchangedBy(item, "tools"));
  const isOpen = (item: Item): boolean => {
    if (item.type === "tool-call") return !answered.has(item.callId);
    const id = item.type === "other" ? exchangedBy(item, "model") : undefined;
    return id !== undefined && !given.has(id);
  };
  const late = findLateOutputs(items);
  if (late.size === 0) return items.some(isOpen) ? items.filter((item) => !isOpen(item)) : items;
  const paired: Item[] = [];
  let due: Item[] = [];
  for (const item of items) {
    if (isOpen(item) || (item.type === "tool-output" && late.get(item.callId)?.includes(item))) continue;
    if (item.type !== "tool-call") {
      for (const output of due) paired.push(output);
      due = [];
    }
    paired.push(item);
    if (item.type === "tool-call") for (const output of late.get(item.callId) ?? []) due.push(output);
  }
  return paired.concat(due);
}

function exchangedBy({ exchange }: OtherItem, side: Exchange["side"]): string | undefined {
  return exchange?.side === side ? exchange.id : undefined;
}

/** Outputs that came after the talk had gone on without them, by the ids of their calls. */
function findLateOutputs(items: readonly Item[]): ReadonlyMap<string, readonly Item[]> {
  const talkAtCall = new Map<string, number>();
  const late = new Map<string, Item[]>();
  let talk = 0;
  let isAnswered = false;
  for (const item of items) {
    // A question, or the next answer of the model: words beside the calls of one answer do not count.
    const isQuestion = item.type === "message" && item.role === "user";
    const isAnswer = item.type === "tool-call" || (item.type === "message" && item.role === "assistant");
    if (isQuestion || (isAnswer && isAnswered)) talk++;
    isAnswered = item.type === "tool-output" || (isAnswered && !isQuestion && !isAnswer);
    if (item.type === "tool-call") talkAtCall.set(item.callId, talk);
    if (item.type !== "tool-output" || talkAtCall.get(item.callId) === talk) continue;
    late.set(item.callId, [...(late.get(item.callId) ?? []), item]);
  }
  return late;
}
