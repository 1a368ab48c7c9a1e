/** The calls in a history: an output finds its call by id, or by the function's name if there are no ids. */
import { hash } from "node:crypto";
import type { ToolCall } from "../../core/item.ts";
import type { Ask } from "../../core/turn.ts";
import { isObject } from "../fields.ts";

export interface Calls {
  /** The calls of one message, in order. */
  add(calls: readonly ToolCall[]): void;
  /** The newest call with this id. */
  find(callId: string): ToolCall | undefined;
  /** The newest call of a function; the first, if one message has several. */
  findByName(name: string): ToolCall | undefined;
  /** An id for a call that came without one. */
  newId(name: string, written: string): string;
  /** Whether a message of the request answers the call by its id. */
  isAnswered(callId: string): boolean;
}

/** The calls among `earlier` items are found by their ids alone. */
export function createCalls(messages: readonly unknown[], earlier: Ask["items"] = []): Calls {
  const byId = new Map<string, ToolCall>();
  const byName = new Map<string, ToolCall>();
  const counts = new Map<string, number>();
  let answered: ReadonlySet<unknown> | undefined;
  let earlierById: ReadonlyMap<string, ToolCall> | undefined;

  function findEarlier(callId: string): ToolCall | undefined {
    const calls = earlier.values().filter((item) => item.type === "tool-call");
    earlierById ??= new Map(calls.map((call) => [call.callId, call]));
    return earlierById.get(callId);
  }

  return {
    add(calls) {
      for (const call of calls) byId.set(call.callId, call);
      for (const call of calls.toReversed()) byName.set(call.name, call);
    },
    find: (callId) => byId.get(callId) ?? findEarlier(callId),
    findByName: (name) => byName.get(name),
    newId(name, written) {
      // Derived from the call, so that a history that is sent again, even without its beginning, has the same ids.
      const called = JSON.stringify([name, written]);
      const before = counts.get(called) ?? 0;
      counts.set(called, before + 1);
      return `call_${hash("sha256", `${before} ${called}`).slice(0, 24)}`;
    },
    isAnswered(callId) {
      answered ??= new Set(messages.map((message) => isObject(message) && message["tool_call_id"]));
      return answered.has(callId);
    },
  };
}
