/** The words that a session began with, from its first input. */
import type { Item } from "../../../src/core/item.ts";
import { maxReadBytes, shorten } from "../../../src/stores/beginning.ts";

export function beginningOf(input: readonly Item[] | undefined): string | undefined {
  if (input === undefined || Buffer.byteLength(JSON.stringify(input)) >= maxReadBytes) return undefined;
  const asked = input.find((item) => item.type === "message" && item.role === "user");
  if (asked?.type !== "message") return undefined;
  const { content } = asked;
  return shorten(typeof content === "string" ? content : content.find((part) => part.type === "text")?.text);
}
