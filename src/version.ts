/** The version of this package. */
import { readFileSync } from "node:fs";

/** Read it at the start: later, another version may be installed in its place. */
export function readVersion(): string {
  try {
    const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
    return (JSON.parse(text) as { readonly version: string }).version;
  } catch {
    // A program may have us in a bundle of its own.
    return "unknown";
  }
}
