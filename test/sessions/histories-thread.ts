/** Random histories on a separate thread: the test runner tracks every promise, which takes a third of the time. */
import { parentPort } from "node:worker_threads";
import { createMemoryStore } from "../stores/memory.ts";
import { createPeerStores } from "../core/peer-stores.ts";
import { checkHistories } from "./histories.ts";
import type { Counts, Site } from "./world.ts";

export interface Work {
  readonly gateways: number;
  readonly numRuns: number;
}

// Thousands of turns fail on purpose, and their stacks are not needed.
Error.stackTraceLimit = 0;

function check({ gateways, numRuns }: Work): Promise<Counts> {
  const openSites = (): readonly Site[] =>
    gateways === 1 ? [{ store: createMemoryStore() }] : Array.from({ length: gateways }, createPeerStores());
  return checkHistories(numRuns, openSites);
}

parentPort?.on("message", async (work: Work) => {
  parentPort?.postMessage(await check(work).catch((thrown: unknown) => thrown), []);
});
