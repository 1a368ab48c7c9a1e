/** Takes secrets out of others' words: our own, and what looks like anybody's. */
import { GatewayError } from "../../core/errors.ts";

export type Scrub = (text: string) => string;

export function createScrub(secrets: readonly string[]): Scrub {
  // Longest first, so that a secret that contains another leaves no remainder.
  const longestFirst = secrets
    // In `Bearer …` the second word is the secret.
    .flatMap((secret) => [secret, ...secret.split(/\s+/)])
    .filter(({ length }) => length >= minLength)
    .toSorted((one, other) => other.length - one.length);
  return (text) => {
    let clean = text;
    for (const secret of longestFirst) clean = clean.replaceAll(secret, "[secret]");
    for (const [pattern, instead] of credentials) clean = clean.replace(pattern, instead);
    return clean;
  };
}

/** Anything shorter is an ordinary word, such as the key `EMPTY`. */
const minLength = 8;

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

/** The same error without secrets, for the caller and, with its cause, for the log. */
export function scrubError(error: GatewayError, scrub: Scrub): GatewayError {
  const { code, message, param, wireCode, retryAfterSeconds, isLasting, cause } = error;
  return new GatewayError(code, scrub(message), {
    ...(param !== null && { param: scrub(param) }),
    wireCode: scrub(wireCode),
    retryAfterSeconds,
    isLasting,
    // The words alone: an error of a library may have raw bytes and headers among its fields.
    ...(cause !== undefined && { cause: new Error(scrub(cause instanceof Error ? cause.message : String(cause))) }),
  });
}
