/** Reads an answer's token usage: the wires differ only in the names of its two sides. */
import type { Usage } from "../../core/turn.ts";
import { type JsonObject, countAt, objectAt } from "../json.ts";

export function readUsage(usage: JsonObject, read: "prompt" | "input", written: "completion" | "output"): Usage {
  const details = objectAt(usage, `${read}_tokens_details`);
  const inputTokens = countAt(usage, `${read}_tokens`);
  const cacheWriteTokens = countAt(details, "cache_write_tokens");
  // Some servers count reasoning only in the total.
  const rest = inputTokens === 0 ? 0 : countAt(usage, "total_tokens") - inputTokens;
  return {
    inputTokens,
    cachedTokens: countAt(details, "cached_tokens") || countCached(usage),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    outputTokens: Math.max(countAt(usage, `${written}_tokens`), rest),
    reasoningTokens: countAt(objectAt(usage, `${written}_tokens_details`), "reasoning_tokens"),
  };
}

/** As servers write it that give no details. */
function countCached(usage: JsonObject): number {
  return countAt(usage, "cached_tokens") || countAt(usage, "prompt_cache_hit_tokens");
}
