/** A failure as a response object's error, with fewer codes than ours; clients decide by them whether to retry. */
import type { ErrorCode, GatewayError } from "../../core/errors.ts";

/** The `error` of a failed response. */
export function toResponseError(error: GatewayError): { readonly code: string; readonly message: string } {
  const code = knownCodes.has(error.wireCode) ? error.wireCode : (codes[error.code] ?? "server_error");
  return { code, message: error.message };
}

/** The wire's own codes, passed on if an adapter uses them. Clients do not retry what they know to be final. */
const knownCodes: ReadonlySet<string> = new Set([
  "server_error",
  "rate_limit_exceeded",
  "invalid_prompt",
  "context_length_exceeded",
  "insufficient_quota",
  "usage_not_included",
  "server_is_overloaded",
  "slow_down",
  "data_residency_mismatch",
  "bio_policy",
  "cyber_policy",
  "vector_store_timeout",
  "invalid_image",
  "invalid_image_format",
  "invalid_base64_image",
  "invalid_image_url",
  "image_too_large",
  "image_too_small",
  "image_parse_error",
  "image_content_policy_violation",
  "invalid_image_mode",
  "image_file_too_large",
  "unsupported_image_media_type",
  "empty_image_file",
  "failed_to_download_image",
  "image_file_not_found",
]);

/** Our codes that are more than a server error. */
const codes: Readonly<Partial<Record<ErrorCode, string>>> = {
  rate_limit_exceeded: "rate_limit_exceeded",
  session_busy: "rate_limit_exceeded",
  too_many_failures: "rate_limit_exceeded",
  adapter_rate_limit: "rate_limit_exceeded",
  overloaded: "server_is_overloaded",
  draining: "server_is_overloaded",
  store_unavailable: "server_is_overloaded",
  adapter_bad_request: "invalid_prompt",
  adapter_not_found: "invalid_prompt",
  tool_call_mismatch: "invalid_prompt",
  previous_response_not_found: "invalid_prompt",
  too_many_messages: "invalid_prompt",
  too_many_tools: "invalid_prompt",
};
