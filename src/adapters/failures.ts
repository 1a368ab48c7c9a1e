/** Failures that every kind of adapter tells alike. */
import { type ErrorCode, GatewayError } from "../core/errors.ts";

export function callerLeft(cause?: unknown): GatewayError {
  return new GatewayError("client_closed", "The caller left before the end of the answer.", { cause });
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

/** What an operator's own program or module may say of its failure; everything else is the gateway's own to say. */
export const tellableCodes = [...upstreamCodes, "unsupported_parameter"] as const satisfies readonly ErrorCode[];
