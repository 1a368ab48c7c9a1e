/** Limits requests a minute: each owner has a bucket that refills steadily and holds a burst. */
import type { ServerResponse } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Rate, Token } from "./settings.ts";

/** Takes one request, or throws when the next one may come; either way the answer tells how many are left. */
export type TakeRequest = (token: Token, general: Rate | undefined, response?: ServerResponse) => void;

export function createTakeRequest(now: () => number): TakeRequest {
  const buckets = new Map<string, { readonly left: number; readonly at: number }>();
  return ({ owner, rate: own }, general, response) => {
    const rate = own ?? general;
    if (rate === undefined) return;
    const { requestsPerMinute, burst } = rate;
    const perMs = requestsPerMinute / 60_000;
    const at = now();
    const bucket = buckets.get(owner) ?? { left: burst, at };
    // A clock that was set back takes nothing away.
    const had = Math.min(burst, bucket.left + Math.max(0, at - bucket.at) * perMs);
    const left = had < 1 ? had : had - 1;
    buckets.set(owner, { left, at });
    response
      ?.setHeader("x-ratelimit-limit-requests", burst)
      .setHeader("x-ratelimit-remaining-requests", Math.floor(left))
      .setHeader("x-ratelimit-reset-requests", toDuration((burst - left) / perMs));
    if (had >= 1) return;
    throw new GatewayError(
      "rate_limit_exceeded",
      `This token may send ${requestsPerMinute} requests a minute. Wait as long as Retry-After says.`,
      { retryAfterSeconds: Math.ceil((1 - had) / perMs / 1000) },
    );
  };
}

/** `20ms`, `1.5s`, `6m0s`, `1h0m0s`, as OpenAI writes it. */
function toDuration(ms: number): string {
  const whole = Math.ceil(ms);
  if (whole < 1_000) return `${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = `${(whole % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
