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
function toScript(...pieces: readonly string[]): Script {
  // Indentation is for people, and every connection sends all scripts.
  const text = pieces.join("\n").replaceAll(/\n\s+/g, "\n").trim();
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** The prefix of all keys. */
const prefix = "local P, call = KEYS[1], redis.call";

/** Refuses writes sent on a connection that its gateway has left. Checks nothing without a lease (the command line). */
const fence = String.raw`
if ARGV[1] ~= '' and call('GET', P .. 'lease:' .. string.match(ARGV[1], '^(.+):%d+$')) ~= ARGV[1] then
  return redis.error_reply('NOLEASE the lease has run out, or is of a newer connection')
end
`;

/** Refuses what was hashed with another key, such as one from before an import or before Redis came back empty. */
export const refuseOtherKey = (secret: "hint" | "idempotency", key: string) => String.raw`
if call('HGET', P .. 'secrets', '${secret}') ~= ${key} then return redis.error_reply('REKEY it has another key') end
`;

export const plain = (text: string) => toScript(prefix, text);
export const look = (text: string) => toScript(prefix, tree, text);
export const write = (text: string) => toScript(prefix, fence, tree, text);
export const grow = (text: string) => toScript(prefix, fence, tree, growth, text);
export const change = (text: string) => toScript(prefix, fence, tree, growth, removal, text);

/** For what Redis runs even when out of memory. */
const allowed = "#!lua flags=allow-oom";
export const evenWhenFull = (text: string) => toScript(allowed, prefix, text);
export const fencedEvenWhenFull = (text: string) => toScript(allowed, prefix, fence, text);
/** What frees memory must work when there is none. */
export const release = (text: string) => toScript(allowed, prefix, fence, tree, growth, removal, text);

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
