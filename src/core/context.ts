/** What the model sees: the path before this turn, then what the caller sent, in real roles. */
import { GatewayError } from "./errors.ts";
import { type Item, isSteering } from "./item.ts";
import type { Place } from "./place.ts";
import type { Ask } from "./turn.ts";

export function assembleContext(place: Place, ask: Ask): readonly Item[] {
  if (place.path.length === 0) return checkTools(ask.items, place, ask);
  const items: Item[] = place.by === "hint" ? steering(place, ask) : [];
  for (const turn of place.path) {
    for (const item of turn.input) if (place.by === "response" || !isSteering(item)) items.push(item);
    items.push(...turn.output);
  }
  items.push(...ask.items);
  return checkTools(items, place, ask);
}

/** In a session the request's own system messages apply; if it has none, the newest that a turn of the thread had. */
function steering(place: Place, ask: Ask): Item[] {
  if (ask.settings.instructions !== undefined || ask.items.some(isSteering)) return [];
  const steered = place.path.findLast((turn) => turn.input.some(isSteering));
  return steered?.input.filter(isSteering) ?? [];
}

/** Every tool output needs its call. A call without output is an error, or left out where a hint found the session. */
function checkTools(items: readonly Item[], place: Place, ask: Ask): readonly Item[] {
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
  if (called.size === answered.size || place.by === "nothing") return items;
  if (place.by === "hint") return items.filter((item) => item.type !== "tool-call" || answered.has(item.callId));
  const open = [...called].find((callId) => !answered.has(callId));
  throw new GatewayError("tool_call_mismatch", `No tool output found for function call ${open}.`, {
    param: ask.itemsParam,
  });
}
