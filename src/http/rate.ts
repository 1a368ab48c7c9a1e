/** Limits a token's requests: a bucket that refills steadily and holds a burst. */
import { GatewayError } from "../core/errors.ts";
import type { Token } from "./auth.ts";
import type { Rate } from "./settings.ts";

/**
 * Takes one request, or throws a 429 that says when to retry. `general` applies to tokens without a rate of their own;
 * the tokens of one owner share a bucket.
 */
export type TakeRequest = (token: Token, general: Rate | undefined) => void;

export function createTakeRequest(now: () => Date): TakeRequest {
  const buckets = new Map<string, { readonly left: number; readonly at: number }>();
  return (token, general) => {
    const rate = token.rate ?? general;
    if (rate === undefined) return;
    const { requestsPerMinute, burst } = rate;
    const at = now().getTime();
    const perMs = requestsPerMinute / 60_000;
    const bucket = buckets.get(token.owner) ?? { left: burst, at };
    // A clock that was set back takes nothing away.
    const left = Math.min(burst, bucket.left + Math.max(0, at - bucket.at) * perMs);
    buckets.set(token.owner, { left: left < 1 ? left : left - 1, at });
    if (left >= 1) return;
    throw new GatewayError(
      "rate_limit_exceeded",
      `This token may send ${requestsPerMinute} requests a minute. Wait as long as Retry-After says.`,
      { retryAfterSeconds: Math.ceil((1 - left) / perMs / 1000) },
    );
  };
}
