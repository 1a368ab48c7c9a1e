/** What an upstream's error means to our caller, by status and by word; its own message, code and field are kept. */
import { type ErrorCode, GatewayError } from "../core/errors.ts";
import { isObject, parseObject } from "./fields.ts";
import { listAt, objectAt, type Said, textAt } from "./json.ts";

/** What is known of an error beside what it says of itself. */
export interface Refusal {
  readonly status?: number | undefined;
  /** The text of an answer with an error status. */
  readonly body?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** The error of an answer with an error status, in whichever form its body has it. */
export function refusalError(refusal: Refusal): GatewayError {
  return upstreamError(readBody(refusal.body ?? ""), refusal);
}

/** `error`: an error object, or its message alone. Secrets in it are left to whoever knows them. */
export function upstreamError(error: unknown, refusal: Refusal = {}): GatewayError {
  const told = read(error, refusal);
  const code = codeOf(told);
  return new GatewayError(code, toMessage(code, told), {
    param: told.param,
    // A refusal of our credentials is not the caller's `invalid_api_key`, and a wrong path is not the caller's either.
    wireCode:
      code === "adapter_refused" || code === "context_length_exceeded" || isAboutPath(told) ? undefined : told.code,
    retryAfterSeconds: refusal.retryAfterSeconds,
    // An exhausted account has the status of a rate limit, but does not recover in a moment.
    isLasting: told.code === "insufficient_quota" || told.type === "insufficient_quota",
    cause: refusal.cause,
  });
}

/** The error that an answer which began well tells instead of words, or in another wire's form; undefined if none. */
export function errorIn(body: Said): unknown {
  const error = body["error"] ?? undefined;
  if (error !== undefined || "choices" in body) return error;
  return body["object"] === "error" || isBare(body) ? body : undefined;
}

/** Some servers mark an error only by the event's name. */
function isBare(body: Said): boolean {
  if (textAt(body, "message") === undefined) return false;
  const type = textAt(body, "type");
  return type === undefined ? (body["code"] ?? undefined) !== undefined : /error$/i.test(type);
}

/** Nested, flat, a text, or the only one of a list; and validators list what is wrong, each with where it is. */
function readBody(text: string): unknown {
  const listed = text.trimStart().startsWith("[") ? parseObject(`{"all":${text}}`) : undefined;
  const body = listed === undefined ? parseObject(text) : listAt(listed, "all")?.[0];
  if (!isObject(body)) return undefined;
  const found = body["detail"] ?? objectAt(body, "message")?.["detail"];
  if (!Array.isArray(found)) return body["error"] ?? found ?? body;
  const [first] = found;
  if (!isObject(first)) return undefined;
  const place = (listAt(first, "loc") ?? []).filter((step) => step !== "body").join(".");
  return [place, textAt(first, "msg") ?? ""].filter((words) => words !== "").join(": ");
}

interface Told extends Refusal {
  readonly message: string;
  readonly code: string | undefined;
  readonly type: string | undefined;
  readonly param: string | undefined;
}

function read(error: unknown, refusal: Refusal): Told {
  const fields = isObject(error) ? error : { message: error };
  // Some servers write a status here, as a number or a word, others their own number.
  const number = Number(fields["code"]);
  const status = refusal.status ?? (number >= 400 && number < 600 ? number : undefined);
  const shortAt = (key: string): string | undefined => shorten(textAt(fields, key) ?? "", 200) || undefined;
  const message = shorten(textAt(fields, "message") ?? "", 2_000);
  return { ...refusal, status, message, code: shortAt("code"), type: shortAt("type"), param: shortAt("param") };
}

/** Cut at a blank, so that no half of a secret is left for others to miss. */
function shorten(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : text.slice(0, maxLength).replace(/\S*$/, "");
}

function codeOf(told: Told): ErrorCode {
  const { status, code = "", type = "" } = told;
  // An HTML page that calls the request or the key wrong is not from the API we talk to; but anyone on the way to it
  // may say that it is down or busy.
  if (isPage(told) && status !== undefined && status < 500 && !saidByAnyone.has(status)) return "adapter_protocol";
  const known = status === undefined ? (codeOfWord.get(code) ?? codeOfWord.get(type)) : codeOfStatus.get(status);
  if ((known ?? "adapter_bad_request") === "adapter_bad_request" && isTooLong(told)) return "context_length_exceeded";
  if (known !== undefined) return known;
  return status !== undefined && status < 400 ? "adapter_protocol" : "adapter_error";
}

const saidByAnyone: ReadonlySet<number> = new Set([408, 413, 429]);

const codeOfStatus: ReadonlyMap<number, ErrorCode> = new Map([
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

/** For errors without a status. */
const codeOfWord: ReadonlyMap<string, ErrorCode> = new Map([
  ["invalid_request_error", "adapter_bad_request"],
  ["invalid_prompt", "adapter_bad_request"],
  ["BadRequestError", "adapter_bad_request"],
  ["authentication_error", "adapter_refused"],
  ["invalid_api_key", "adapter_refused"],
  ["permission_error", "adapter_refused"],
  ["not_found_error", "adapter_not_found"],
  ["model_not_found", "adapter_not_found"],
  ["request_too_large", "body_too_large"],
  ["rate_limit_error", "adapter_rate_limit"],
  ["rate_limit_exceeded", "adapter_rate_limit"],
  ["insufficient_quota", "adapter_rate_limit"],
  ["overloaded_error", "overloaded"],
  ["server_is_overloaded", "overloaded"],
  ["timeout_error", "adapter_timeout"],
  ["timeout", "adapter_timeout"],
]);

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
  switch (code) {
    case "adapter_refused":
      // A known key may still lack money or permission; about the key itself its words may quote it.
      if (!isAboutKey(told)) return `The upstream refuses to answer${inBrackets}${message && `: ${message}`}`;
      return `The upstream refused the gateway's credentials${inBrackets}. The gateway's operator must check the adapter's key.`;
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
function isAboutPath(told: Told): boolean {
  if (told.status !== 404 || told.body === undefined || isPage(told)) return false;
  return /^($|Not Found$|Invalid URL \(|Unknown request URL)/.test(told.message);
}

/** A web page is for people, and not from the model's API. */
function isPage({ body = "" }: Refusal): boolean {
  return /^\s*</.test(body);
}

function isAboutKey({ status, code, type }: Told): boolean {
  return status === undefined ? code !== "permission_error" && type !== "permission_error" : status === 401;
}
