/** What an answer means that is no answer: an error status, a redirect, or another kind of content. */
import { GatewayError } from "../../core/errors.ts";
import { refusalError } from "../../wires/upstream-error.ts";
import type { Scrub } from "./secrets.ts";

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** `body`: how it begins. */
export function toRefusal(status: number, headers: Headers, body: string, scrub: Scrub): GatewayError {
  const location = headerOf(headers, "location");
  const towards = location === "" ? "" : ` towards ${location}`;
  const cause = new Error(scrub(`The upstream answered ${status}${towards}: ${body}`).slice(0, maxCauseLength));
  const retryAfterSeconds = readRetryAfter(headers, Date.now());
  return refusalError({ status, body, retryAfterSeconds, cause });
}

/** None of its words reach the caller: they are the log's. */
export function toForeign(type: string, body: string, scrub: Scrub): GatewayError {
  const found = /^[\w.+/-]{1,80}$/.test(type) ? type : "an unknown content type";
  return new GatewayError(
    "adapter_protocol",
    `The upstream answered with ${found} instead of JSON or server-sent events. Check the adapter's base_url.`,
    { cause: new Error(scrub(`It begins: ${body}`).slice(0, maxCauseLength)) },
  );
}

const maxCauseLength = 600;

/** A header's value, or the first of several. */
export function headerOf(headers: Headers, name: string): string {
  const value = headers[name] ?? "";
  return typeof value === "string" ? value : (value[0] ?? "");
}

/** Whole seconds from now: of a number, a date, or the other header's milliseconds. */
function readRetryAfter(headers: Headers, now: number): number | undefined {
  const written = headerOf(headers, "retry-after");
  // A date goes by the clock of the server that sent it.
  const untilDate = (Date.parse(written) - (Date.parse(headerOf(headers, "date")) || now)) / 1_000;
  const inMs = readNumber(headerOf(headers, "retry-after-ms")) / 1_000;
  const wait = [readNumber(written), untilDate, inMs].find(Number.isFinite);
  // Rounded up: nobody may come back early.
  return wait === undefined ? undefined : Math.ceil(Math.max(0, wait));
}

function readNumber(text: string): number {
  return text === "" ? NaN : Number(text);
}
