/** How many tokens a model would read: counted by its adapter, or estimated. */
import { GatewayError } from "../errors.ts";
import { fixedTexts, type FitParts } from "./fit.ts";
import { outcomeOf } from "../route/breaker.ts";
import { countItems } from "./tokens.ts";
import type { Turn } from "../turn.ts";

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
  const exact = await adapter.countTokens?.(turn, signal).catch(ignoreOutage);
  if (exact !== undefined) return { tokens: exact, isExact: true };
  signal.throwIfAborted();
  return { tokens: countItems(turn.items, fixedTexts(turn.settings), await tokenCounter()), isExact: false };
}

/** An adapter whose server is down cannot count now; one that faults the request, or our key, says what to change. */
function ignoreOutage(thrown: unknown): undefined {
  if (!(thrown instanceof GatewayError) || outcomeOf(thrown.code) !== "failed") throw thrown;
}
