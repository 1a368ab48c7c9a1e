/** Random histories on a thread of their own: where tests run every promise is followed, which takes a third of the time. */
import { parentPort, workerData } from "node:worker_threads";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { createNeighbourhood } from "../core/neighbourhood.ts";
import { checkHistories } from "./histories.ts";
import type { Site } from "./world.ts";

export interface Work {
  readonly gateways: number;
  readonly numRuns: number;
}

const { gateways, numRuns } = workerData as Work;
const openSites = (): readonly Site[] =>
  gateways === 1 ? [{ store: createMemoryStore() }] : Array.from({ length: gateways }, createNeighbourhood());

parentPort?.postMessage(await checkHistories(numRuns, openSites), []);
