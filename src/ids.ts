/** Keys of turns and requests: they sort by time, none comes twice, and none can be guessed. */
import { randomFillSync } from "node:crypto";

/** Keys count from here, so that moment and count together are exact as a number for decades. */
const epoch = Date.UTC(2024, 0, 1);
const perMs = 4096;
const randomBytes = 6;

/** Of several processes each counts in steps, on numbers of its own. */
const slots = 256;

/** 13 digits of moment and count, then 12 of chance, all hexadecimal. `slot`: which of several processes this is. */
export function createKeys(now: () => number, slot?: () => number): () => string {
  const pool = Buffer.alloc(randomBytes * 256);
  let used = pool.length;
  let last = 0;
  return () => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const least = Math.max(last + 1, (now() - epoch) * perMs);
    last = slot === undefined ? least : Math.ceil((least - slot()) / slots) * slots + slot();
    return last.toString(16).padStart(13, "0") + pool.toString("hex", used, (used += randomBytes));
  };
}
