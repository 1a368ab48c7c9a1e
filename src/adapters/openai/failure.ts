/** Turns an upstream's error into ours: a table by status, its message and code kept, our secrets taken out. */
import { type ErrorCode, GatewayError } from "../../core/errors.ts";
import type { UpstreamResponse } from "../http/upstream.ts";
import { readWhole } from "../http/whole.ts";
import { type JsonObject, isObject, objectAt, textAt } from "./json.ts";

export type Scrub = (text: string) => string;

/** What an answer with an error status means. */
export async function toRefusal(response: UpstreamResponse, scrub: Scrub): Promise<GatewayError> {
  const text = (await readWhole(response, 1024 * 1024)).toString("utf8");
  const { status } = response;
  const code = codeOfStatus.get(status) ?? (status >= 300 && status < 400 ? "adapter_protocol" : "adapter_error");
  return toFailure(code, status, readError(text), scrub, {
    retryAfterSeconds: readRetryAfter(response.headers["retry-after"], Date.now()),
    cause: new Error(`The upstream answered ${response.status}: ${scrub(text.slice(0, 500))}`),
  });
}

/** What an error within an answer of status 200 means. */
export function toReportedFailure(error: unknown, scrub: Scrub): GatewayError {
  const fields = isObject(error) ? error : { message: error };
  const number = fields["code"];
  // Some servers write a status here, others a number of their own.
  const status = typeof number === "number" && number >= 400 && number < 600 ? number : undefined;
  const code =
    codeOfStatus.get(status) ??
    codeOfWord.get(textAt(fields, "code")) ??
    codeOfWord.get(textAt(fields, "type")) ??
    "adapter_error";
  return toFailure(code, status, fields, scrub, {});
}

/** Takes our own secrets out of what an upstream says. */
export function createScrubber(apiKey: string | undefined, headers: Readonly<Record<string, string>>): Scrub {
  const words = Object.values(headers).flatMap((value) => value.split(/\s+/).concat(value));
  const secrets = [apiKey ?? "", ...words.filter((word) => word.length >= 8)].filter((secret) => secret !== "");
  // The longest first, so that no secret leaves a rest because it holds another.
  secrets.sort((one, other) => other.length - one.length);
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "[secret]"), text);
}

/** Seconds from now, of either form of the header: a number, or a date. */
function readRetryAfter(header: string | string[] | undefined, now: number): number | undefined {
  if (typeof header !== "string" || header.trim() === "") return undefined;
  const seconds = Number(header);
  const wait = Number.isNaN(seconds) ? (Date.parse(header) - now) / 1000 : seconds;
  return Number.isFinite(wait) ? Math.max(0, Math.ceil(wait)) : undefined;
}

const codeOfStatus: ReadonlyMap<number | undefined, ErrorCode> = new Map([
  [400, "adapter_bad_request"],
  [401, "adapter_refused"],
  [402, "adapter_refused"],
  [403, "adapter_refused"],
  [404, "adapter_not_found"],
  [408, "adapter_timeout"],
  [413, "body_too_large"],
  [422, "adapter_bad_request"],
  [429, "adapter_rate_limit"],
  [503, "overloaded"],
  [504, "adapter_timeout"],
  [529, "overloaded"],
]);

/** For errors that come without a status. */
const codeOfWord: ReadonlyMap<string | undefined, ErrorCode> = new Map([
  ["invalid_request_error", "adapter_bad_request"],
  ["context_length_exceeded", "adapter_bad_request"],
  ["BadRequestError", "adapter_bad_request"],
  ["authentication_error", "adapter_refused"],
  ["invalid_api_key", "adapter_refused"],
  ["permission_error", "adapter_refused"],
  ["not_found_error", "adapter_not_found"],
  ["model_not_found", "adapter_not_found"],
  ["rate_limit_error", "adapter_rate_limit"],
  ["rate_limit_exceeded", "adapter_rate_limit"],
  ["insufficient_quota", "adapter_rate_limit"],
  ["overloaded_error", "overloaded"],
  ["server_is_overloaded", "overloaded"],
  ["timeout", "adapter_timeout"],
]);

/** The statuses that ask the caller to come back, and so always say when. */
const retried: ReadonlySet<ErrorCode> = new Set(["adapter_rate_limit", "overloaded"]);

/** `status` is what the upstream itself said, and is told only then. */
function toFailure(
  code: ErrorCode,
  status: number | undefined,
  error: JsonObject,
  scrub: Scrub,
  details: { readonly retryAfterSeconds?: number | undefined; readonly cause?: unknown },
): GatewayError {
  const said = scrub(textAt(error, "message") ?? "").slice(0, 2000);
  const param = textAt(error, "param");
  const upstreamCode = textAt(error, "code");
  return new GatewayError(code, toMessage(code, status, said), {
    param: param === undefined ? undefined : scrub(param),
    // A refusal of our own credentials is not the caller's `invalid_api_key`.
    wireCode: code === "adapter_refused" || upstreamCode === undefined ? undefined : scrub(upstreamCode),
    retryAfterSeconds: retried.has(code) ? (details.retryAfterSeconds ?? 1) : details.retryAfterSeconds,
    cause: details.cause,
  });
}

function toMessage(code: ErrorCode, status: number | undefined, said: string): string {
  const inBrackets = status === undefined ? "" : ` (status ${status})`;
  switch (code) {
    case "adapter_refused":
      return `The upstream refused the gateway's credentials${inBrackets}. Its operator must check the adapter's api_key.`;
    case "adapter_bad_request":
    case "adapter_not_found":
    case "adapter_rate_limit":
    case "body_too_large":
      return said !== "" ? said : `The upstream refused the request without a message${inBrackets}.`;
    case "adapter_protocol":
      return `The upstream answered with a redirect${inBrackets}. Check the adapter's base_url.`;
    default:
      return `The upstream failed${status === undefined ? "" : ` with status ${status}`}${said === "" ? "." : `: ${said}`}`;
  }
}

/** The error object of a body, in the forms that compatible servers write: nested, flat, a string, or no JSON at all. */
function readError(text: string): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return {};
  }
  // Some servers put their one error into a list.
  if (Array.isArray(body)) [body] = body;
  if (!isObject(body)) return {};
  const message = textAt(body, "error") ?? textAt(body, "detail");
  return objectAt(body, "error") ?? (message === undefined ? body : { ...body, message });
}
