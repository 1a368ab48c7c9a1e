/** What went wrong at a server or on the way to it, in words that the caller may read, and what to do about it. */
import { GatewayError } from "../../core/errors.ts";
import { refusalError } from "../../wires/upstream-error.ts";
import type { Scrub } from "./secrets.ts";

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** An error status, a redirect, or another kind of content. `body`: how it begins. */
export function toRefusal(status: number, headers: Headers, body: string, scrub: Scrub): GatewayError {
  const location = headerOf(headers, "location");
  const towards = location === "" ? "" : ` towards ${location}`;
  const type = headerOf(headers, "content-type");
  const cause = new Error(scrub(`The upstream answered ${status} ${type}${towards}: ${body}`).slice(0, 600));
  return refusalError({ status, body, retryAfterSeconds: readRetryAfter(headers), cause });
}

/** A header's value, or the first of several. */
export function headerOf(headers: Headers, name: string): string {
  const value = headers[name] ?? "";
  return typeof value === "string" ? value : (value[0] ?? "");
}

/** Whole seconds from now: of a number, a date, or the other header's milliseconds. */
function readRetryAfter(headers: Headers): number | undefined {
  const written = headerOf(headers, "retry-after");
  const untilDate = (Date.parse(written) - Date.now()) / 1_000;
  const inMs = Number.parseFloat(headerOf(headers, "retry-after-ms")) / 1_000;
  const wait = [Number.parseFloat(written), untilDate, inMs].find(Number.isFinite);
  // Rounded up: nobody may come back early.
  return wait === undefined ? undefined : Math.ceil(Math.max(0, wait));
}

export function toNetworkFailure(cause: Error, address: string): GatewayError {
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "unknown cause";
  const where = `The upstream at ${address}`;
  if (code === "UND_ERR_CONNECT_TIMEOUT") {
    const wireCode = "adapter_connect_timeout";
    return new GatewayError("adapter_timeout", `${where} accepted no connection in time.`, { wireCode, cause });
  }
  if (cause.name === "HTTPParserError" || garbled.test(`${code} ${cause.message}`))
    return new GatewayError("adapter_protocol", `${where} does not speak valid HTTP.`, { cause });
  // Agents decide by words whether to try again, and all know "Connection lost".
  if (lost.has(code)) {
    const message = `Connection lost: the upstream at ${address} disconnected before its answer was complete (${code}).`;
    return new GatewayError("adapter_error", message, { cause });
  }
  const [, why] = reasons.find(([codes]) => codes.test(code)) ?? [undefined, "cannot be reached"];
  return new GatewayError("adapter_error", `${where} ${why} (${code}).`, { cause });
}

/** The last two are undici's words for answers with status 100 and 101, under the code of a lost connection. */
const garbled = /^UND_ERR_(HEADERS_OVERFLOW|RES_CONTENT_LENGTH_MISMATCH)\b|bad (response|upgrade)$/;
const lost: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "UND_ERR_SOCKET"]);

const reasons: readonly (readonly [codes: RegExp, why: string])[] = [
  [/^ECONNREFUSED$/, "refuses connections"],
  [/^(ENOTFOUND|EAI_AGAIN)$/, "has a name that cannot be resolved"],
  [/^ENOENT$/, "does not exist: no such socket"],
  [/^UND_ERR_(ABORTED|PRX_CONN)$/, "is behind a proxy that makes no tunnel to it"],
  [/^EPROTO$|WRONG_VERSION|PACKET_LENGTH/, "fails at TLS: if it speaks plain HTTP, write http:// in its URL"],
  [
    /^ERR_(TLS|SSL)_|^CERT_|^UNABLE_TO_|SELF_SIGNED|^HOSTNAME_MISMATCH$/,
    "fails at TLS: if it is yours, set NODE_EXTRA_CA_CERTS to a file with its certificate authority",
  ],
];

export function brokenOff(): GatewayError {
  const message = "Connection lost: the upstream's stream broke off before the end of its answer.";
  return new GatewayError("adapter_protocol", message);
}

export function tooLarge(limit: string): GatewayError {
  const wireCode = "adapter_answer_too_large";
  return new GatewayError("adapter_protocol", `The upstream's answer is larger than ${limit}.`, { wireCode });
}
