/** Names that nobody can guess, in the order in which they were given. */
import { randomBytes } from "node:crypto";

const randomDigits = 36;
const namesPerDraw = 256;

/**
 * `prefix_` and 48 hexadecimal digits: 12 of the time in milliseconds, 36 of chance. Names that grow with time keep a
 * store's indexes together, and random bytes are drawn for many names at once, as one draw costs more than a hundred names.
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
