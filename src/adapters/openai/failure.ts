/** Reads an upstream's error, in the forms that compatible servers write, for the table that says what it means. */
import type { GatewayError } from "../../core/errors.ts";
import { type Scrub, excerpt, toRefusalError, wordsOf } from "../http/refusal.ts";
import { headerOf, type UpstreamResponse } from "../http/upstream.ts";
import { readStart } from "../http/whole.ts";
import { type JsonObject, isObject, listAt, objectAt, parseJson, textAt } from "../json.ts";

/** What an answer with an error status means. */
export async function toRefusal(response: UpstreamResponse, scrub: Scrub): Promise<GatewayError> {
  const { status } = response;
  const text = await readStart(response);
  const fields = readError(text);
  return toRefusalError(
    {
      status,
      ...wordsOf(fields ?? {}),
      isPage: fields === undefined && /^\s*</.test(text),
      retryAfter: headerOf(response, "retry-after"),
      retryAfterMs: headerOf(response, "retry-after-ms"),
      cause: toCause(status, headerOf(response, "location"), text, scrub),
    },
    scrub,
  );
}

/** The error that an answer which began well reports in place of words, or in the way of another wire; nothing if it does not. */
export function errorIn(body: JsonObject): unknown {
  const error = body["error"];
  if (error !== undefined && error !== null) return error;
  return body["object"] === "error" || isBareError(body) ? body : undefined;
}

/** Some servers send an event whose name alone says that it is an error. */
function isBareError(body: JsonObject): boolean {
  if (textAt(body, "message") === undefined || "choices" in body) return false;
  const type = textAt(body, "type");
  return type === undefined ? (body["code"] ?? undefined) !== undefined : /error$/i.test(type);
}

/** For the log: what came, and where it would lead. */
export function toCause(status: number, location: string | undefined, text: string, scrub: Scrub): Error {
  const towards = location === undefined ? "" : ` towards ${excerpt(location, 200, scrub)}`;
  return new Error(`The upstream answered ${status}${towards}: ${excerpt(text, 500, scrub)}`);
}

/** The error object of a body: nested, flat, a string, in a list; nothing when it is no JSON at all. */
function readError(text: string): JsonObject | undefined {
  const parsed = parseJson(text);
  if (parsed === undefined) return undefined;
  // Some servers put their one error into a list.
  const body: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (!isObject(body)) return {};
  const message = textAt(body, "error") ?? textAt(body, "detail") ?? firstDetail(body);
  return objectAt(body, "error") ?? (message === undefined ? body : { ...body, message });
}

/** Validators list what is wrong, each with a `msg`. */
function firstDetail(body: JsonObject): string | undefined {
  const [first] = listAt(body, "detail") ?? [];
  return isObject(first) ? textAt(first, "msg") : undefined;
}
