/** Makes a value of a body's text, unless it is no JSON, is nested too deeply, or is cut into too many parts. */
import { GatewayError } from "../core/errors.ts";
import { findJsonError } from "./json.ts";
import type { HttpLimits } from "./settings.ts";

/** The value of a body's text. A long text is looked through before it is parsed, since a few bytes can be a whole object. */
export function parseBody(text: string, { maxJsonDepth }: Pick<HttpLimits, "maxJsonDepth">): unknown {
  const isLong = text.length > maxWalked;
  if (isLong) checkShape(text, maxJsonDepth);
  const value = parseJson(text);
  if (!isLong && isDeeper(value, maxJsonDepth)) throw tooDeep(maxJsonDepth);
  return value;
}

/** A shorter text has too few brackets to cost much, and its values are walked through sooner than its characters. */
const maxWalked = 64 * 1024;
/** Each takes about a hundred bytes of memory, whatever it takes in the text; what people say has far fewer of them. */
const maxContainers = 1_000_000;

const quote = 0x22;
const backslash = 0x5c;
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The text may be anything: whether it is JSON is found out by parsing it. */
function checkShape(text: string, maxJsonDepth: number): void {
  let depth = 0;
  let containers = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === quote) at = findEndOfString(text, at);
    else if (character === openList || character === openObject) {
      if (++depth > maxJsonDepth) throw tooDeep(maxJsonDepth);
      if (++containers > maxContainers) throw tooManyContainers();
    } else if (character === closeList || character === closeObject) depth--;
  }
}

/** From quote to quote, because looking for one is many times faster than looking at each character. */
function findEndOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    if ((at - before) % 2 === 0) return at;
  }
  return text.length;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (text.trim() === "") throw new GatewayError("invalid_json", "The request body is empty; send a JSON object.");
    throw new GatewayError("invalid_json", `The request body is not valid JSON: ${findJsonError(text)}.`);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const part of Array.isArray(value) ? value : Object.values(value)) if (isDeeper(part, levels - 1)) return true;
  return false;
}

function tooDeep(maxJsonDepth: number): GatewayError {
  return new GatewayError(
    "json_too_deep",
    `The request body is nested deeper than ${maxJsonDepth} levels (gateway.http.limits.max_json_depth).`,
  );
}

function tooManyContainers(): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The request body has more than ${maxContainers} objects and lists in it. Send less.`,
  );
}
