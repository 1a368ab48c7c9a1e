/** Turns an upstream's error into ours, by status and by word; keeps its message and code, removes secrets. */
import { type ErrorCode, GatewayError, type ToldWindow } from "../../core/errors.ts";
import { toWholeSeconds } from "../failures.ts";
import { isObject, type JsonObject, textAt } from "../json.ts";

export type Scrub = (text: string) => string;

/** An error as far as the upstream reported it. */
export interface Refusal {
  /** Only what the upstream itself said. */
  readonly status?: number | undefined;
  readonly message?: string | undefined;
  /** Either may name the cause. */
  readonly code?: string | undefined;
  readonly type?: string | undefined;
  readonly param?: string | undefined;
  /** These two headers; some servers send only the second, in milliseconds. */
  readonly retryAfter?: string | undefined;
  readonly retryAfterMs?: string | undefined;
  /** What time it is there. */
  readonly date?: string | undefined;
  /** What came with an error status; absent if an answer that began well reported the error. */
  readonly body?: string | undefined;
  readonly cause?: unknown;
}

/** An error reported within an answer that began well. */
export function toReportedFailure(error: unknown, scrub: Scrub): GatewayError {
  const fields = isObject(error) ? error : { message: error };
  const number = Number(fields["code"]);
  // Some servers write a status here, as a number or a word, others their own number.
  const status = number >= 400 && number < 600 ? number : undefined;
  return toRefusalError({ status, ...wordsOf(fields) }, scrub);
}

/** What an upstream's error object says. */
export function wordsOf(error: JsonObject) {
  return {
    message: textAt(error, "message"),
    code: textAt(error, "code"),
    type: textAt(error, "type"),
    param: textAt(error, "param"),
  };
}

export function toRefusalError(refusal: Refusal, scrub: Scrub): GatewayError {
  const code = codeOf(refusal);
  const clean = (text: string | undefined, maxLength: number) => text && excerpt(text, maxLength, scrub);
  return new GatewayError(code, toMessage(code, refusal, clean(refusal.message, 2000) ?? ""), {
    param: clean(refusal.param, 200),
    wireCode: clean(wireCodeOf(code, refusal), 200),
    contextWindow: readContextWindow(refusal),
    retryAfterSeconds: readRetryAfter(refusal, Date.now()),
    // An exhausted account has the status of a rate limit, but does not recover in a moment.
    isLasting: [refusal.code, refusal.type].includes("insufficient_quota"),
    cause: refusal.cause,
  });
}

/** The start of an upstream's words, without secrets; scrubbed before it is cut, so that no half secret remains. */
export function excerpt(text: string, maxLength: number, scrub: Scrub): string {
  if (text.length <= maxLength + maxSecretLength) return scrub(text).slice(0, maxLength);
  // Half a secret at the end is not recognised, and moves forward when others are replaced by shorter words.
  const start = scrub(text.slice(0, maxLength + maxSecretLength)).slice(0, -maxSecretLength);
  return start.slice(0, maxLength);
}

const maxSecretLength = 4096;

/** Removes our own secrets from an upstream's words, and what looks like anybody's. */
export function createScrubber(secrets: readonly string[]): Scrub {
  // Longest first, so that a secret that contains another leaves no remainder.
  const longestFirst = secrets
    // In `Bearer …` the second word is the secret.
    .flatMap((secret) => [secret, ...secret.split(/\s+/)])
    .filter(({ length }) => length >= minSecretLength)
    .toSorted((one, other) => other.length - one.length);
  return (text) => {
    let clean = text;
    for (const secret of longestFirst) clean = clean.replaceAll(secret, "[secret]");
    for (const [pattern, instead] of credentials) clean = clean.replace(pattern, instead);
    return clean;
  };
}

/** Anything shorter is an ordinary word, such as the key `EMPTY`. */
const minSecretLength = 8;

