/** Requests that arrive at the same time start together, and proceed step by step together. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCohort } from "../../src/core/cohort.ts";

test("waiting callbacks start in order, in a single scheduled round", () => {
  const moments: (() => void)[] = [];
  const begun: string[] = [];
  const begin = createCohort((go) => moments.push(go));
  for (const name of ["a", "b", "c"]) begin(() => begun.push(name));
  assert.deepEqual([moments.length, begun], [1, []]);
  moments[0]?.();
  assert.deepEqual(begun, ["a", "b", "c"]);
});

test("a callback that arrives while a cohort starts belongs to the next one", () => {
  const moments: (() => void)[] = [];
  const begun: string[] = [];
  const begin = createCohort((go) => moments.push(go));
  begin(() => begin(() => begun.push("later")));
  begin(() => begun.push("now"));
  moments[0]?.();
  assert.deepEqual([moments.length, begun], [2, ["now"]]);
  moments[1]?.();
  assert.deepEqual(begun, ["now", "later"]);
});

test("only a limited number start at once, and the rest in the next round", () => {
  const moments: (() => void)[] = [];
  let begun = 0;
  const begin = createCohort((go) => moments.push(go));
  for (let count = 0; count < 100; count += 1) begin(() => (begun += 1));
  moments[0]?.();
  assert.deepEqual([begun, moments.length], [64, 2]);
  moments[1]?.();
  assert.deepEqual([begun, moments.length], [100, 2]);
});

test("every member takes a step before any takes the next one", async () => {
  const steps: string[] = [];
  const begin = createCohort(setImmediate);
  async function takeSteps(name: string): Promise<void> {
    await new Promise<void>(begin);
    for (const step of [1, 2, 3]) {
      steps.push(`${step}${name}`);
      await undefined;
    }
  }
  await Promise.all(["a", "b"].map(takeSteps));
  assert.deepEqual(steps, ["1a", "1b", "2a", "2b", "3a", "3b"]);
});
