/** Collects garbage on demand, for tests that ask what is still held. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Twice: what only finalisers held is gone with the second time. Tells what is in use then. */
export function collectGarbage(): NodeJS.MemoryUsage {
  collect();
  collect();
  return process.memoryUsage();
}
