/** Failures that all kinds of adapter report alike. */
import { type ErrorCode, GatewayError } from "../core/errors.ts";
import { type Part, typeOf } from "../core/item.ts";
import { isCount } from "./json.ts";
import type { Limit } from "./watch.ts";

export function brokenOff(): GatewayError {
  return new GatewayError(
    "adapter_protocol",
    "Connection lost: the upstream's stream broke off before the end of its answer.",
  );
}

/** A limit was passed: `what` says who did not do what in time. */
export function toLateFailure(what: string, limit: Limit, limitMs: number, cause?: unknown): GatewayError {
  const message = `${what} within ${limitMs} ms (${limit}_timeout_ms).`;
  return new GatewayError("adapter_timeout", message, { wireCode: `adapter_${limit}_timeout`, cause });
}

/** A part that only another dialect knows is refused, never left out. */
export function refusePart(part: Extract<Part, { type: "other" }>): never {
  throw new GatewayError(
    "unsupported_parameter",
    `This gateway's adapter does not accept content of type '${typeOf(part.extra)}'. Leave that part out, or send it as text, an image, audio or a file.`,
    { part },
  );
}

/** A choice that cannot be met is refused, never left out. */
export function refuseChoice(why: string): never {
  throw new GatewayError(
    "unsupported_parameter",
    `Unsupported parameter: 'tool_choice'. ${why} that this gateway's adapter can offer its model. Use function or custom tools, or the choice 'auto'.`,
    { param: "tool_choice" },
  );
}

/** How an upstream can fail. */
export const upstreamCodes = [
  "adapter_error",
  "adapter_refused",
  "adapter_protocol",
  "adapter_bad_request",
  "adapter_not_found",
  "adapter_rate_limit",
  "adapter_timeout",
  "overloaded",
] as const satisfies readonly ErrorCode[];

/** The codes that an operator's own program or module may report; only the gateway itself reports others. */
export const reportableCodes = [
  ...upstreamCodes,
  "unsupported_parameter",
  "context_length_exceeded",
] as const satisfies readonly ErrorCode[];

/** How long to wait, as they say, rounded up: HTTP has whole seconds, and nobody may come back early. */
export function toWholeSeconds(seconds: unknown): number | undefined {
  const whole = typeof seconds === "number" && seconds >= 0 ? Math.ceil(seconds) : undefined;
  return isCount(whole) ? whole : undefined;
}
