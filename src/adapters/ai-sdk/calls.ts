/** Reads tool calls: some providers stream their input, others give a call whole. */
import type { Delta } from "../../core/delta.ts";
import { readFreeInput } from "../custom.ts";
import type { StreamPart } from "./spec.ts";

type StartPart = Extract<StreamPart, { type: "tool-input-start" }>;
type CallPart = Extract<StreamPart, { type: "tool-call" }>;

export interface CallReader {
  begin(part: StartPart, deltas: Delta[]): void;
  go(id: string, text: string, deltas: Delta[]): void;
  end(part: CallPart, deltas: Delta[]): void;
  /** Every call that has begun has ended. */
  areWhole(): boolean;
}

interface Call {
  readonly index: number;
  readonly isCustom: boolean;
  /** Its input is sent once complete: what streams is not what the caller's tool takes. */
  readonly isHeld: boolean;
  hasInput: boolean;
  isWhole: boolean;
}

export function createCallReader(isCustom: (toolName: string) => boolean): CallReader {
  const calls = new Map<string, Call>();

  function begin(callId: string, name: string, encoding: string | undefined, deltas: Delta[]): Call {
    const custom = isCustom(name);
    const call = {
      index: calls.size,
      isCustom: custom,
      isHeld: custom || encoding === "text",
      hasInput: false,
      isWhole: false,
    };
    calls.set(callId, call);
    const kind = custom ? "custom" : "function";
    deltas.push({ type: "tool-call", index: call.index, callId, name, kind });
    return call;
  }

  return {
    begin(part, deltas) {
      const encoding =
        "inputEncoding" in part && typeof part.inputEncoding === "string" ? part.inputEncoding : undefined;
      if (!calls.has(part.id)) begin(part.id, part.toolName, encoding, deltas);
    },
    go(id, text, deltas) {
      const call = calls.get(id);
      if (call === undefined || call.isHeld || text === "") return;
      call.hasInput = true;
      deltas.push({ type: "tool-arguments", index: call.index, text });
    },
    end({ toolCallId, toolName, input }, deltas) {
      const call = calls.get(toolCallId) ?? begin(toolCallId, toolName, undefined, deltas);
      if (call.isWhole) return;
      call.isWhole = true;
      const text = call.isCustom ? readFreeInput(input) : input;
      if (!call.hasInput && text !== "") deltas.push({ type: "tool-arguments", index: call.index, text });
    },
    areWhole: () => [...calls.values()].every((call) => call.isWhole),
  };
}
