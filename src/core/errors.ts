/** Every way a turn can go wrong, in one closed table, and the error that carries it to whoever tells it. */

const codes = {
  invalid_json: [400, "invalid_request_error"],
  missing_required_parameter: [400, "invalid_request_error"],
  invalid_type: [400, "invalid_request_error"],
  invalid_value: [400, "invalid_request_error"],
  out_of_range: [400, "invalid_request_error"],
  unsupported_parameter: [400, "invalid_request_error"],
  mutually_exclusive: [400, "invalid_request_error"],
  json_too_deep: [400, "invalid_request_error"],
  too_many_messages: [400, "invalid_request_error"],
  too_many_tools: [400, "invalid_request_error"],
  tool_call_mismatch: [400, "invalid_request_error"],
  context_length_exceeded: [400, "invalid_request_error"],
  not_cancellable: [400, "invalid_request_error"],
  events_expired: [400, "invalid_request_error"],
  previous_response_not_found: [400, "invalid_request_error"],
  malformed_http: [400, "invalid_request_error"],
  websocket_connection_limit_reached: [400, "invalid_request_error"],
  missing_api_key: [401, "authentication_error"],
  invalid_api_key: [401, "authentication_error"],
  endpoint_not_allowed: [403, "permission_error"],
  model_not_allowed: [403, "permission_error"],
  endpoint_disabled: [404, "invalid_request_error"],
  unknown_url: [404, "invalid_request_error"],
  not_found: [404, "invalid_request_error"],
  method_not_allowed: [405, "invalid_request_error"],
  idempotency_conflict: [409, "invalid_request_error"],
  cancelled: [409, "invalid_request_error"],
  request_timeout: [408, "invalid_request_error"],
  length_required: [411, "invalid_request_error"],
  body_too_large: [413, "invalid_request_error"],
  unsupported_media_type: [415, "invalid_request_error"],
  upgrade_required: [426, "invalid_request_error"],
  headers_too_large: [431, "invalid_request_error"],
  rate_limit_exceeded: [429, "rate_limit_error"],
  session_busy: [429, "rate_limit_error"],
  too_many_failures: [429, "rate_limit_error"],
  client_closed: [499, "invalid_request_error"],
  internal_error: [500, "server_error"],
  interrupted: [500, "server_error"],
  adapter_error: [502, "api_error"],
  adapter_refused: [502, "api_error"],
  adapter_protocol: [502, "api_error"],
  adapter_bad_request: [400, "invalid_request_error"],
  adapter_not_found: [404, "invalid_request_error"],
  adapter_rate_limit: [429, "rate_limit_error"],
  overloaded: [503, "api_error"],
  draining: [503, "api_error"],
  store_unavailable: [503, "api_error"],
  adapter_timeout: [504, "api_error"],
} as const satisfies Record<string, readonly [status: number, type: string]>;

export type ErrorCode = keyof typeof codes;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(codes, code);
}

interface ErrorDetails {
  /** The path of the wrong field, in the caller's own words: `messages[2].content`. */
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** A finer code to show on the wire instead of ours, e.g. the upstream's `context_length_exceeded`. */
  readonly wireCode?: string | undefined;
  /** It lasts until somebody mends it: trying again is no use. */
  readonly isLasting?: boolean | undefined;
  readonly cause?: unknown;
}

/** A failure that the caller may read: its code fixes status and type, its message says what was wrong and what to do. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly type: string;
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;
  readonly wireCode: string;
  readonly isLasting: boolean;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(shorten(message), { cause: details.cause });
    this.code = code;
    [this.status, this.type] = codes[code];
    this.param = details.param === undefined ? null : shorten(details.param);
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.wireCode = details.wireCode ?? code;
    this.isLasting = details.isLasting ?? false;
  }
}

const maxLength = 4_000;

/** Text from others may be of any length; the remedy is at the end. */
function shorten(text: string): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength / 2)} … ${text.slice(-maxLength / 2)}`;
}

/** Anything thrown, as an error the caller may read. What nobody threw on purpose hides itself: the log has it. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return new GatewayError(
    "internal_error",
    "The gateway failed to handle this request. Its log has the cause, under this answer's x-request-id.",
    { cause: thrown },
  );
}

/** Why a turn whose caller left is cancelled. */
export function callerLeft(): GatewayError {
  return new GatewayError("client_closed", "The caller disconnected before the end of the answer.");
}

/** The one shape of an error on every wire. */
export function toWireError({ message, type, param, wireCode: code }: GatewayError) {
  return { message, type, param, code };
}
