import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { createNeighbourhood } from "../core/neighbourhood.ts";
import { kindsArbitrary, stepArbitrary } from "./clients.ts";
import { type Counts, live, type Site } from "./world.ts";

const seed = Number(process.env["PORTICO_SEED"] ?? 20260101);
const numRuns = Number(process.env["PORTICO_RUNS"] ?? 2000);

test("every turn reaches the model exactly once and in order, whatever its client sends along", async () => {
  await check(numRuns, () => [{ store: createMemoryStore() }]);
});

test("so it does when one request goes to one gateway and the next to another, on one store", async () => {
  await check(numRuns / 10, () => Array.from({ length: 2 }, createNeighbourhood()));
});

async function check(numRuns: number, openSites: () => readonly Site[]): Promise<void> {
  const counts: Counts = {};
  const history = fc.asyncProperty(
    kindsArbitrary,
    fc.array(stepArbitrary, { minLength: 1, maxLength: 25, size: "max" }),
    async (kinds, steps) => {
      for (const [history, count] of Object.entries(await live(kinds, steps, openSites()))) {
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
}
