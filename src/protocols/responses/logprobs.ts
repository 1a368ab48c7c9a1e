/** Log probabilities in the two forms of the wire: with bytes in an item, without in an event. */
import { isObject } from "../fields.ts";

/** The form in an item's text part. */
export function toLogprobs(reported: readonly unknown[]): readonly object[] {
  return reported.filter(isObject).map((entry) => {
    const { token, bytes, logprob } = entry;
    return { token, bytes: bytes ?? [], logprob, top_logprobs: toAlternatives(entry, true) };
  });
}

/** The shorter form, in events. */
export function toEventLogprobs(reported: readonly unknown[]): readonly object[] {
  return reported.filter(isObject).map((entry) => {
    const { token, logprob } = entry;
    return { token, logprob, top_logprobs: toAlternatives(entry, false) };
  });
}

function toAlternatives(entry: Readonly<Record<string, unknown>>, showsBytes: boolean): readonly object[] {
  const alternatives: unknown = entry["top_logprobs"];
  if (!Array.isArray(alternatives)) return [];
  return alternatives.filter(isObject).map(({ token, bytes, logprob }) => {
    return showsBytes ? { token, bytes: bytes ?? [], logprob } : { token, logprob };
  });
}
