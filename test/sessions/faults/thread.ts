/** What may go wrong is tried on a thread of its own: where tests run every promise is followed, which takes half of the time. */
import { parentPort, workerData } from "node:worker_threads";
import { createMemoryStore } from "../../../src/stores/memory.ts";
import { findEach, findPairs } from "./run.ts";

export interface Work {
  /** How many pairs of things go wrong; nothing: each of them alone. */
  readonly pairs?: number;
  /** At every so many of the places where each can. */
  readonly stride?: number;
  readonly seed: number;
}

// Thousands of failures are made, and nobody asks where.
Error.stackTraceLimit = 0;
const { pairs, stride = 1, seed }: Work = workerData;
const open = () => createMemoryStore();
parentPort?.postMessage(pairs === undefined ? await findEach(open, stride) : await findPairs(open, pairs, seed), []);
