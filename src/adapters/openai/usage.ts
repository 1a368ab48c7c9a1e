/** Reads an answer's token usage: the wires differ only in the names of its two sides. */
import type { Usage } from "../../core/turn.ts";
import { type JsonObject, countAt, objectAt } from "../json.ts";
import { placeTokens } from "../usage.ts";

export function readUsage(usage: JsonObject, read: "prompt" | "input", written: "completion" | "output"): Usage {
  const details = objectAt(usage, `${read}_tokens_details`);
  const cachedTokens = countAt(details, "cached_tokens") || countCached(usage);
  const cacheWriteTokens = countAt(details, "cache_write_tokens");
  const reasoningTokens = countAt(objectAt(usage, `${written}_tokens_details`), "reasoning_tokens");
  const { inputTokens, outputTokens } = placeTokens({
    input: countAt(usage, `${read}_tokens`),
    output: countAt(usage, `${written}_tokens`),
    total: countAt(usage, "total_tokens"),
    cached: cachedTokens + cacheWriteTokens,
    reasoning: reasoningTokens,
  });
  return {
    inputTokens,
    cachedTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    outputTokens,
    reasoningTokens,
  };
}

/** As servers write it that give no details. */
function countCached(usage: JsonObject): number {
  return countAt(usage, "cached_tokens") || countAt(usage, "prompt_cache_hit_tokens");
}
