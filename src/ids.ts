/** Names that nobody can guess. */
import { randomBytes } from "node:crypto";

const idBytes = 24;
const idsPerDraw = 128;

/** `prefix_` and 48 hexadecimal digits. Random bytes are drawn for many ids at once: one draw costs more than a hundred ids. */
export function createIds(): (prefix: string) => string {
  let pool = "";
  let at = 0;
  return (prefix) => {
    if (at >= pool.length) {
      pool = randomBytes(idBytes * idsPerDraw).toString("hex");
      at = 0;
    }
    const start = at;
    at += idBytes * 2;
    return `${prefix}_${pool.slice(start, at)}`;
  };
}
