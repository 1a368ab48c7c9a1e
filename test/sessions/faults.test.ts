/** Something fails, wherever it can: nobody waits forever, and what is reported is what is stored. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { Findings } from "./faults/run.ts";
import type { Work } from "./faults/thread.ts";

const seed = Number(process.env["PORTICO_SEED"] || 20_261_116);

test("a store or an adapter that fails once, or a caller that disconnects, affects nobody else", async () => {
  // `PORTICO_STRIDE=1` tries every position.
  const stride = Number(process.env["PORTICO_STRIDE"] || 3);
  const { runs, findings } = await findOnThread({ stride, seed });
  assert.deepEqual(findings, []);
  assert.ok(runs > 5_000 / stride, `only ${runs} runs`);
});

test("two failures at a time affect nobody else either", async () => {
  const pairs = Number(process.env["PORTICO_RUNS"] || 300);
  const { findings } = await findOnThread({ pairs, seed });
  assert.deepEqual(findings, [], `PORTICO_SEED=${seed}`);
});

async function findOnThread(workerData: Work): Promise<Findings> {
  const worker = new Worker(new URL("faults/thread.ts", import.meta.url), { workerData });
  const [findings] = await once(worker, "message");
  await worker.terminate();
  return findings;
}
