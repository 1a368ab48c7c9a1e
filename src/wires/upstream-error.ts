/** What an upstream's error means to our caller, by status or by word; its own message, code and field are kept. */
import { type ErrorCode, GatewayError } from "../core/errors.ts";
import { isObject, parseObject, type Said, textAt } from "./fields.ts";

/** What is known of an error beside what it says of itself. */
export interface Refusal {
  readonly status?: number | undefined;
  /** The text of an answer with an error status. */
  readonly body?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** The error of an answer with an error status: nested, flat, a text, or the only one of a list. */
export function refusalError(refusal: Refusal): GatewayError {
  const all = parseObject(`{"all":${refusal.body ?? ""}}`)?.["all"];
  const body: unknown = Array.isArray(all) ? all[0] : all;
  return upstreamError(isObject(body) ? (body["error"] ?? body["detail"] ?? body) : undefined, refusal);
}

/** `error`: an error object, or its message alone. Secrets in it are left to whoever knows them. */
export function upstreamError(error: unknown, refusal: Refusal = {}): GatewayError {
  const told = read(error, refusal);
  const code = codeOf(told);
  const isOurs = code === "adapter_refused" || code === "context_length_exceeded" || isAboutPath(told);
  return new GatewayError(code, toMessage(code, told), {
    param: told.param,
    // A refusal of our credentials is not the caller's `invalid_api_key`, and a wrong path is not the caller's either.
    wireCode: isOurs ? undefined : told.code,
    retryAfterSeconds: refusal.retryAfterSeconds,
    // An exhausted account has the status of a rate limit, but does not recover in a moment.
    isLasting: told.code === "insufficient_quota" || told.type === "insufficient_quota",
    cause: refusal.cause,
  });
}

/** The error that an answer tells instead of words, though its status is good; some servers put no object around it. */
export function errorIn(body: Said): unknown {
  const error = body["error"] ?? undefined;
  return error === undefined && !("choices" in body) && typeof body["message"] === "string" ? body : error;
}

interface Told extends Refusal {
  readonly message: string;
  readonly code: string | undefined;
  readonly type: string | undefined;
  readonly param: string | undefined;
}

function read(error: unknown, refusal: Refusal): Told {
  const fields = isObject(error) ? error : { message: typeof error === "object" ? JSON.stringify(error) : error };
  // Some servers write a status here, others their own number.
  const number = Number(fields["code"]);
  const status = refusal.status ?? (number >= 400 && number < 600 ? number : undefined);
  const [message = "", code, type, param] = ["message", "code", "type", "param"].map((key) => shortAt(fields, key));
  return { ...refusal, status, message, code, type, param };
}

/** Cut at a blank, so that no half of a secret is left for others to miss. */
function shortAt(fields: Said, key: string): string | undefined {
  const text = textAt(fields, key);
  return text === undefined || text.length <= maxLength ? text : text.slice(0, maxLength).replace(/\S*$/, "");
}

const maxLength = 2_000;

function codeOf(told: Told): ErrorCode {
  const { status, code = "", type = "", body = "" } = told;
  // A page is no API's: of a proxy, a tunnel that is down, another server.
  if ((status === 400 || status === 404) && /^\s*</.test(body)) return "adapter_protocol";
  const known = status === undefined ? (codes.get(code) ?? codes.get(type)) : codes.get(status);
  if ((known ?? "adapter_bad_request") === "adapter_bad_request" && isTooLong(told)) return "context_length_exceeded";
  return known ?? (status !== undefined && status < 400 ? "adapter_protocol" : "adapter_error");
}

/** By status; and by word, where there is none. */
const meanings: readonly (readonly [code: ErrorCode, ...said: readonly (number | string)[]])[] = [
  ["adapter_bad_request", 400, 422, "invalid_request_error", "invalid_prompt"],
  ["adapter_refused", 401, 402, 403, "authentication_error", "invalid_api_key", "permission_error"],
  ["adapter_not_found", 404, "not_found_error", "model_not_found"],
  ["adapter_timeout", 408, 504],
  ["body_too_large", 413],
  ["adapter_rate_limit", 429, "rate_limit_error", "rate_limit_exceeded", "insufficient_quota"],
  ["overloaded", 503, 529, "overloaded_error", "server_is_overloaded"],
];
const codes = new Map(meanings.flatMap(([code, ...said]) => said.map((one) => [one, code] as const)));

/** Few servers have the code for it; but agents shorten a conversation for this code alone. */
function isTooLong({ code, type, message }: Told): boolean {
  return code === "context_length_exceeded" || type === "exceed_context_size_error" || tooLong.test(message);
}

/** What servers say of a conversation that is longer than their model's context window. */
const tooLong = new RegExp(
  [
    "\\b(max|maximum|available|model's) (context|prompt|model) (length|size)\\b",
    "\\b(exceeds?|greater than) (the )?context (length|limit|window)\\b",
    "\\bcontext window exceeds limit\\b",
    "\\bexceeded model token limit\\b",
    "\\bexceeds the maximum number of tokens\\b",
    "\\b(prompt|input) is too long\\b",
    "\\btoo many tokens:",
  ].join("|"),
  "i",
);

function toMessage(code: ErrorCode, told: Told): string {
  const { status, message } = told;
  const inBrackets = status === undefined ? "" : ` (status ${status})`;
  if (isAboutPath(told)) return `The upstream has nothing at this path${inBrackets}. Check the adapter's base URL.`;
  // About a key the server's words may quote it; a known one may still lack money or permission.
  if (code === "adapter_refused" && (status ?? 401) === 401)
    return `The upstream refused the gateway's credentials${inBrackets}. The gateway's operator must check the adapter's key.`;
  switch (code) {
    case "adapter_refused":
    case "adapter_error":
    case "adapter_timeout":
    case "overloaded":
      return `The upstream failed${inBrackets}${message && `: ${message}`}`;
    case "adapter_protocol":
      return `The upstream answered with something that is not an answer${inBrackets}. Check the adapter's base URL.`;
    default:
      return message || `The upstream refused the request without a message${inBrackets}.`;
  }
}

/** Where there is no API, a server has no words, or only these; about a model it says more. */
function isAboutPath({ status, message }: Told): boolean {
  return status === 404 && /^($|Not Found$|Invalid URL \(|Unknown request URL)/.test(message);
}
