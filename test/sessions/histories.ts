/** Random histories of requests, each compared with the reference; one that fails is printed, as short as possible. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { kindsArbitrary, type Step, stepArbitrary } from "./clients.ts";
import { type Counts, live, type Site } from "./world.ts";

const seed = Number(process.env["PORTICO_SEED"] || 20260101);

/** How many histories there are; `share` is a test's part of them. */
export function countRuns(share = 1): number {
  return Number(process.env["PORTICO_RUNS"] || 2000) * share;
}

/** `openSites` is called for each history, and may inspect its steps. */
export async function checkHistories(
  numRuns: number,
  openSites: (steps: readonly Step[]) => Promise<readonly Site[]> | readonly Site[],
): Promise<Counts> {
  const counts: Counts = {};
  const history = fc.asyncProperty(
    kindsArbitrary,
    fc.array(stepArbitrary, { minLength: 1, maxLength: 25, size: "max" }),
    async (kinds, steps) => {
      const sites = await openSites(steps);
      try {
        for (const [history, count] of Object.entries(await live(kinds, steps, sites))) {
          counts[history as keyof Counts] = (counts[history as keyof Counts] ?? 0) + count;
        }
      } finally {
        await Promise.all(sites.map((site) => site.close?.()));
      }
    },
  );
  const details = await fc.check(history, { seed, numRuns });
  if (details.failed) {
    const { errorInstance } = details;
    const story = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    assert.fail(`PORTICO_SEED=${seed}, history ${details.numRuns}, shrunk ${details.numShrinks} times:\n${story}`);
  }
  return counts;
}
