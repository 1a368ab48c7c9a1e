/** What a server reports beside its words: tokens, log probabilities, notes on a text. */
import type { Annotation } from "../../core/item.ts";
import type { Usage } from "../../core/turn.ts";
import { isObject } from "../fields.ts";
import { countAt, listAt, objectAt, type Said, textAt } from "../json.ts";

/** Some servers count only in the total what was reasoned; and those without details what was cached beside the others. */
export function readUsage(usage: Said): Usage {
  const details = objectAt(usage, "prompt_tokens_details");
  const [input, output] = [countAt(usage, "prompt_tokens"), countAt(usage, "completion_tokens")];
  const reasoningTokens = countAt(objectAt(usage, "completion_tokens_details"), "reasoning_tokens");
  const surplus = input === 0 ? 0 : Math.max(0, countAt(usage, "total_tokens") - input - output);
  const cacheWriteTokens = countAt(details, "cache_write_tokens");
  return {
    inputTokens: input,
    cachedTokens:
      countAt(details, "cached_tokens") || countAt(usage, "cached_tokens") || countAt(usage, "prompt_cache_hit_tokens"),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    outputTokens: output + (reasoningTokens > 0 ? Math.min(surplus, reasoningTokens) : surplus),
    reasoningTokens,
  };
}

/** Every entry with every field of the wire; without servers' own forms, which no client could read. */
export function readLogprobs(entries: unknown): readonly Said[] | undefined {
  if (!Array.isArray(entries)) return undefined;
  const read = entries.flatMap((entry: unknown): Said[] => {
    const said = readToken(entry);
    if (said === undefined) return [];
    const others = isObject(entry) ? (listAt(entry, "top_logprobs") ?? []) : [];
    return [{ ...said, top_logprobs: others.flatMap((other) => readToken(other) ?? []) }];
  });
  return read.length === 0 ? undefined : read;
}

function readToken(entry: unknown): Said | undefined {
  if (!isObject(entry)) return undefined;
  const { token, logprob } = entry;
  // JSON has no infinity, so servers write null, or a word, for an impossible token.
  if (typeof token !== "string" || typeof logprob !== "number") return undefined;
  const bytes = listAt(entry, "bytes");
  return { token, logprob, bytes: bytes?.every(Number.isInteger) === true ? bytes : null };
}

/**
 * A citation with every field of the wire, on a text of this length so far: clients that validate refuse a whole answer
 * for less. Servers write it in the form of either dialect; their own types have no place elsewhere.
 */
export function readCitation(entry: unknown, textLength: number): Annotation | undefined {
  if (!isObject(entry) || entry["type"] !== type) return undefined;
  const { type: _, ...beside } = entry;
  const fields = objectAt(entry, type) ?? beside;
  const url = textAt(fields, "url");
  if (url === undefined) return undefined;
  const { title = url } = fields;
  const start_index = countAt(fields, "start_index");
  const end_index = countAt(fields, "end_index") || Math.max(start_index, textLength);
  return { type, fields: { ...fields, title: String(title), start_index, end_index } };
}

const type = "url_citation";
