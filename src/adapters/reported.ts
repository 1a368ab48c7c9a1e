/** What code of others may report as its failure, and what becomes of anything else that it throws. */
import { inspect } from "node:util";
import { type ErrorCode, GatewayError } from "../core/errors.ts";

/** The codes that a program or a module may report; only the gateway itself reports others. */
export const reportableCodes = [
  "adapter_error",
  "adapter_refused",
  "adapter_protocol",
  "adapter_bad_request",
  "adapter_not_found",
  "adapter_rate_limit",
  "adapter_timeout",
  "overloaded",
  "unsupported_parameter",
  "context_length_exceeded",
] as const satisfies readonly ErrorCode[];

/** An error with one of these codes is meant for the caller. Anything else may say anything: the log has it. */
export function toFailure(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const { code: found, retryAfterSeconds } = Object(thrown) as Readonly<Record<string, unknown>>;
  const code = reportableCodes.find((known) => known === found);
  if (code !== undefined && thrown instanceof Error)
    return new GatewayError(code, thrown.message, {
      retryAfterSeconds: toWholeSeconds(retryAfterSeconds),
      cause: thrown,
    });
  const cause = thrown instanceof Error ? thrown : new Error(`It threw ${inspect(thrown).slice(0, 200)}`);
  const message = "The adapter's own code failed. The gateway's log has the cause, under this answer's x-request-id.";
  return new GatewayError("adapter_error", message, { cause });
}

/** Rounded up: nobody may come back early. */
export function toWholeSeconds(seconds: unknown): number | undefined {
  const whole = typeof seconds === "number" && seconds >= 0 ? Math.ceil(seconds) : NaN;
  return Number.isSafeInteger(whole) ? whole : undefined;
}
