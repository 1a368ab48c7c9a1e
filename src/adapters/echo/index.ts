/** The echo adapter: a built-in deterministic model that repeats the caller's text, word by word. */
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import type { Adapter } from "../../core/adapter.ts";
import type { Delta } from "../../core/event.ts";
import { type Plan, planAnswer, type Utterance } from "./plan.ts";

interface EchoSettings {
  /** Before each word; 0: everything at once. */
  readonly delay_ms: number;
}

/** Enough for any talk at once, while a long text neither floods its reader nor holds up other turns. */
const maxBatchDeltas = 1_000;

/** For demos, client authors and tests: no network, no chance. */
export function createEcho({ delay_ms: delayMs }: EchoSettings): Adapter {
  return {
    speaks: [],
    async open(turn, signal, tell) {
      if (turn.settings.topLogprobs !== undefined) tell({ type: "left-out", what: "logprobs" });
      const plan = planAnswer(turn);
      const batches = inBatches(speak(plan), delayMs > 0 ? 1 : maxBatchDeltas);

      async function next(): Promise<readonly Delta[] | undefined> {
        await pause(delayMs, signal);
        const { value } = batches.next();
        if (value === undefined && plan.failure !== undefined) throw plan.failure;
        return value;
      }
      await pause(plan.sleepMs, signal);
      return { first: (await next()) ?? [], next };
    },
    models: () => Promise.resolve(["echo"]),
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await (ms > 0 ? sleep(ms, undefined, { signal }).catch(() => {}) : breathe());
  signal.throwIfAborted();
}

function* inBatches(deltas: Iterable<Delta>, size: number): Generator<readonly Delta[], undefined> {
  let batch: Delta[] = [];
  for (const delta of deltas) {
    batch.push(delta);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Within the token limit: a token is a word. Usage and finish come last; a plan that fails has neither. */
function* speak({ failure, maxWords, utterances, inputTokens }: Plan): Generator<Delta> {
  let outputTokens = 0;
  let reasoningTokens = 0;
  let isCut = false;
  for (const delta of toDeltas(utterances)) {
    isCut = outputTokens === maxWords;
    if (isCut) break;
    if ("text" in delta) outputTokens += 1;
    if (delta.type === "reasoning") reasoningTokens += 1;
    yield delta;
  }
  if (failure !== undefined) return;
  yield { type: "usage", usage: { inputTokens, cachedTokens: 0, outputTokens, reasoningTokens } };
  yield { type: "finish", reason: isCut ? "length" : "stop" };
}

/** A word and the blanks around it, so that joined they are the text. Of arguments, which have few, a client gets pieces. */
const words = /\s*\S+\s*|\s+/g;
const pieces = /\s*\S{1,6}\s*|\s+/gu;

function* toDeltas(utterances: readonly Utterance[]): Generator<Delta> {
  for (const [index, utterance] of utterances.entries()) {
    if (utterance.type === "call") {
      const { kind, name } = utterance;
      yield { type: "tool-call", index, name, kind };
      for (const [text] of utterance.text.matchAll(pieces)) yield { type: "tool-arguments", index, text };
    } else {
      for (const [text] of utterance.text.matchAll(words)) yield { ...utterance, text };
    }
  }
}
