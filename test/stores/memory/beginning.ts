/** The words that a session began with, from its first input. */
import type { Item } from "../../../src/core/item.ts";
import { maxReadBytes, toBeginning } from "../../../src/stores/beginning.ts";

export function beginningOf(input: readonly Item[] = []): string | undefined {
  const written = JSON.stringify(input);
  return Buffer.byteLength(written) < maxReadBytes ? toBeginning(written) : undefined;
}
