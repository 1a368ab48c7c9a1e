/** Reads an upstream's error, in any form that compatible servers use, for the table of refusals. */
import type { GatewayError } from "../../core/errors.ts";
import { type Scrub, excerpt, toRefusalError, wordsOf } from "../http/refusal.ts";
import { headerOf, type UpstreamResponse } from "../http/upstream.ts";
import { readStart } from "../http/whole.ts";
import { type JsonObject, isObject, listAt, objectAt, parseJson, textAt } from "../json.ts";

/** What an answer with an error status means. */
export async function toRefusal(response: UpstreamResponse, scrub: Scrub): Promise<GatewayError> {
  const { status } = response;
  const text = await readStart(response);
  return toRefusalError(
    {
      status,
      ...wordsOf(readError(text)),
      body: text,
      retryAfter: headerOf(response, "retry-after"),
      retryAfterMs: headerOf(response, "retry-after-ms"),
      date: headerOf(response, "date"),
      cause: toCause(status, headerOf(response, "location"), text, scrub),
    },
    scrub,
  );
}

/** The error that an answer which began well reports instead of words, or in another wire's form; undefined if none. */
export function errorIn(body: JsonObject): unknown {
  const error = body["error"];
  if (error !== undefined && error !== null) return error;
  return body["object"] === "error" || isBareError(body) ? body : undefined;
}

/** Some servers mark an error only by the event's name. */
function isBareError(body: JsonObject): boolean {
  if (textAt(body, "message") === undefined || "choices" in body) return false;
  const type = textAt(body, "type");
  return type === undefined ? (body["code"] ?? undefined) !== undefined : /error$/i.test(type);
}

/** For the log: the body, and a redirect's target. */
export function toCause(status: number, location: string | undefined, text: string, scrub: Scrub): Error {
  const towards = location === undefined ? "" : ` towards ${excerpt(location, 200, scrub)}`;
  return new Error(`The upstream answered ${status}${towards}: ${excerpt(text, 500, scrub)}`);
}

/** The error object of a body: nested, flat, a string, or in a list; empty if it is not JSON. */
function readError(text: string): JsonObject {
  const parsed = parseJson(text);
  // Some servers put their one error into a list.
  const body: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (!isObject(body)) return {};
  const message = textAt(body, "error") ?? textAt(body, "detail") ?? firstDetail(body) ?? innerDetail(body);
  return objectAt(body, "error") ?? (message === undefined ? body : { ...body, message });
}

/** Validators list what is wrong, each with a `msg`, and where it is. */
function firstDetail(body: JsonObject): string | undefined {
  const [first] = listAt(body, "detail") ?? [];
  const said = isObject(first) ? textAt(first, "msg") : undefined;
  const place = isObject(first) ? (listAt(first, "loc") ?? []).filter((step) => step !== "body").join(".") : "";
  return said === undefined || place === "" ? said : `${place}: ${said}`;
}

/** Some servers put that list where others have the message. */
function innerDetail(body: JsonObject): string | undefined {
  const message = objectAt(body, "message");
  return message && firstDetail(message);
}
