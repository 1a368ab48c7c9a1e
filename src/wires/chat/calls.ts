/** Reads tool calls, which each server numbers, names and splits in its own way. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { type Extra, gather } from "../../core/settings.ts";
import { isObject, readExtra } from "../fields.ts";
import { objectAt, textAt } from "../json.ts";

interface Call {
  readonly index: number;
  readonly id: string | undefined;
  /** A call begins when it has one. */
  name?: string | undefined;
  /** What came before the name. */
  held: string;
  extra?: Extra | undefined;
  /** The last character of what was written. */
  last: string;
}

export function createCallReader(say: (delta: Delta) => void) {
  const calls: Call[] = [];
  /** The newest call of each index of the server, or of each id if it has no indexes. */
  const places = new Map<unknown, Call>();

  function find(place: unknown, id: string | undefined, name: string | undefined, piece: string): Call {
    const here = place === undefined ? calls.at(-1) : places.get(place);
    if (here !== undefined && !beginsAnother(here, id, name, piece)) return here;
    const call: Call = { index: calls.length, id, held: "", last: "" };
    calls.push(call);
    places.set(place, call);
    return call;
  }

  return {
    /** An entry of `tool_calls`: a whole call, its beginning, or a piece of its arguments. `place`: a whole call's place. */
    accept(entry: unknown, place?: number): void {
      if (!isObject(entry)) return;
      const id = textAt(entry, "id");
      const custom = objectAt(entry, "custom");
      const called = custom ?? objectAt(entry, "function") ?? {};
      const name = textAt(called, "name");
      const piece = toText(custom === undefined ? called["arguments"] : called["input"]);
      const extra = readExtra({ values: entry, key: "" }, knownOfCall, "chat");
      const call = find(place ?? entry["index"] ?? id, id, name, piece);
      const { index } = call;
      if (piece !== "") call.last = piece.trimEnd().slice(-1);
      if (call.name === undefined) {
        if (extra !== undefined) call.extra = gather(call.extra, extra);
        call.held += piece;
        if (name === undefined) return;
        call.name = name;
        const kind = custom === undefined ? "function" : "custom";
        say({ type: "tool-call", index, callId: id ?? call.id, name, kind, extra: call.extra });
        if (call.held !== "") say({ type: "tool-arguments", index, text: call.held });
        return;
      }
      if (extra !== undefined) say({ type: "tool-extra", index, extra });
      if (piece !== "") say({ type: "tool-arguments", index, text: piece });
    },
    end(): void {
      if (calls.every(({ name }) => name !== undefined)) return;
      throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
    },
  };
}

/**
 * Whether an entry at a call's place is another call: only a name begins one, and some servers repeat it with every
 * piece. Of those without ids a `{` behind a `}` tells, which no JSON has but in a text.
 */
function beginsAnother(call: Call, id: string | undefined, name: string | undefined, piece: string): boolean {
  if (name === undefined || call.name === undefined) return false;
  if (name !== call.name || (id !== undefined && id !== call.id)) return true;
  return id === undefined && call.last === "}" && piece.trimStart().startsWith("{");
}

/** Some servers write a call's arguments as an object. */
function toText(written: unknown): string {
  if (typeof written === "string") return written;
  return isObject(written) ? JSON.stringify(written) : "";
}

const knownOfCall = new Set(["index", "id", "type", "function", "custom"]);
