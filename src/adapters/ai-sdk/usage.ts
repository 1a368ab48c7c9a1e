/** Reads what an answer cost, as either version of the specification counts it. */
import type { Usage } from "../../core/turn.ts";
import type { FinishPart } from "./spec.ts";

/** Nothing when the provider counted nothing. */
export function readUsage({ inputTokens, outputTokens, ...more }: FinishPart["usage"]): Usage | undefined {
  const input = typeof inputTokens === "object" ? inputTokens.total : inputTokens;
  const output = typeof outputTokens === "object" ? outputTokens.total : outputTokens;
  if (input === undefined && output === undefined) return undefined;
  const cached = typeof inputTokens === "object" ? inputTokens.cacheRead : flatCount(more, "cachedInputTokens");
  const written = typeof inputTokens === "object" ? inputTokens.cacheWrite : undefined;
  const reasoning = typeof outputTokens === "object" ? outputTokens.reasoning : flatCount(more, "reasoningTokens");
  return {
    inputTokens: input ?? 0,
    cachedTokens: cached ?? 0,
    ...(written && { cacheWriteTokens: written }),
    outputTokens: output ?? 0,
    reasoningTokens: reasoning ?? 0,
  };
}

function flatCount(usage: object, key: string): number | undefined {
  const value: unknown = Object.entries(usage).find(([name]) => name === key)?.[1];
  return typeof value === "number" ? value : undefined;
}
