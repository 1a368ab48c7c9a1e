/** Maps what a provider package throws or reports to our errors, by class name, as each package has its own classes. */
import { type ErrorCode, GatewayError } from "../../core/errors.ts";
import { toNetworkFailure } from "../http/failure.ts";
import { type Scrub, createScrubber, excerpt, toRefusalError, toReportedFailure, wordsOf } from "../http/refusal.ts";
import { type JsonObject, isObject, objectAt, parseJson, textAt } from "../json.ts";
import type { Environment } from "../type.ts";

/** `address` names the other side if the error has no URL. */
export function toFailure(thrown: unknown, address: string, scrub: Scrub): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (!isObject(thrown)) return toReportedFailure(thrown, scrub);
  if (!(thrown instanceof Error)) return toReportedFailure(readError(thrown), scrub);
  const cause = withoutRequest(thrown, scrub);
  const known = codeOfName.get(thrown.name);
  if (known !== undefined) return new GatewayError(known, excerpt(thrown.message, 2000, scrub), { cause });
  if (garbled.has(thrown.name)) {
    // Their messages quote what came, so they go only to the log.
    return new GatewayError("adapter_protocol", "The upstream sent an answer that its package does not understand.", {
      cause,
    });
  }
  const status = typeof thrown["statusCode"] === "number" ? thrown["statusCode"] : undefined;
  if (status !== undefined && status >= 400) return toAnsweredFailure(thrown, status, scrub);
  const network = findNetworkError(thrown);
  if (network !== undefined) return toNetworkFailure(network, addressOf(thrown) ?? address);
  return toRefusalError({ status, message: thrown.message, cause }, scrub);
}

/** Package errors contain the whole request, which must not be logged. */
function withoutRequest(thrown: Error, scrub: Scrub): Error {
  return new Error(`${thrown.name}: ${excerpt(thrown.message, 500, scrub)}`);
}

/** Removes the secrets in the options and the environment, which a provider may quote. */
export function createSecretScrubber(options: JsonObject, environment: Environment): Scrub {
  const secrets = Object.entries(environment).flatMap(([name, value = ""]) => (secretName.test(name) ? [value] : []));
  gather(options, false, secrets);
  return createScrubber(secrets);
}

const secretName = /(key|token|secret|password|credentials?)$/i;

function gather(value: unknown, isSecret: boolean, secrets: string[]): void {
  if (typeof value === "string" && isSecret) secrets.push(value);
  else if (typeof value === "object" && value !== null) {
    for (const [key, entry] of Object.entries(value)) {
      gather(entry, isSecret || key === "headers" || secretName.test(key), secrets);
    }
  }
}

/** The upstream answered with an error status. */
function toAnsweredFailure(thrown: Error & JsonObject, status: number, scrub: Scrub): GatewayError {
  const text = textAt(thrown, "responseBody") ?? "";
  const headers = objectAt(thrown, "responseHeaders") ?? {};
  return toRefusalError(
    {
      status,
      ...wordsOf(readError(parseJson(text))),
      message: thrown.message,
      body: text,
      retryAfter: textAt(headers, "retry-after"),
      retryAfterMs: textAt(headers, "retry-after-ms"),
      date: textAt(headers, "date"),
      cause: new Error(`The upstream answered ${status}: ${excerpt(text, 500, scrub)}`),
    },
    scrub,
  );
}

function readError(body: unknown): JsonObject {
  const [first] = Array.isArray(body) ? (body as readonly unknown[]) : [body];
  if (!isObject(first)) return {};
  return objectAt(first, "error") ?? first;
}

const codeOfName: ReadonlyMap<string, ErrorCode> = new Map([
  ["AI_UnsupportedFunctionalityError", "unsupported_parameter"],
  ["AI_InvalidPromptError", "adapter_bad_request"],
  ["AI_InvalidArgumentError", "adapter_bad_request"],
  ["AI_NoSuchModelError", "adapter_not_found"],
  ["AI_LoadAPIKeyError", "adapter_refused"],
  ["AI_LoadSettingError", "adapter_refused"],
]);

const garbled: ReadonlySet<string> = new Set([
  "AI_InvalidResponseDataError",
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError",
]);

/** The network's own error is somewhere in the chain of causes. */
function findNetworkError(thrown: Error): Error | undefined {
  let current: unknown = thrown;
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    if ("code" in current && typeof current.code === "string") return current;
    current = current.cause;
  }
  return undefined;
}

/** Host and port alone: a URL may hold a key. */
function addressOf(thrown: JsonObject): string | undefined {
  return URL.parse(textAt(thrown, "url") ?? "")?.host;
}
