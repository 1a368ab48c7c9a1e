/** Reads an answer's token usage in either form of the specification. */
import type { Usage } from "../../core/turn.ts";
import { countAt, isCount, isObject } from "../json.ts";
import { placeTokens } from "../usage.ts";

/** Undefined if the provider counted nothing. Some add up unknown counts: such a sum is no count. */
export function readUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const { inputTokens, outputTokens } = usage;
  const input = totalOf(inputTokens);
  const output = totalOf(outputTokens);
  if (input === undefined && output === undefined) return undefined;
  const cached = isObject(inputTokens) ? countAt(inputTokens, "cacheRead") : countAt(usage, "cachedInputTokens");
  const written = isObject(inputTokens) ? countAt(inputTokens, "cacheWrite") : 0;
  const reasoning = isObject(outputTokens) ? countAt(outputTokens, "reasoning") : countAt(usage, "reasoningTokens");
  // Version 3 no longer has a total.
  const total = countAt(usage, "totalTokens");
  return {
    ...placeTokens({ input: input ?? 0, output: output ?? 0, total, cached: cached + written, reasoning }),
    cachedTokens: cached,
    ...(written > 0 && { cacheWriteTokens: written }),
    reasoningTokens: reasoning,
  };
}

function totalOf(tokens: unknown): number | undefined {
  const total = isObject(tokens) ? tokens["total"] : tokens;
  return isCount(total) ? total : undefined;
}
