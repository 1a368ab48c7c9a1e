/** Reads an answer's token usage in either form of the specification. */
import type { Usage } from "../../core/turn.ts";
import { countAt, isCount, isObject } from "../json.ts";

/** Undefined if the provider counted nothing. Some add up unknown counts: such a sum is no count. */
export function readUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const { inputTokens, outputTokens } = usage;
  const input = totalOf(inputTokens);
  const output = totalOf(outputTokens);
  if (input === undefined && output === undefined) return undefined;
  // Some packages count reasoning only in the total, which version 3 no longer has.
  const rest = input === undefined ? 0 : countAt(usage, "totalTokens") - input;
  const written = isObject(inputTokens) ? countAt(inputTokens, "cacheWrite") : 0;
  return {
    inputTokens: input ?? 0,
    cachedTokens: isObject(inputTokens) ? countAt(inputTokens, "cacheRead") : countAt(usage, "cachedInputTokens"),
    ...(written > 0 && { cacheWriteTokens: written }),
    outputTokens: Math.max(output ?? 0, rest),
    reasoningTokens: isObject(outputTokens) ? countAt(outputTokens, "reasoning") : countAt(usage, "reasoningTokens"),
  };
}

function totalOf(tokens: unknown): number | undefined {
  const total = isObject(tokens) ? tokens["total"] : tokens;
  return isCount(total) ? total : undefined;
}
