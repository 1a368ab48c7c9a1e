/** Tokens by kind, added up. */
import type { Usage } from "../../core/turn.ts";

/** `cached` is included in `input`, `reasoning` in `output`. */
export type TokenCount = Record<"input" | "cached" | "output" | "reasoning", number>;

export function createTokenCount(): TokenCount {
  return { input: 0, cached: 0, output: 0, reasoning: 0 };
}

export function addUsage(count: TokenCount, usage: Usage): void {
  count.input += usage.inputTokens;
  count.cached += usage.cachedTokens;
  count.output += usage.outputTokens;
  count.reasoning += usage.reasoningTokens;
}
