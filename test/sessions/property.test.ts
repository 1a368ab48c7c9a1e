import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { kindsArbitrary, stepArbitrary } from "./clients.ts";
import { type Counts, live } from "./world.ts";

const seed = Number(process.env["PORTICO_SEED"] ?? 20260101);
const numRuns = Number(process.env["PORTICO_RUNS"] ?? 2000);

test("every turn reaches the model exactly once and in order, whatever its client sends along", async () => {
  const counts: Counts = {};
  const history = fc.asyncProperty(
    kindsArbitrary,
    fc.array(stepArbitrary, { minLength: 1, maxLength: 25, size: "max" }),
    async (kinds, steps) => {
      for (const [history, count] of Object.entries(await live(kinds, steps))) {
        counts[history as keyof Counts] = (counts[history as keyof Counts] ?? 0) + count;
      }
    },
  );
  const details = await fc.check(history, { seed, numRuns });
  if (details.failed) {
    const { errorInstance } = details;
    const story = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    assert.fail(`PORTICO_SEED=${seed}, history ${details.numRuns}, shrunk ${details.numShrinks} times:\n${story}`);
  }
  for (const history of ["new", "continued", "matched", "forked", "foreign", "stateless"] as const) {
    assert.ok((counts[history] ?? 0) >= numRuns / 20, `'${history}' was seen ${counts[history] ?? 0} times only`);
  }
});
