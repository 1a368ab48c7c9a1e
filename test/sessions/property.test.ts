import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { countRuns } from "./histories.ts";
import type { Work } from "./histories-thread.ts";
import type { Counts } from "./world.ts";

/** One for all of them: what it has compiled for the first it has for the next. */
const thread = new Worker(new URL("histories-thread.ts", import.meta.url));
after(() => thread.terminate());

test("every turn reaches the model exactly once and in order, whatever its client sends along", async () => {
  const counts = await checkOnThread({ gateways: 1, numRuns: countRuns() });
  for (const history of ["new", "continued", "matched", "forked", "foreign", "stateless"] as const) {
    assert.ok((counts[history] ?? 0) >= countRuns() / 20, `'${history}' was seen ${counts[history] ?? 0} times only`);
  }
});

test("so it does when one request goes to one gateway and the next to another, on one store", async () => {
  await checkOnThread({ gateways: 2, numRuns: countRuns(1 / 10) });
});

/** Throws what the thread throws. */
async function checkOnThread(work: Work): Promise<Counts> {
  thread.postMessage(work, []);
  const [told] = await once(thread, "message");
  if (told instanceof Error) throw told;
  return told;
}
