/** Creates ids that nobody can guess and that sort by time. */
import { randomBytes } from "node:crypto";

const randomDigits = 36;
const namesPerDraw = 256;

/**
 * `prefix_` and 48 hexadecimal digits: 12 for the time in milliseconds, 36 random. Ids that grow with time keep a
 * store's indexes compact, and random bytes are drawn for many ids at once: one draw costs more than a hundred ids.
 */
export function createIds(now: () => Date): (prefix: string) => string {
  let pool = "";
  let at = 0;
  return (prefix) => {
    if (at >= pool.length) {
      pool = randomBytes((randomDigits / 2) * namesPerDraw).toString("hex");
      at = 0;
    }
    const start = at;
    at += randomDigits;
    return `${prefix}_${now().getTime().toString(16).padStart(12, "0")}${pool.slice(start, at)}`;
  };
}
