import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { createNeighbourhood } from "../core/neighbourhood.ts";
import { checkHistories, countRuns } from "./histories.ts";

test("every turn reaches the model exactly once and in order, whatever its client sends along", async () => {
  const counts = await checkHistories(countRuns(), () => [{ store: createMemoryStore() }]);
  for (const history of ["new", "continued", "matched", "forked", "foreign", "stateless"] as const) {
    assert.ok((counts[history] ?? 0) >= countRuns() / 20, `'${history}' was seen ${counts[history] ?? 0} times only`);
  }
});

test("so it does when one request goes to one gateway and the next to another, on one store", async () => {
  await checkHistories(countRuns(1 / 10), () => Array.from({ length: 2 }, createNeighbourhood()));
});
