/** Turns an upstream's error into ours: a table by status, its message and code kept, our secrets taken out. */
import { type ErrorCode, GatewayError } from "../../core/errors.ts";
import type { UpstreamResponse } from "../http/upstream.ts";
import { readWhole } from "../http/whole.ts";
import { type JsonObject, isObject, objectAt, textAt } from "./json.ts";

export type Scrub = (text: string) => string;

/** What an answer with an error status means. */
export async function toRefusal(response: UpstreamResponse, scrub: Scrub): Promise<GatewayError> {
  const text = (await readWhole(response, 1024 * 1024)).toString("utf8");
  return toFailure(response.status, readError(text), scrub, {
    retryAfterSeconds: readRetryAfter(response.headers["retry-after"], Date.now()),
    cause: new Error(`The upstream answered ${response.status}: ${scrub(text.slice(0, 500))}`),
  });
}

/** What an error within an answer of status 200 means. */
export function toReportedFailure(error: unknown, scrub: Scrub): GatewayError {
  const fields = isObject(error) ? error : { message: error };
  const code = fields["code"];
  const status = typeof code === "number" ? code : (statusOfWord[String(code)] ?? statusOfWord[String(fields["type"])]);
  return toFailure(status ?? 500, fields, scrub, {});
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

const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  400: "adapter_bad_request",
  401: "adapter_refused",
  402: "adapter_refused",
  403: "adapter_refused",
  404: "adapter_not_found",
  408: "adapter_timeout",
  413: "body_too_large",
  422: "adapter_bad_request",
  429: "adapter_rate_limit",
  503: "overloaded",
  504: "adapter_timeout",
  529: "overloaded",
};

/** For errors that come without a status. */
const statusOfWord: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  context_length_exceeded: 400,
  BadRequestError: 400,
  authentication_error: 401,
  invalid_api_key: 401,
  permission_error: 403,
  not_found_error: 404,
  model_not_found: 404,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  overloaded_error: 503,
  server_is_overloaded: 503,
  timeout: 504,
};

/** The statuses that ask the caller to come back, and so always say when. */
const retried: ReadonlySet<ErrorCode> = new Set(["adapter_rate_limit", "overloaded"]);

function toFailure(
  status: number,
  error: JsonObject,
  scrub: Scrub,
  details: { readonly retryAfterSeconds?: number | undefined; readonly cause?: unknown },
): GatewayError {
  const code = codeOfStatus[status] ?? (status >= 300 && status < 400 ? "adapter_protocol" : "adapter_error");
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

function toMessage(code: ErrorCode, status: number, said: string): string {
  switch (code) {
    case "adapter_refused":
      return `The upstream refused the gateway's credentials (status ${status}). Its operator must check the adapter's api_key.`;
    case "adapter_bad_request":
    case "adapter_not_found":
    case "adapter_rate_limit":
    case "body_too_large":
      return said !== "" ? said : `The upstream answered with status ${status} and no message.`;
    case "adapter_protocol":
      return `The upstream answered with a redirect (status ${status}). Check the adapter's base_url.`;
    default:
      return said !== ""
        ? `The upstream failed with status ${status}: ${said}`
        : `The upstream failed with status ${status}.`;
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
