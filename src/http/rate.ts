/** Limits a token's requests: a bucket that refills steadily and holds a burst. */
import { GatewayError } from "../core/errors.ts";
import type { Token } from "./auth.ts";
import type { Rate } from "./settings.ts";

/**
 * Takes one request, or throws a 429 that says when to retry; either way, if there is a limit, `tell` gets headers that
 * say how much of it is left. `general` applies to tokens without a rate of their own; the tokens of one owner share a
 * bucket.
 */
export type TakeRequest = (token: Token, general: Rate | undefined, tell?: (headers: RateHeaders) => void) => void;

/** As OpenAI has them. */
export const rateHeaders = [
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
] as const;
type RateHeaders = Readonly<Record<(typeof rateHeaders)[number], string>>;

export function createTakeRequest(now: () => Date): TakeRequest {
  const buckets = new Map<string, { readonly left: number; readonly at: number }>();
  return (token, general, tell) => {
    const rate = token.rate ?? general;
    if (rate === undefined) return;
    const { requestsPerMinute, burst } = rate;
    const at = now().getTime();
    const perMs = requestsPerMinute / 60_000;
    const bucket = buckets.get(token.owner) ?? { left: burst, at };
    // A clock that was set back takes nothing away.
    const had = Math.min(burst, bucket.left + Math.max(0, at - bucket.at) * perMs);
    const left = had < 1 ? had : had - 1;
    buckets.set(token.owner, { left, at });
    tell?.({
      "x-ratelimit-limit-requests": `${burst}`,
      "x-ratelimit-remaining-requests": `${Math.floor(left)}`,
      "x-ratelimit-reset-requests": toDuration((burst - left) / perMs),
    });
    if (had >= 1) return;
    throw new GatewayError(
      "rate_limit_exceeded",
      `This token may send ${requestsPerMinute} requests a minute. Wait as long as Retry-After says.`,
      { retryAfterSeconds: Math.ceil((1 - had) / perMs / 1000) },
    );
  };
}

/** For example `20ms`, `1.5s`, `6m0s`, `1h0m0s`. */
function toDuration(ms: number): string {
  const whole = Math.ceil(ms);
  if (whole < 1000) return `${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = `${(whole % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
