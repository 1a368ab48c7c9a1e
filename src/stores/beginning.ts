/** The words that a session began with, in short: a list of names alone tells nobody which one it was. */
import type { Item } from "../core/item.ts";

const maxLength = 120;

/** Of what was said first. */
export function beginningOf(input: readonly Item[] | undefined): string | undefined {
  const asked = input?.find((item) => item.type === "message" && item.role === "user");
  if (asked?.type !== "message") return undefined;
  const { content } = asked;
  return toBeginning(typeof content === "string" ? content : content.find((part) => part.type === "text")?.text);
}

/** In one line. */
export function toBeginning(text: string | null | undefined): string | undefined {
  const line = (text ?? "")
    .trimStart()
    .slice(0, 4 * maxLength)
    .trimEnd()
    .replaceAll(/\s+/g, " ");
  if (line === "") return undefined;
  // Half a sign is none.
  return line.length > maxLength ? `${line.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "")}…` : line;
}
