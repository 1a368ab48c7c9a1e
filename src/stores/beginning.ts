/** The words that a session began with: in a list of ids alone, nobody recognises a session. */
import type { Item } from "../core/item.ts";

const maxLength = 120;

/** The first input may be a long history, or a picture; with this many bytes of JSON, a list does not read it. */
export const maxReadBytes = 100_000;

/** What a user said first in an input, which is JSON text; undefined if that is not text. */
export function toBeginning(input: string | undefined): string | undefined {
  const items: readonly Item[] = input === undefined ? [] : JSON.parse(input);
  const asked = items.find((item) => item.type === "message" && item.role === "user");
  if (asked?.type !== "message") return undefined;
  const { content } = asked;
  return shorten(typeof content === "string" ? content : content.find((part) => part.type === "text")?.text);
}

/** In one line. */
function shorten(text = ""): string | undefined {
  const line = text
    .trimStart()
    .slice(0, 4 * maxLength)
    .trimEnd()
    .replaceAll(/\s+/g, " ");
  if (line === "") return undefined;
  // No half characters.
  return line.length > maxLength ? `${line.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "")}…` : line;
}
