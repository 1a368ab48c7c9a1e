/** Parses a body's text; refuses it if it is not JSON, is nested too deeply, or has too many parts. */
import { GatewayError } from "../core/errors.ts";
import { lookThrough } from "../core/json-shape.ts";
import { findJsonError } from "./json.ts";
import type { HttpLimits } from "./settings.ts";

/** A body's text, parsed. */
export interface ParsedBody {
  readonly value: unknown;
  /** About how much memory its parts take beside their text. */
  readonly partBytes: number;
}

/** Parses a body's text. It is scanned before it is parsed, since a few bytes can be a whole object. */
export function parseBody(text: string, { maxJsonDepth }: Pick<HttpLimits, "maxJsonDepth">): ParsedBody {
  const partBytes = checkShape(text, maxJsonDepth);
  return { value: parseJson(text), partBytes };
}

/** Each takes memory, however short its text; real requests have far fewer. */
const maxContainers = 1_000_000;
const bytesPerContainer = 64;
/** Each has a name, and parsing two million names blocks everybody else for seconds. */
const maxMembers = 500_000;
const bytesPerMember = 64;
const bytesPerEntry = 8;

/** Returns the memory that the text's parts will take. The text need not be JSON: only parsing it will tell. */
function checkShape(text: string, maxJsonDepth: number): number {
  const shape = lookThrough(text, { depth: maxJsonDepth, containers: maxContainers, members: maxMembers });
  if (shape.depth > maxJsonDepth) throw tooDeep(maxJsonDepth);
  if (shape.containers > maxContainers) throw tooMany(maxContainers, "objects and lists");
  if (shape.members > maxMembers) throw tooMany(maxMembers, "members of objects");
  return shape.containers * bytesPerContainer + shape.members * bytesPerMember + shape.commas * bytesPerEntry;
}

function parseJson(text: string): unknown {
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
