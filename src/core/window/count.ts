/** How many tokens a model would read: counted by its adapter, or estimated. */
import { fixedTexts, type FitParts } from "./fit.ts";
import type { Turn } from "../turn.ts";
import { countItems } from "./window.ts";

export interface TokenCount {
  readonly tokens: number;
  /** Counted as the model counts. */
  readonly isExact: boolean;
}

export async function countTokens(
  { adapter, tokenCounter }: FitParts,
  turn: Turn,
  signal: AbortSignal,
): Promise<TokenCount> {
  const exact = await adapter.countTokens?.(turn, signal);
  if (exact !== undefined) return { tokens: exact, isExact: true };
  return { tokens: countItems(turn.items, fixedTexts(turn.settings), await tokenCounter()), isExact: false };
}
