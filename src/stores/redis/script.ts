/** What a script of the Redis store is, and how its answers are read. */
import { createHash } from "node:crypto";
import { growth, removal, tree } from "./lua/tree.ts";

/** Lua that Redis runs atomically: nobody sees half of it. */
export interface Script {
  readonly text: string;
  /** The name by which Redis knows it once sent. */
  readonly sha: string;
}

/** Builds a script from the pieces that it needs; each may use what those before it define. */
export function toScript(...pieces: readonly string[]): Script {
  // Indentation is for people, and every connection sends all scripts.
  const text = pieces.join("\n").replaceAll(/\n\s+/g, "\n").trim();
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** For what Redis runs even when out of memory. */
export const evenWhenFull = (...pieces: readonly string[]) => toScript("#!lua flags=allow-oom", ...pieces);

/** Refuses writes sent on a connection that its gateway has left. Checks nothing without a lease (the command line). */
const fence = String.raw`
if ARGV[1] ~= '' and redis.call('GET', KEYS[1] .. 'lease:' .. string.match(ARGV[1], '^(.+):%d+$')) ~= ARGV[1] then
  return redis.error_reply('NOLEASE the lease has run out, or is of a newer connection')
end
`;

export const look = (text: string) => toScript(tree, text);
export const write = (text: string) => toScript(fence, tree, text);
export const grow = (text: string) => toScript(fence, tree, growth, text);
export const change = (text: string) => toScript(fence, tree, growth, removal, text);
/** What frees memory must work when there is none. */
export const release = (text: string) => evenWhenFull(fence, tree, growth, removal, text);

/** How many turns one script walks: a pause of some milliseconds. */
export const maxWalked = 500;

/** A list in parts that are short enough for one script each. */
export function* inParts<T>(list: readonly T[], length: number): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += length) yield list.slice(at, at + length);
}

/** What Redis answers. */
export type Reply = string | number | null | readonly Reply[];

export function toList(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? reply : [];
}

export function toTexts(reply: Reply | undefined): readonly string[] {
  return toList(reply).map(String);
}

/** Undefined if Redis has nothing, or an empty text. */
export function toText(reply: Reply | undefined): string | undefined {
  return reply === null || reply === undefined || reply === "" ? undefined : String(reply);
}
