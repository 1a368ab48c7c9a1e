/** Reads the parts of a model's stream into deltas, which are checked afterwards: anyone may have made the package. */
import type { Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Tool } from "../../core/settings.ts";
import { restoringCalls } from "../../wires/custom-tools.ts";
import { isObject } from "../../wires/fields.ts";
import { brokenOff } from "../http/failure.ts";
import { unfit } from "../said.ts";
import { isOptions, type Seal, writeSeal } from "./seal.ts";

interface ReplyReader {
  /** Throws what an `error` part holds. */
  read(part: unknown): readonly unknown[];
  isFinished(): boolean;
}

type Fields = Readonly<Record<string, unknown>>;

export function createReplyReader(tools: readonly Tool[], tell: Tell): ReplyReader {
  let deltas: unknown[] = [];
  const restore = restoringCalls(tools, (delta) => void deltas.push(delta));
  const say = (delta: Fields): void => restore(delta as Delta);
  const seal = (sealed: Seal): void => say({ type: "reasoning-seal", encrypted: writeSeal(sealed) });
  /** Their numbers, and whether their arguments have begun. */
  const calls = new Map<unknown, { readonly index: number; hasInput: boolean }>();
  const thoughts = new Map<unknown, { text: string; options: unknown }>();
  let isFinished = false;

  /** A block's signature may come with any of its parts. */
  function think({ id, delta = "", providerMetadata }: Fields) {
    const { text = "", options } = thoughts.get(id) ?? {};
    const thought = { text: text + String(delta), options: providerMetadata ?? options };
    thoughts.set(id, thought);
    if (delta !== "") say({ type: "reasoning", text: delta });
    return thought;
  }

  /** Marks on a call are kept with the reasoning before it. */
  function beginCall(callId: unknown, { toolName: name, providerMetadata: mark }: Fields) {
    const known = calls.get(callId);
    if (known !== undefined) return known;
    const call = { index: calls.size, hasInput: false };
    calls.set(callId, call);
    if (isOptions(mark)) seal({ calls: { [String(callId)]: mark } });
    say({ type: "tool-call", index: call.index, callId, name });
    return call;
  }

  function accept(part: Fields): void {
    switch (part["type"]) {
      case "stream-start":
        for (const what of [part["warnings"]].flat().flatMap(readWarning)) tell({ type: "left-out", what });
        return;
      case "text-delta":
        return say({ type: "text", text: part["delta"] });
      case "reasoning-start":
      case "reasoning-delta":
        return void think(part);
      case "reasoning-end": {
        const { text, options } = think(part);
        if (isOptions(options)) seal({ block: { text, options } });
        return;
      }
      case "tool-input-start":
        return void beginCall(part["id"], part);
      case "tool-input-delta":
      case "tool-call": {
        const isWhole = part["type"] === "tool-call";
        const call = isWhole ? beginCall(part["toolCallId"], part) : calls.get(part["id"]);
        if (call === undefined || (isWhole && call.hasInput)) return;
        call.hasInput = true;
        return say({ type: "tool-arguments", index: call.index, text: part[isWhole ? "input" : "delta"] });
      }
      case "error":
        throw part["error"];
      case "finish": {
        isFinished = true;
        const usage = readUsage(part["usage"]);
        if (usage !== undefined) say({ type: "usage", usage });
        return say({ type: "finish", reason: readFinish(part["finishReason"]) });
      }
    }
  }

  return {
    read(part) {
      deltas = [];
      if (!isObject(part)) throw unfit("is no part of a stream", part);
      accept(part);
      return deltas;
    },
    isFinished: () => isFinished,
  };
}

function readFinish(found: unknown): string {
  const { unified, raw } = Object(found);
  if (["stop", "length", "content-filter", "tool-calls"].includes(unified)) return unified;
  if (unified === "error") throw new GatewayError("adapter_error", "The model stopped because of an error of its own.");
  // Without any reason the stream has ended, and the answer has not.
  if (raw === undefined) throw brokenOff();
  return "stop";
}

/** Some providers add up unknown counts: such a sum is no count. */
function readUsage(found: unknown): unknown {
  const { inputTokens, outputTokens } = Object(found);
  const { total: input, cacheRead: cachedTokens, cacheWrite: cacheWriteTokens } = Object(inputTokens);
  const { total: output, reasoning: reasoningTokens } = Object(outputTokens);
  if (!Number.isInteger(input) && !Number.isInteger(output)) return undefined;
  return { inputTokens: input ?? 0, outputTokens: output ?? 0, cachedTokens, cacheWriteTokens, reasoningTokens };
}

/** What the provider ignores, in the wires' terms. */
function readWarning(warning: unknown): readonly string[] {
  const { feature } = Object(warning);
  return typeof feature === "string" ? [feature.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] : [];
}
