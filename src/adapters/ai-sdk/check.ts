/** Checks what a package returns before using it: anyone may have made it, and only its types promise the shape. */
import { inspect } from "node:util";
import { GatewayError } from "../../core/errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { StreamPart } from "./spec.ts";

/** The part, or its failure in its place, so that what was said before it is sent first. */
export function checkPart(part: unknown): StreamPart {
  return isPart(part) ? part : { type: "error", error: unfit("a part of an answer", part) };
}

export function checkStream(given: { readonly stream: ReadableStream<StreamPart> }): ReadableStream<StreamPart> {
  const found: unknown = given;
  const stream = isObject(found) ? found["stream"] : undefined;
  if (isObject(stream) && typeof stream["getReader"] === "function") return given.stream;
  throw unfit("a stream", found);
}

function isPart(part: unknown): part is StreamPart & JsonObject {
  return isObject(part) && (textsOf.get(part["type"]) ?? []).every((key) => typeof part[key] === "string");
}

/** The string fields that we rely on, by type of part. */
const textsOf: ReadonlyMap<unknown, readonly string[]> = new Map<unknown, readonly string[]>(
  Object.entries({
    "text-delta": ["delta"],
    "reasoning-start": ["id"],
    "reasoning-delta": ["id", "delta"],
    "reasoning-end": ["id"],
    "tool-input-start": ["id", "toolName"],
    "tool-input-delta": ["id", "delta"],
    "tool-call": ["toolCallId", "toolName", "input"],
  } satisfies Partial<Record<StreamPart["type"], readonly string[]>>),
);

/** What was found may be anything, so it goes only to the log. */
function unfit(wanted: string, found: unknown): GatewayError {
  return new GatewayError("adapter_protocol", `The upstream's package returned something that is not ${wanted}.`, {
    cause: new Error(`It is not ${wanted}: ${inspect(found, { depth: 0 }).slice(0, 200)}`),
  });
}
