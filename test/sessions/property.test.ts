import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { countRuns } from "./histories.ts";
import type { Work } from "./histories-thread.ts";
import type { Counts } from "./world.ts";

/** One for all of them: what it has compiled for the first is reused for the next. */
const thread = new Worker(new URL("histories-thread.ts", import.meta.url));
after(() => thread.terminate());

test("every turn reaches the model exactly once and in order, whatever its client sends with it", async () => {
  const counts = await checkOnThread({ gateways: 1, numRuns: countRuns() });
  for (const history of ["new", "continued", "matched", "forked", "foreign", "stateless"] as const) {
    assert.ok((counts[history] ?? 0) >= countRuns() / 20, `'${history}' was seen only ${counts[history] ?? 0} times`);
  }
});

test("every turn reaches the model exactly once and in order when requests alternate between two gateways on one store", async () => {
  await checkOnThread({ gateways: 2, numRuns: countRuns(1 / 10) });
});

/** Throws what the thread throws. */
async function checkOnThread(work: Work): Promise<Counts> {
  thread.postMessage(work, []);
  const [told] = await once(thread, "message");
  if (told instanceof Error) throw told;
  return told;
}
