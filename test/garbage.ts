/** Collects garbage on demand, for tests of what is still referenced. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");
// Compiled code is cached for processes with the same flags, which the programs that tests start share with this one.
setFlagsFromString("--no-expose-gc");

/** Twice: what only finalisers held is released by the second. Returns what is in use then. */
export function collectGarbage(): NodeJS.MemoryUsage {
  collect();
  collect();
  return process.memoryUsage();
}
