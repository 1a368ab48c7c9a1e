/** Parses a body's text; refuses it if it is not JSON, is nested too deeply, or has too many parts. */
import { isUtf8 } from "node:buffer";
import { GatewayError } from "../core/errors.ts";
import { addShapes, type JsonShape, type ListShape, lookThrough, toPartBytes } from "../core/json-shape.ts";
import { findJsonError } from "./json.ts";
import type { HttpLimits } from "./settings.ts";

export type ParseLimits = Pick<HttpLimits, "maxJsonDepth">;

/** A body's text, parsed. */
export interface ParsedBody {
  readonly value: unknown;
  /** About how much memory its parts take beside their text. */
  readonly partBytes: number;
}

/** Parses a body's text. It is scanned before it is parsed, since a few bytes can be a whole object. */
export function parseBody(text: string, limits: ParseLimits): ParsedBody {
  const partBytes = toPartBytes(checkText(text, limits));
  return { value: parseJson(text), partBytes };
}

/** The text of a body. Some clients put a byte order mark before it. */
export function decode(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new GatewayError("invalid_json", "The request body is not valid UTF-8.");
  return bytes.toString("utf8", startsWithMark(bytes) ? 3 : 0);
}

function startsWithMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/** Each takes memory, however short its text; real requests have far fewer. */
const maxContainers = 1_000_000;
/** Each has a name, and parsing two million names blocks everybody else for seconds. */
const maxMembers = 500_000;
const mostParts = { containers: maxContainers, members: maxMembers };

/**
 * What is in a text, and in its list of that name. The text need not be JSON: only parsing it will tell. `before` is
 * what else counts.
 */
export function checkText(
  text: string,
  { maxJsonDepth }: ParseLimits,
  listName?: string,
  before?: JsonShape,
): JsonShape & { readonly list?: ListShape | undefined } {
  const found = lookThrough(text, { ...mostParts, depth: maxJsonDepth }, listName);
  const shape = before === undefined ? found : { ...addShapes(before, found), list: found.list };
  checkShape(shape, { maxJsonDepth });
  return shape;
}

/** What is in a text that is checked only later, perhaps under other limits. */
export function measureText(text: string): JsonShape {
  return lookThrough(text, { ...mostParts, depth: Infinity });
}

export function checkShape({ depth, containers, members }: JsonShape, { maxJsonDepth }: ParseLimits): void {
  if (depth > maxJsonDepth) throw tooDeep(maxJsonDepth);
  if (containers > maxContainers) throw tooMany(maxContainers, "objects and lists");
  if (members > maxMembers) throw tooMany(maxMembers, "members of objects");
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (text.trim() === "") throw new GatewayError("invalid_json", "The request body is empty; send a JSON object.");
    throw new GatewayError("invalid_json", `The request body is not valid JSON: ${findJsonError(text)}.`);
  }
}

function tooDeep(maxJsonDepth: number): GatewayError {
  return new GatewayError(
    "json_too_deep",
    `The request body is nested deeper than ${maxJsonDepth} levels (gateway.http.limits.max_json_depth).`,
  );
}

function tooMany(most: number, what: string): GatewayError {
  return new GatewayError("body_too_large", `The request body has more than ${most} ${what} in it. Send less.`);
}
