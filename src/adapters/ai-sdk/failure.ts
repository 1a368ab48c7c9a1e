/** What a provider's package throws or reports, as our errors: by name, since each package has its own classes. */
import { type ErrorCode, GatewayError } from "../../core/errors.ts";
import { isObject } from "../../wires/fields.ts";
import { upstreamError } from "../../wires/upstream-error.ts";
import { type Headers, toNetworkFailure, toRefusal } from "../http/failure.ts";
import { createScrub, type Scrub, scrubError } from "../http/secrets.ts";

type Fields = Readonly<Record<string, unknown>>;

/** No secret of the options or the environment is told. */
export function createExplain(name: string, options: Fields, environment: Fields): (thrown: unknown) => GatewayError {
  const scrub = createScrub([...secretsIn(options), ...secretsIn(environment)]);
  return (thrown) => {
    if (thrown instanceof GatewayError) return thrown;
    return scrubError(toFailure(thrown, name, scrub), scrub);
  };
}

const secretName = /(key|token|secret|password|credentials?|headers)$/i;

function secretsIn(fields: Fields, isSecret = false): readonly string[] {
  return Object.entries(fields).flatMap(([key, value]) => {
    const isOne = isSecret || secretName.test(key);
    return isObject(value) ? secretsIn(value, isOne) : isOne && typeof value === "string" ? value : [];
  });
}

function toFailure(thrown: unknown, name: string, scrub: Scrub): GatewayError {
  if (!(thrown instanceof Error)) return upstreamError(isObject(thrown) ? (thrown["error"] ?? thrown) : thrown);
  const { message } = thrown;
  // The error itself has the whole request in it.
  const cause = new Error(`${thrown.name}: ${message.slice(0, 500)}`);
  const [, code] = codes.find(([names]) => names.test(thrown.name)) ?? [];
  if (code === "adapter_protocol")
    return new GatewayError(code, "The upstream sent an answer that its package does not understand.", { cause });
  if (code !== undefined) return new GatewayError(code, message, { cause });
  const { statusCode: status, responseHeaders, responseBody, url } = thrown as Error & Fields;
  if (typeof status === "number" && status >= 300)
    return toRefusal(status, (responseHeaders ?? {}) as Headers, String(responseBody ?? ""), scrub);
  const network = networkErrorIn(thrown);
  if (network !== undefined) return toNetworkFailure(network, URL.parse(String(url))?.host ?? name);
  return upstreamError(message, { cause });
}

const codes: readonly (readonly [names: RegExp, code: ErrorCode])[] = [
  [/^AI_UnsupportedFunctionalityError$/, "unsupported_parameter"],
  [/^AI_Invalid(Prompt|Argument)Error$/, "adapter_bad_request"],
  [/^AI_Load(APIKey|Setting)Error$/, "adapter_refused"],
  // Their messages quote what came.
  [/^AI_(InvalidResponseData|JSONParse|TypeValidation|EmptyResponseBody)Error$/, "adapter_protocol"],
];

/** It is somewhere in the chain of causes. */
function networkErrorIn(thrown: unknown): Error | undefined {
  if (!(thrown instanceof Error)) return undefined;
  return "code" in thrown && typeof thrown.code === "string" ? thrown : networkErrorIn(thrown.cause);
}
