/** Reads the JSON that an upstream must send. */
import { GatewayError } from "../../core/errors.ts";
import { isExcessive, mostInAnswers } from "../../core/json-shape.ts";
import { type Scrub, excerpt } from "../http/refusal.ts";
import { isObject, textAt } from "../json.ts";

export function requireJson(text: string, scrub: Scrub): unknown {
  if (isExcessive(text)) throw tooMuch();
  try {
    return JSON.parse(text);
  } catch {
    throw new GatewayError("adapter_protocol", "The upstream answered with something that is not JSON.", {
      cause: new Error(`It begins: ${excerpt(text, 200, scrub)}`),
    });
  }
}

function tooMuch(): GatewayError {
  const { depth, containers } = mostInAnswers;
  return new GatewayError(
    "adapter_protocol",
    `The upstream's answer is nested deeper than ${depth} levels, or has more than ${containers} objects and lists or too many names in it.`,
    { wireCode: "adapter_answer_too_large" },
  );
}

/** The names in a list of models, which some servers send alone; undefined if it is none. */
export function readModelNames(list: unknown): readonly string[] | undefined {
  const entries: unknown = isObject(list) ? list["data"] : list;
  if (!Array.isArray(entries)) return undefined;
  return entries.flatMap((entry: unknown) => (isObject(entry) ? (textAt(entry, "id") ?? []) : []));
}

/** Some servers write a call's arguments as an object. */
export function toArgumentsText(written: unknown): string {
  if (typeof written === "string") return written;
  return isObject(written) ? JSON.stringify(written) : "";
}
