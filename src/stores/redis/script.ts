/** What a script of the Redis store is, and how its answers are read. */
import { createHash } from "node:crypto";

/** Lua that Redis runs as one step: nobody sees half of it. */
export interface Script {
  readonly text: string;
  /** The name by which Redis knows it once it was sent. */
  readonly sha: string;
}

/** Puts a script together from the pieces that it needs; each may use what those before it define. */
export function toScript(...pieces: readonly string[]): Script {
  // Indentation is for people, and every connection sends all scripts.
  const text = pieces.join("\n").replaceAll(/\n\s+/g, "\n").trim();
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** What Redis answers. */
export type Reply = string | number | null | readonly Reply[];

export function toList(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? reply : [];
}

export function toTexts(reply: Reply | undefined): readonly string[] {
  return toList(reply).map(String);
}

/** Nothing where Redis has nothing, or an empty text. */
export function toText(reply: Reply | undefined): string | undefined {
  return reply === null || reply === undefined || reply === "" ? undefined : String(reply);
}
