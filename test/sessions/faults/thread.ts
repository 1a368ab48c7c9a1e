/** Faults are tried on a separate thread: the test runner tracks every promise, which takes half of the time. */
import { parentPort, workerData } from "node:worker_threads";
import { createMemoryStore } from "../../stores/memory.ts";
import { findEach, findPairs } from "./run.ts";

export interface Work {
  /** How many pairs of faults; undefined: each fault alone. */
  readonly pairs?: number;
  /** At every n-th of the positions of each. */
  readonly stride?: number;
  readonly seed: number;
}

// Thousands of failures are made, and their stacks are not needed.
Error.stackTraceLimit = 0;
const { pairs, stride = 1, seed }: Work = workerData;
const open = () => createMemoryStore();
parentPort?.postMessage(pairs === undefined ? await findEach(open, stride) : await findPairs(open, pairs, seed), []);
