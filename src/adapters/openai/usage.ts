/** Reads an answer's token usage: the wires differ only in the names of its two sides. */
import type { Usage } from "../../core/turn.ts";
import { type JsonObject, countAt, objectAt } from "../json.ts";

export function readUsage(usage: JsonObject, read: "prompt" | "input", written: "completion" | "output"): Usage {
  const details = objectAt(usage, `${read}_tokens_details`);
  const cacheWriteTokens = countAt(details, "cache_write_tokens");
  return {
    inputTokens: countAt(usage, `${read}_tokens`),
    cachedTokens: countAt(details, "cached_tokens"),
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    outputTokens: countAt(usage, `${written}_tokens`),
    reasoningTokens: countAt(objectAt(usage, `${written}_tokens_details`), "reasoning_tokens"),
  };
}
