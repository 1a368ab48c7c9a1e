/** Reads tool calls, which each server numbers, names and splits in its own way. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { isObject, objectAt, readExtra, textAt } from "../fields.ts";

interface Call {
  readonly index: number;
  readonly id: string | undefined;
  readonly name: string;
}

/** Reads entries of `tool_calls`: a whole call, its beginning, or a piece of its arguments. `whole`: a whole call's place. */
export function createCallReader(say: (delta: Delta) => void): (entry: unknown, whole?: number) => void {
  /** The newest call of each index of the server, or of each id if it has no indexes. */
  const places = new Map<unknown, Call>();
  let newest: Call | undefined;

  return (entry, whole) => {
    if (!isObject(entry)) return;
    const id = textAt(entry, "id");
    const custom = objectAt(entry, "custom");
    const called = custom ?? objectAt(entry, "function") ?? {};
    const name = textAt(called, "name");
    const extra = readExtra({ values: entry, key: "" }, knownOfCall, "chat");
    const place = whole ?? entry["index"] ?? id;
    let call = place === undefined ? newest : places.get(place);
    // Only a name begins another call, and some servers repeat it with every piece.
    if (name !== undefined && (name !== call?.name || (id !== undefined && id !== call.id))) {
      newest = call = { index: (newest?.index ?? -1) + 1, id, name };
      places.set(place, call);
      const kind = custom === undefined ? "function" : "custom";
      say({ type: "tool-call", index: call.index, callId: id, name, kind, extra });
    } else if (call === undefined) {
      throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
    } else if (extra !== undefined) {
      say({ type: "tool-extra", index: call.index, extra });
    }
    const text = toText(custom === undefined ? called["arguments"] : called["input"]);
    if (text !== "") say({ type: "tool-arguments", index: call.index, text });
  };
}

/** Some servers write a call's arguments as an object. */
function toText(written: unknown): string {
  if (typeof written === "string") return written;
  return isObject(written) ? JSON.stringify(written) : "";
}

const knownOfCall = new Set(["index", "id", "type", "function", "custom"]);
