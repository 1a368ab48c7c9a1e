/** Bounds what an adapter may say in one answer, because all of it is held in memory until it is kept. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";

/** In characters; no model says so much, but an upstream gone mad says more. */
const maxSaid = 64 * 1024 * 1024;

/** The same deltas. An adapter that says too much is left, and its turn fails. */
export function bound(deltas: AsyncIterator<readonly Delta[]>): AsyncIterator<readonly Delta[]> {
  let said = 0;
  return {
    async next() {
      const step = await deltas.next();
      if (step.done === true) return step;
      for (const delta of step.value) said += sizeOf(delta);
      if (said <= maxSaid) return step;
      await deltas.return?.();
      throw new GatewayError("adapter_protocol", `The adapter's answer is longer than ${maxSaid} characters.`, {
        wireCode: "adapter_answer_too_large",
      });
    },
    async return() {
      await deltas.return?.();
      return { done: true, value: undefined };
    },
  };
}

/** What a delta leaves in memory, about. */
function sizeOf(delta: Delta): number {
  switch (delta.type) {
    case "text":
      return overhead + delta.text.length + (delta.logprobs?.length ?? 0) * logprobSize;
    case "refusal":
    case "reasoning":
    case "tool-arguments":
      return overhead + delta.text.length;
    case "tool-call":
      return callSize + delta.name.length;
    case "reasoning-seal":
      return overhead + delta.encrypted.length;
    case "compaction":
      return overhead + delta.summary.length;
    default:
      return overhead;
  }
}

const overhead = 32;
const callSize = 512;
/** A token's log probabilities, with some alternatives. */
const logprobSize = 512;
