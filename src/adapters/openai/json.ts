/** Reads the JSON that an upstream must send. */
import { GatewayError } from "../../core/errors.ts";
import { type Scrub, excerpt } from "../http/refusal.ts";
import { isObject, listAt, parseJson, textAt } from "../json.ts";

export function requireJson(text: string, scrub: Scrub): unknown {
  const value = parseJson(text);
  if (value !== undefined) return value;
  throw new GatewayError("adapter_protocol", "The upstream answered with something that is not JSON.", {
    cause: new Error(`It begins: ${excerpt(text, 200, scrub)}`),
  });
}

/** The names in a list of models; undefined if it is none. */
export function readModelNames(list: unknown): readonly string[] | undefined {
  const entries = isObject(list) ? listAt(list, "data") : undefined;
  return entries?.flatMap((entry) => (isObject(entry) ? (textAt(entry, "id") ?? []) : []));
}

/** Some servers write a call's arguments as an object. */
export function toArgumentsText(written: unknown): string {
  if (typeof written === "string") return written;
  return isObject(written) ? JSON.stringify(written) : "";
}
