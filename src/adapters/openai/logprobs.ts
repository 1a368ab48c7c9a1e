/** Log probabilities, which both wires write alike and servers in forms of their own: what a client could not read is left out. */
import { type JsonObject, isObject, listAt } from "../json.ts";

/** A token that was said, with those that could have been said in its place. */
interface Logprob extends Alternative {
  readonly top_logprobs: readonly Alternative[];
}

interface Alternative {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly unknown[] | null;
}

/** Nothing when there are none, as when nobody asked for them. */
export function readLogprobs(entries: readonly unknown[] | undefined): readonly Logprob[] | undefined {
  if (entries === undefined || entries.length === 0) return undefined;
  const read = entries.flatMap((entry) => readLogprob(entry) ?? []);
  return read.length === 0 ? undefined : read;
}

function readLogprob(entry: unknown): Logprob | undefined {
  const said = readAlternative(entry);
  if (said === undefined || !isObject(entry)) return undefined;
  const others = listAt(entry, "top_logprobs") ?? [];
  return { ...said, top_logprobs: others.flatMap((other) => readAlternative(other) ?? []) };
}

function readAlternative(entry: unknown): Alternative | undefined {
  if (!isObject(entry)) return undefined;
  const { token, logprob } = entry;
  // JSON has no infinite number, so servers write null, or a word, for what could never be said.
  if (typeof token !== "string" || typeof logprob !== "number" || !Number.isFinite(logprob)) return undefined;
  return { token, logprob, bytes: bytesAt(entry) };
}

function bytesAt(entry: JsonObject): readonly unknown[] | null {
  const bytes = listAt(entry, "bytes");
  return bytes?.every((byte) => Number.isInteger(byte)) === true ? bytes : null;
}
