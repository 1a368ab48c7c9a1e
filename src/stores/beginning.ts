/** Shortens the words that a session began with: in a list of ids alone, nobody recognises a session. */
const maxLength = 120;

/** The first input may be a long history, or a picture; with this many bytes of JSON, a list does not read it. */
export const maxReadBytes = 100_000;

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
