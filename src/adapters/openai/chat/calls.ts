/** Reads tool calls, which each server numbers, names and splits in its own way. */
import { GatewayError } from "../../../core/errors.ts";
import { createFreeInput, createObjectScanner, type FreeInput } from "../../custom.ts";
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
  /** For a function that stands in for a custom tool: its input, known only when complete. */
  input: FreeInput | undefined;
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
  /** Calls whose input cannot be sent yet. */
  const waiting: Call[] = [];

  /** A name with a new id begins another call, even under an index that was used before. */
  function find(index: unknown, id: string | undefined, name: string | undefined): Call {
    const isNamed = name !== undefined;
    const here = typeof index === "number" ? byIndex.get(index) : id === undefined && !isNamed ? last : undefined;
    const known = id === undefined || here?.id === id ? here : byId.get(id);
    const isOther = here?.name !== undefined && isNamed;
    // Some servers give all calls of an answer the same id, so only their places differ; others the same place.
    const isNext = isNamed && known !== undefined && known === here && isBehind(here, id, name);
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
      input: undefined,
      endsIn: createObjectScanner(),
      isWhole: false,
    };
    calls.push(call);
    return call;
  }

  function giveName(call: Call, name: string, custom: JsonObject | undefined): void {
    call.name = name;
    if (custom === undefined && isCustom(name)) {
      call.input = createFreeInput();
      waiting.push(call);
    }
    const kind = custom === undefined && call.input === undefined ? "function" : "custom";
    const callId = call.isTwin ? undefined : call.id;
    const extra = call.heldFields.size > 0 && { dialect: "chat" as const, fields: Object.fromEntries(call.heldFields) };
    say({ type: "tool-call", index: call.number, callId, name, kind, ...(extra && { extra }) });
  }

  function sayInput({ number: index }: Call, text: string | undefined): void {
    if (text !== undefined && text !== "") say({ type: "tool-arguments", index, text });
  }

  function settle(): void {
    for (const call of waiting.splice(0)) sayInput(call, call.input?.end());
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
      // A call with an id is recognized anyway.
      if (call.id === undefined && custom === undefined) call.isWhole ||= call.endsIn(piece);
      sayInput(call, call.input === undefined ? piece : call.input.accept(piece));
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
 * Whether an entry at a call's place, with its id or none, is another call: by its name, or because the call is whole.
 */
function isBehind(call: Call, id: string | undefined, name: string): boolean {
  return call.name !== undefined && (call.name !== name || (id === undefined && call.isWhole));
}

const knownOfCall = new Set(["index", "id", "type", "function", "custom"]);
