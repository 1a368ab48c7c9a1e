/** Turns what a provider package throws or tells into our errors; its classes are known by their names, for each package brings its own. */
import { type ErrorCode, GatewayError } from "../../core/errors.ts";
import { toNetworkFailure } from "../http/failure.ts";
import { type Scrub, createScrubber, excerpt, toRefusalError, toReportedFailure, wordsOf } from "../http/refusal.ts";
import { type JsonObject, isObject, objectAt, parseJson, textAt } from "../json.ts";

/** `address` stands for the other side where the error names no URL. */
export function toFailure(thrown: unknown, address: string, scrub: Scrub): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (!isObject(thrown)) return toReportedFailure(thrown, scrub);
  if (!(thrown instanceof Error)) return toReportedFailure(readError(thrown), scrub);
  const cause = withoutRequest(thrown, scrub);
  const known = codeOfName.get(thrown.name);
  if (known !== undefined) return new GatewayError(known, excerpt(thrown.message, 2000, scrub), { cause });
  if (garbled.has(thrown.name)) {
    // Their messages quote what came, and so belong into the log alone.
    return new GatewayError("adapter_protocol", "The upstream's answer is none that its package understands.", {
      cause,
    });
  }
  const status = typeof thrown["statusCode"] === "number" ? thrown["statusCode"] : undefined;
  if (status !== undefined && status >= 400) return toAnsweredFailure(thrown, status, scrub);
  const network = findNetworkError(thrown);
  if (network !== undefined) return toNetworkFailure(network, addressOf(thrown) ?? address);
  return toRefusalError({ status, message: thrown.message, cause }, scrub);
}

/** The packages' errors hold the whole request, which is not for the log. */
function withoutRequest(thrown: Error, scrub: Scrub): Error {
  return new Error(`${thrown.name}: ${excerpt(thrown.message, 500, scrub)}`);
}

/** Takes out what the options and the environment hold of secrets, for a provider may quote them. */
export function createSecretScrubber(
  options: JsonObject,
  environment: Readonly<Record<string, string | undefined>>,
): Scrub {
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
      retryAfter: textAt(headers, "retry-after"),
      retryAfterMs: textAt(headers, "retry-after-ms"),
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

/** The network's own error stands somewhere behind what was thrown. */
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
