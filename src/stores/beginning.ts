/** Shortens the words that a session began with: in a list of ids alone, nobody recognises a session. */
import type { Item } from "../core/item.ts";

const maxLength = 120;

/** The first input may be a long history, or a picture; with this many bytes of JSON, a list does not read it. */
export const maxReadBytes = 100_000;

/** From the first input. */
export function beginningOf(input: readonly Item[] | undefined): string | undefined {
  if (input === undefined || isLong(input)) return undefined;
  const asked = input.find((item) => item.type === "message" && item.role === "user");
  if (asked?.type !== "message") return undefined;
  const { content } = asked;
  return toBeginning(typeof content === "string" ? content : content.find((part) => part.type === "text")?.text);
}

/** Stops writing JSON soon after the limit. */
function isLong(input: readonly Item[]): boolean {
  let length = 0;
  const json = JSON.stringify(input, (_, value: unknown) => {
    if (typeof value === "string") length += value.length;
    return length < maxReadBytes ? value : undefined;
  });
  return length >= maxReadBytes || Buffer.byteLength(json) >= maxReadBytes;
}

/** In one line. */
export function toBeginning(text: string | null | undefined): string | undefined {
  const line = (text ?? "")
    .trimStart()
    .slice(0, 4 * maxLength)
    .trimEnd()
    .replaceAll(/\s+/g, " ");
  if (line === "") return undefined;
  // No half characters.
  return line.length > maxLength ? `${line.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "")}…` : line;
}