/** Narrow names and bounds on purpose: words about `max_tokens` must stay, and matching must be fast. */
const credentials: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(\w{1,20}:\/\/)[^\s/?#@"'<>]{1,500}@/g, "$1[secret]@"],
  [
    /((?<![\w-])(?:[\w-]{1,40}[-_])?(?:api[-_]?key|key|token|secret|password|sig|signature|credential)=)(?!\[secret\])[^\s&#"'<>,;)]{1,1000}/gi,
    "$1[secret]",
  ],
  [/(api[-_ ]?key(?: provided)?["']?\s{0,3}:\s{0,3}["']?)(?!\[secret\])[^\s"'<>,;)]{8,1000}/gi, "$1[secret]"],
  [/(?<![\w-])(Bearer|Basic)\s{1,5}(?=[\w.~+/-]{0,200}[\d=])[\w.~+/=-]{8,1000}/gi, "$1 [secret]"],
  [/(?<![\w-])(?:sk|pk|rk|xai)-(?=[\w*-]{0,200}[\d*])[\w*-]{8,500}/g, "[secret]"],
  [/(?<![\w-])(?:AIza|gsk_|hf_|ghp_)[\w-]{16,500}/g, "[secret]"],
];

function codeOf(refusal: Refusal): ErrorCode {
  const { status, code, type, body } = refusal;
  // An HTML page that calls the request or the key wrong is not from the API we talk to; but anyone on the way to it
  // may say that it is down or busy.
  if (isPage(body) && status !== undefined && status < 500 && !saidByAnyone.has(status)) return "adapter_protocol";
  const known = codeOfStatus.get(status);
  if (known !== undefined) return known;
  if (status !== undefined && status >= 500) return "adapter_error";
  const named = codeOfWord.get(code) ?? codeOfWord.get(type);
  if (named !== undefined) return named;
  if (isTooLong(refusal)) return "adapter_bad_request";
  return status !== undefined && status < 400 ? "adapter_protocol" : "adapter_error";
}

const saidByAnyone: ReadonlySet<number> = new Set([408, 413, 429]);

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

/** For errors without a known status. */
const codeOfWord: ReadonlyMap<string | undefined, ErrorCode> = new Map([
  ["invalid_request_error", "adapter_bad_request"],
  ["context_length_exceeded", "adapter_bad_request"],
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

/** The server's own code, if it is meant for the caller. */
function wireCodeOf(code: ErrorCode, refusal: Refusal): string | undefined {
  // A refusal of our own credentials is not the caller's `invalid_api_key`, and a wrong path is not the caller's either.
  if (code === "adapter_refused" || isAboutPath(refusal)) return undefined;
  return code === "adapter_bad_request" && isTooLong(refusal) ? "context_length_exceeded" : refusal.code;
}

/** Few servers have the code for it; but agents shorten a conversation for this code alone, and so does the gateway. */
function isTooLong({ type, message = "" }: Refusal): boolean {
  return type === "exceed_context_size_error" || tooLong.some((words) => words.test(message));
}

/** What servers say of a conversation that is longer than their model's context window. */
const tooLong: readonly RegExp[] = [
  /\b(max|maximum|available|model's) (context|prompt|model) (length|size)\b/i,
  /\b(exceeds?|greater than) (the )?context (length|limit|window)\b/i,
  /\bcontext window exceeds limit\b/i,
  /\bexceeded model token limit\b/i,
  /\bexceeds the maximum number of tokens\b/i,
  /\b(prompt|input) is too long\b/i,
  /\btoo many tokens:/i,
];

/** The size of the context window, if a refusal of what is too long says it. */
function readContextWindow(refusal: Refusal): ToldWindow | undefined {
  if (!isTooLong(refusal)) return undefined;
  const tokens = findNumber(refusal, windowSizes);
  return tokens === undefined ? undefined : { tokens, answer: findNumber(refusal, answerSizes) };
}

function findNumber({ message = "" }: Refusal, patterns: readonly RegExp[]): number | undefined {
  // As in 128,000: a window of 128 tokens would leave nothing of a conversation.
  const plain = message.replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, "");
  const found = patterns.flatMap((pattern) => pattern.exec(plain)?.[1] ?? []);
  return found[0] === undefined ? undefined : Number(found[0]);
}

const windowSizes: readonly RegExp[] = [
  /\b(?:context|prompt|model) (?:length|size|window)(?: is| of)?(?: only)? \(?(\d{3,9})\b/i,
  /\b(\d{3,9}) maximum context length\b/i,
  /\btoken limit: (\d{3,9})\b/i,
  / > (\d{3,9})\b/,
  /\btokens allowed \((\d{3,9})\)/i,
];

/** What a request allows for the answer, in the same refusals. */
const answerSizes: readonly RegExp[] = [
  /\b([1-9]\d{0,8}) (?:tokens )?(?:in|for) the (?:completion|output)\b/i,
  /\b([1-9]\d{0,8}) output tokens\b/i,
  /tokens'? is too large: ([1-9]\d{0,8})\b/i,
  / \+ ([1-9]\d{0,8}) > /,
];

function toMessage(code: ErrorCode, refusal: Refusal, said: string): string {
  const { status } = refusal;
  const inBrackets = status === undefined ? "" : ` (status ${status})`;
  if (isAboutPath(refusal)) return `The upstream has nothing at this path${inBrackets}. Check the adapter's base URL.`;
  switch (code) {
    case "adapter_refused":
      if (!isAboutKey(refusal)) return `The upstream refuses to answer${inBrackets}${said === "" ? "." : `: ${said}`}`;
      // Its own message may quote the key, as far as it knows it.
      return `The upstream refused the gateway's credentials${inBrackets}. The gateway's operator must check the adapter's key.`;
    case "adapter_bad_request":
    case "adapter_not_found":
    case "adapter_rate_limit":
    case "body_too_large":
      return said !== "" ? said : `The upstream refused the request without a message${inBrackets}.`;
    case "adapter_protocol":
      return `The upstream answered with ${isRedirect(status) ? "a redirect" : "something that is not an answer"}${inBrackets}. Check the adapter's base URL.`;
    default:
      return `The upstream failed${status === undefined ? "" : ` with status ${status}`}${said === "" ? "." : `: ${said}`}`;
  }
}

/** Where there is no API, a server has no words, or only these; about a model it says more. */
function isAboutPath({ status, message = "", body }: Refusal): boolean {
  if (status !== 404 || body === undefined || isPage(body)) return false;
  return /^($|Not Found$|Invalid URL \(|Unknown request URL)/.test(message);
}

/** A web page is for people, and not from the model's API. */
function isPage(body = ""): boolean {
  return /^\s*</.test(body);
}

/** A known key may still lack money or permission. */
function isAboutKey({ status, code, type }: Refusal): boolean {
  return status === undefined ? code !== "permission_error" && type !== "permission_error" : status === 401;
}

function isRedirect(status: number | undefined): boolean {
  return status !== undefined && status >= 300 && status < 400;
}

/** Seconds from now: a number, a date, or the other header's milliseconds. */
function readRetryAfter({ retryAfter = "", retryAfterMs = "", date = "" }: Refusal, now: number): number | undefined {
  // A date goes by the clock of the server that sent it.
  const untilDate = (Date.parse(retryAfter) - (Date.parse(date) || now)) / 1000;
  const wait = [readNumber(retryAfter), untilDate, readNumber(retryAfterMs) / 1000].find(Number.isFinite);
  return wait === undefined ? undefined : toWholeSeconds(Math.max(0, wait));
}

function readNumber(text: string): number {
  return text === "" ? NaN : Number(text);
}
