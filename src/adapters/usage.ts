/** Finds the place of tokens that a server counts only in its total. */

/** What a server has counted; 0 if it has not. */
interface Counted {
  readonly input: number;
  readonly output: number;
  readonly total: number;
  /** Input read from a cache or written to one. */
  readonly cached: number;
  readonly reasoning: number;
}

/** How many tokens were read and written. */
interface Tokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Some servers count only in the total what was cached, others what was reasoned. */
export function placeTokens({ input, output, total, cached, reasoning }: Counted): Tokens {
  const surplus = input === 0 ? 0 : Math.max(0, total - input - output);
  // More input is cached than there is: it was counted apart.
  if (cached > 0 && (surplus === cached || (surplus > cached && cached > input)))
    return { inputTokens: input + surplus, outputTokens: output };
  return { inputTokens: input, outputTokens: output + (reasoning > 0 ? Math.min(surplus, reasoning) : surplus) };
}
