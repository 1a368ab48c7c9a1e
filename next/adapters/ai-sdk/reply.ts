/** Reads the parts of a model's stream into deltas, which are checked afterwards: anyone may have made the package. */
import type { Tell } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Tool } from "../../core/turn.ts";
import { restoringCalls } from "../../wires/custom-tools.ts";
import { isObject } from "../../wires/fields.ts";
import { brokenOff } from "../http/failure.ts";
import { unfit } from "../said.ts";
import { isOptions, writeSeal } from "./seal.ts";

export interface ReplyReader {
  /** Throws what an `error` part holds. */
  read(part: unknown): readonly Delta[];
  isFinished(): boolean;
}

type Fields = Readonly<Record<string, unknown>>;

interface Call {
  readonly index: number;
  hasInput: boolean;
}

export function createReplyReader(tools: readonly Tool[], tell: Tell): ReplyReader {
  let deltas: unknown[] = [];
  const say = restoringCalls(tools, (delta) => void deltas.push(delta));
  const calls = new Map<unknown, Call>();
  const thoughts = new Map<unknown, { text: string; options: unknown }>();
  let isTextOver = false;
  let isFinished = false;

  /** A block's signature may come with any of its parts. */
  function think({ id, delta = "", providerMetadata }: Fields): void {
    const thought = thoughts.get(id) ?? { text: "", options: undefined };
    thoughts.set(id, { text: thought.text + String(delta), options: providerMetadata ?? thought.options });
    if (delta !== "") say({ type: "reasoning", text: delta as string });
  }

  function endThought(id: unknown): void {
    const { text = "", options } = thoughts.get(id) ?? {};
    thoughts.delete(id);
    if (isOptions(options)) say({ type: "reasoning-seal", encrypted: writeSeal({ block: { text, options } }) });
  }

  /** Marks on a call are kept with the reasoning before it. */
  function beginCall(callId: unknown, { toolName, providerMetadata }: Fields): Call {
    const known = calls.get(callId);
    if (known !== undefined) return known;
    const call = { index: calls.size, hasInput: false };
    calls.set(callId, call);
    if (isOptions(providerMetadata))
      say({ type: "reasoning-seal", encrypted: writeSeal({ calls: { [String(callId)]: providerMetadata } }) });
    say({ type: "tool-call", index: call.index, callId: callId as string, name: toolName as string });
    return call;
  }

  function write(call: Call, text: unknown): void {
    call.hasInput = true;
    say({ type: "tool-arguments", index: call.index, text: text as string });
  }

  function finish({ usage, finishReason }: Fields): void {
    isFinished = true;
    const counted = readUsage(Object(usage));
    if (counted !== undefined) deltas.push({ type: "usage", usage: counted });
    say({ type: "finish", reason: readFinish(finishReason) });
  }

  function accept(part: Fields): void {
    switch (part["type"]) {
      case "stream-start":
        for (const what of [part["warnings"]].flat().flatMap(readWarning)) tell({ type: "left-out", what });
        return;
      case "text-delta":
        // Told only when another text begins: even one that breaks off ends its texts.
        if (isTextOver) say({ type: "message-end" });
        isTextOver = false;
        return say({ type: "text", text: part["delta"] as string });
      case "text-end":
        isTextOver = true;
        return;
      case "reasoning-start":
      case "reasoning-delta":
        return think(part);
      case "reasoning-end":
        think(part);
        return endThought(part["id"]);
      case "tool-input-start":
        if (part["providerExecuted"] !== true) beginCall(part["id"], part);
        return;
      case "tool-input-delta": {
        const call = calls.get(part["id"]);
        if (call !== undefined) write(call, part["delta"]);
        return;
      }
      case "tool-call": {
        if (part["providerExecuted"] === true) return;
        const call = beginCall(part["toolCallId"], part);
        if (!call.hasInput) write(call, part["input"]);
        return;
      }
      case "error":
        throw part["error"];
      case "finish":
        return finish(part);
    }
  }

  return {
    read(part) {
      deltas = [];
      if (!isObject(part)) throw unfit("is no part of a stream", part);
      accept(part);
      return deltas as Delta[];
    },
    isFinished: () => isFinished,
  };
}

const reasons: ReadonlySet<unknown> = new Set(["stop", "length", "content-filter", "tool-calls"]);

/** Version 2 gives the bare word. */
function readFinish(found: unknown): Extract<Delta, { type: "finish" }>["reason"] {
  const { unified, raw } = typeof found === "string" ? { unified: found, raw: found } : Object(found);
  if (reasons.has(unified)) return unified;
  if (unified === "error") throw new GatewayError("adapter_error", "The model stopped because of an error of its own.");
  // Without any reason the stream has ended, and the answer has not.
  if (raw === undefined) throw brokenOff();
  return "stop";
}

/** Since version 3 in groups. Some providers add up unknown counts: such a sum is no count. */
function readUsage({ inputTokens: input, outputTokens: output, cachedInputTokens, reasoningTokens }: Fields): unknown {
  const [read, written] = [isObject(input) ? input : {}, isObject(output) ? output : {}];
  const inputTokens = isObject(input) ? read["total"] : input;
  const outputTokens = isObject(output) ? written["total"] : output;
  if (!Number.isInteger(inputTokens) && !Number.isInteger(outputTokens)) return undefined;
  return {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    cachedTokens: read["cacheRead"] ?? cachedInputTokens,
    cacheWriteTokens: read["cacheWrite"],
    reasoningTokens: written["reasoning"] ?? reasoningTokens,
  };
}

/** What the provider ignores, in the wires' terms. */
function readWarning(warning: unknown): readonly string[] {
  const { feature, setting, tool } = Object(warning) as Fields;
  const name = feature ?? setting;
  if (typeof name === "string") return [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
  return isObject(tool) ? [`tool ${String(tool["name"])}`] : [];
}
