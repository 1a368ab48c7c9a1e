/** Whatever an adapter may say, for properties that hold for every answer. */
import * as fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";

const text = fc.string({ unit: "grapheme", maxLength: 6 });
const index = fc.nat(2);

const delta: fc.Arbitrary<Delta> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("text" as const), text }) },
  fc.record({ type: fc.constant("text" as const), text, logprobs: fc.constant([{ token: "t", logprob: -1 }]) }),
  fc.record({ type: fc.constant("refusal" as const), text }),
  { weight: 2, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text, summary: fc.nat(1) }) },
  fc.record({ type: fc.constant("reasoning-seal" as const), encrypted: text }),
  fc.record({
    type: fc.constant("tool-call" as const),
    index,
    name: fc.constantFrom("f", 'g"'),
    kind: fc.constantFrom("function" as const, "custom" as const),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("tool-arguments" as const),
      index,
      text: fc.constantFrom("{", "}", '"a":1', "{}"),
    }),
  },
  fc.record({
    type: fc.constant("finish" as const),
    reason: fc.constantFrom("stop", "length", "content-filter", "tool-calls"),
  }),
  fc.record({
    type: fc.constant("notes" as const),
    notes: fc.record({ fingerprint: fc.constantFrom("fp_1", "fp_2"), serviceTier: fc.constantFrom("flex", "scale") }),
  }),
  fc.record({
    type: fc.constant("usage" as const),
    usage: fc.record({
      inputTokens: fc.nat(),
      cachedTokens: fc.nat(),
      outputTokens: fc.nat(),
      reasoningTokens: fc.nat(),
    }),
  }),
);

export const batches = fc.array(fc.array(delta, { maxLength: 6 }), { maxLength: 6 });
