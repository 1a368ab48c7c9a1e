/** Reads tool calls, which each server numbers, names and splits in its own way. */
import { GatewayError } from "../../../core/errors.ts";
import { readFreeInput } from "../../custom.ts";
import { type JsonObject, isObject, objectAt, textAt } from "../../json.ts";
import { toArgumentsText } from "../json.ts";
import { extraOf } from "../native.ts";
import type { Say } from "../stream.ts";

interface Call {
  readonly number: number;
  id: string | undefined;
  /** It has another call's id, so it needs one of ours. */
  readonly isTwin: boolean;
  /** A call begins when it has one. */
  name: string | undefined;
  /** What came before the name. */
  held: string;
  readonly heldFields: Map<string, unknown>;
  /** It is a function that stands in for a custom tool. */
  standsIn: boolean;
  /** Whether its arguments end in the next piece. */
  readonly endsIn: (piece: string) => boolean;
  isWhole: boolean;
}

export interface CallReader {
  /**
   * One entry of `tool_calls`: a whole call, its beginning, or a piece of its arguments. `place`: a whole call's place.
   */
  accept(entry: unknown, place?: number): void;
  /** The calls so far are complete: says the inputs that still wait. */
  settle(): void;
  /** Throws if a call never got its name. */
  end(): void;
}

/** `isCustom`: that function stands in for a custom tool. */
export function createCallReader(say: Say, isCustom: (name: string) => boolean): CallReader {
  const calls: Call[] = [];
  /** The current call for each index of the server. */
  const byIndex = new Map<number, Call>();
  /** The first call of each id. */
  const byId = new Map<string, Call>();
  let last: Call | undefined;
  /** What was written so far of inputs for custom tools, which are read from complete arguments. */
  const waiting = new Map<Call, string>();

  /** A name with a new id begins another call, even under an index that was used before. */
  function find(index: unknown, id: string | undefined, name: string | undefined): Call {
    const isNamed = name !== undefined;
    const here = typeof index === "number" ? byIndex.get(index) : id === undefined && !isNamed ? last : undefined;
    const known = id === undefined || here?.id === id ? here : byId.get(id);
    const isOther = here?.name !== undefined && isNamed;
    // Some servers give all calls of an answer the same id, so only their places differ; others the same place.
    const isNext = isNamed && known !== undefined && known === here && isBehind(here, name);
    const isTwin = known?.name !== undefined && isNamed && typeof index === "number" && (here === undefined || isNext);
    const found = (isTwin ? undefined : known) ?? (isOther ? undefined : here) ?? begin(id, isTwin);
    if (found.name === undefined) found.id ??= id;
    if (found.id !== undefined && !byId.has(found.id)) byId.set(found.id, found);
    if (typeof index === "number") byIndex.set(index, found);
    last = found;
    return found;
  }

  function begin(id: string | undefined, isTwin: boolean): Call {
    const call: Call = {
      number: calls.length,
      id,
      isTwin,
      name: undefined,
      held: "",
      heldFields: new Map(),
      standsIn: false,
      endsIn: createObjectScanner(),
      isWhole: false,
    };
    calls.push(call);
    return call;
  }

  function giveName(call: Call, name: string, custom: JsonObject | undefined): void {
    call.name = name;
    call.standsIn = custom === undefined && isCustom(name);
    if (call.standsIn) waiting.set(call, "");
    const kind = custom === undefined && !call.standsIn ? "function" : "custom";
    const callId = call.isTwin ? undefined : call.id;
    const extra = call.heldFields.size > 0 && { dialect: "chat" as const, fields: Object.fromEntries(call.heldFields) };
    say({ type: "tool-call", index: call.number, callId, name, kind, ...(extra && { extra }) });
  }

  function sayArguments({ number: index }: Call, text: string): void {
    if (text !== "") say({ type: "tool-arguments", index, text });
  }

  /** What comes after the input has been said is ignored. */
  function addToInput(call: Call, piece: string): void {
    const written = waiting.get(call);
    if (written === undefined) return;
    waiting.set(call, written + piece);
    if (call.isWhole) sayInput(call, written + piece);
  }

  function sayInput(call: Call, written: string): void {
    waiting.delete(call);
    sayArguments(call, readFreeInput(written));
  }

  function settle(): void {
    for (const [call, written] of waiting) sayInput(call, written);
  }

  return {
    accept(entry, place) {
      if (!isObject(entry)) return;
      const custom = objectAt(entry, "custom");
      const body = custom ?? objectAt(entry, "function") ?? {};
      const name = textAt(body, "name");
      const call = find(place ?? entry["index"], textAt(entry, "id"), name);
      const extra = extraOf(entry, knownOfCall, "chat");
      const piece = call.held + toArgumentsText(custom === undefined ? body["arguments"] : body["input"]);
      if (call.name === undefined) {
        for (const [key, value] of Object.entries(extra?.fields ?? {})) call.heldFields.set(key, value);
        call.held = name === undefined ? piece : "";
        if (name === undefined) return;
        giveName(call, name, custom);
      } else if (extra !== undefined) say({ type: "tool-extra", index: call.number, extra });
      // Otherwise a call with an id is recognized anyway.
      if (call.standsIn || (call.id === undefined && custom === undefined)) call.isWhole ||= call.endsIn(piece);
      if (call.standsIn) addToInput(call, piece);
      else sayArguments(call, piece);
    },
    settle,
    end() {
      settle();
      if (calls.every((call) => call.name !== undefined)) return;
      throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
    },
  };
}

/**
 * Whether an entry at a call's place, with its id or none, is another call: by its name, or because a call without an id
 * is whole.
 */
function isBehind(call: Call, name: string): boolean {
  return call.name !== undefined && (call.name !== name || (call.id === undefined && call.isWhole));
}

/**
 * Says whether the JSON object ends in the next piece. Reparsing it for each piece would take minutes for a long one.
 */
function createObjectScanner(): (piece: string) => boolean {
  let depth = 0;
  let isQuoted = false;
  let isEscaped = false;
  return (piece) => {
    for (const character of piece) {
      if (isEscaped) isEscaped = false;
      else if (character === "\\") isEscaped = isQuoted;
      else if (character === '"') isQuoted = !isQuoted;
      else if (isQuoted) continue;
      else if (character === "{") depth++;
      else if (character === "}" && --depth === 0) return true;
    }
    return false;
  };
}

const knownOfCall = new Set(["index", "id", "type", "function", "custom"]);
