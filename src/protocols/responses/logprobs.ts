/** Log probabilities in the two forms of the wire: with bytes in an item, without in an event. */
import { isObject } from "../fields.ts";

export function toLogprobs(reported: readonly unknown[], showsBytes: boolean): readonly object[] {
  return reported.filter(isObject).map((entry) => {
    const { top_logprobs: listed } = entry;
    const alternatives = Array.isArray(listed) ? listed.filter(isObject) : [];
    return toEntry(entry, showsBytes, { top_logprobs: alternatives.map((each) => toEntry(each, showsBytes)) });
  });
}

function toEntry(entry: Readonly<Record<string, unknown>>, showsBytes: boolean, added?: object): object {
  const { token, bytes, logprob } = entry;
  return { token, ...(showsBytes && { bytes: bytes ?? [] }), logprob, ...added };
}
