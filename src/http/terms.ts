/** The terms on which requests are taken. They may change while the door is open; a request keeps those that held when it came. */
import type { Protocol } from "../core/ports.ts";
import type { ResponsesProtocol } from "../protocols/responses/index.ts";
import { createGuard, type FailureCount, type Guard } from "./auth.ts";
import { type Buckets, createRateLimit, type RateLimit } from "./rate.ts";
import type { ResponseParts } from "./responses.ts";
import type { HttpSettings } from "./settings.ts";

declare module "fastify" {
  interface FastifyRequest {
    terms: Terms;
  }
}

/** What the operator decides of them. */
export interface Decisions {
  readonly settings: HttpSettings;
  readonly protocols: { readonly chat: Protocol; readonly responses: ResponsesProtocol };
}

export interface Terms extends ResponseParts {
  readonly settings: HttpSettings;
  readonly chat: Protocol;
  readonly guard: Guard;
  readonly rate: RateLimit;
}

/** What stays when terms change: whatever runs, and what is counted of callers. */
export interface Lasting extends Omit<ResponseParts, "hints" | "limits" | "protocol"> {
  readonly failures: FailureCount;
  readonly buckets: Buckets;
}

export function toTerms({ settings, protocols }: Decisions, { failures, buckets, ...lasting }: Lasting): Terms {
  const { tokens, hints, limits } = settings;
  return {
    ...lasting,
    settings,
    hints,
    limits,
    chat: protocols.chat,
    protocol: protocols.responses,
    guard: createGuard(tokens, limits.maxAuthFailuresPerMinute, lasting.now, failures),
    rate: createRateLimit(limits.rate, lasting.now, buckets),
  };
}
