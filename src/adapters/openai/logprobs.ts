/** Reads log probabilities, which both wires write alike; leaves out servers' own forms that no client could read. */
import { type JsonObject, isObject, listAt } from "../json.ts";

/** Undefined if there are none, e.g. when not requested. */
export function readLogprobs(entries: readonly unknown[] | undefined): readonly object[] | undefined {
  if (entries === undefined || entries.length === 0) return undefined;
  const read = entries.flatMap((entry) => readLogprob(entry) ?? []);
  return read.length === 0 ? undefined : read;
}

/** A token that was said, and its alternatives. */
function readLogprob(entry: unknown): object | undefined {
  const said = readAlternative(entry);
  if (said === undefined || !isObject(entry)) return undefined;
  const others = listAt(entry, "top_logprobs") ?? [];
  return { ...said, top_logprobs: others.flatMap((other) => readAlternative(other) ?? []) };
}

function readAlternative(entry: unknown): object | undefined {
  if (!isObject(entry)) return undefined;
  const { token, logprob } = entry;
  // JSON has no infinity, so servers write null, or a word, for an impossible token.
  if (typeof token !== "string" || typeof logprob !== "number" || !Number.isFinite(logprob)) return undefined;
  return { token, logprob, bytes: bytesAt(entry) };
}

function bytesAt(entry: JsonObject): readonly unknown[] | null {
  const bytes = listAt(entry, "bytes");
  return bytes?.every((byte) => Number.isInteger(byte)) === true ? bytes : null;
}
