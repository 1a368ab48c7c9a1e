/** The echo adapter: a built-in deterministic model that repeats the caller's text, word by word. */
import { callerLeft } from "../../core/errors.ts";
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import type { Delta } from "../../core/delta.ts";
import type { Adapter } from "../../core/ports.ts";
import type { Complete } from "../../core/schema.ts";
import { planAnswer } from "./plan.ts";
import { isWord, speak } from "./speech.ts";
import type { options } from "./options.ts";

/** For demos, client authors and tests: no network, no clock, no chance. */
export function create({ delay_ms: delayMs }: Complete<typeof options>): Adapter {
  return {
    async *stream(turn, signal, tell) {
      if (turn.settings.topLogprobs !== undefined) tell?.({ type: "left-out", what: "logprobs" });
      const plan = await planAnswer(turn);
      await pause(plan.sleepMs, signal);
      let batch: Delta[] = [];
      for (const delta of speak(plan)) {
        const word = isWord(delta);
        if (word && delayMs > 0) await pause(delayMs, signal);
        batch.push(delta);
        if (word && (delayMs > 0 || batch.length >= maxBatchWords)) {
          yield batch;
          batch = [];
          if (delayMs === 0) await breathe();
          if (signal.aborted) throw callerLeft();
        }
      }
      if (batch.length > 0) yield batch;
      if (plan.failure !== undefined) throw plan.failure.error;
    },
    models: () => Promise.resolve(["echo"]),
  };
}

/**
 * Words sent together when there is no delay: enough for any talk, while a long text neither floods its reader nor
 * holds up other turns.
 */
const maxBatchWords = 1_000;

/** An abort ends the pause at once and clears its timer. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw callerLeft();
  if (milliseconds === 0) return;
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch (thrown) {
    throw callerLeft(thrown);
  }
}
