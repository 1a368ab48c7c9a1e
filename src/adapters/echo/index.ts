/** The echo adapter: a built-in deterministic model that repeats the caller's text, word by word. */
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import type { Adapter } from "../../core/adapter.ts";
import type { Delta } from "../../core/event.ts";
import { planAnswer } from "./plan.ts";
import { isWord, speak } from "./speech.ts";

interface EchoSettings {
  /** Before each word; 0: everything at once. */
  readonly delay_ms: number;
}

/** Enough for any talk at once, while a long text neither floods its reader nor holds up other turns. */
const maxBatchWords = 1_000;

/** For demos, client authors and tests: no network, no chance. */
export function createEcho({ delay_ms: delayMs }: EchoSettings): Adapter {
  return {
    speaks: [],
    async open(turn, signal, tell) {
      if (turn.settings.topLogprobs !== undefined) tell({ type: "left-out", what: "logprobs" });
      const plan = planAnswer(turn);
      await pause(plan.sleepMs, signal);
      const said = speak(plan);

      async function next(): Promise<readonly Delta[] | undefined> {
        await pause(delayMs, signal);
        const batch: Delta[] = [];
        for (let left = delayMs > 0 ? 1 : maxBatchWords; left > 0;) {
          const { done, value } = said.next();
          if (done === true) break;
          batch.push(value);
          if (isWord(value)) left -= 1;
        }
        if (batch.length > 0) return batch;
        if (plan.failure !== undefined) throw plan.failure;
        return undefined;
      }
      return { first: (await next()) ?? [], next };
    },
    models: () => Promise.resolve(["echo"]),
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
  else await breathe();
}
