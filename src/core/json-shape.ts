/**
 * Inspects JSON text before it is parsed: a few bytes can be a whole object, and deep nesting breaks whoever walks it.
 */

export interface JsonShape {
  /** How deeply it is nested. */
  readonly depth: number;
  /** Objects and lists. */
  readonly containers: number;
  /** Name-value pairs of objects. */
  readonly members: number;
  readonly commas: number;
}

/** What the text contains, counted until a limit is exceeded. The text may be anything, JSON or not. */
export function lookThrough(text: string, most: Omit<JsonShape, "commas">): JsonShape {
  let level = 0;
  let depth = 0;
  let containers = 0;
  let members = 0;
  let commas = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    // Digits are tested first: a list of numbers is almost nothing else.
    if (character < colon) {
      if (character === quote) at = findEndOfString(text, at);
      else if (character === comma) commas++;
    } else if (character === colon) {
      if (++members > most.members) break;
    } else if (character === openList || character === openObject) {
      if (++level > depth && ++depth > most.depth) break;
      if (++containers > most.containers) break;
    } else if (character === closeList || character === closeObject) level--;
  }
  return { depth, containers, members, commas };
}

/** Far more than any model's answer has: a request's tools, echoed, or log probabilities with many alternatives. */
export const mostInAnswers = { depth: 1_000, containers: 2_000_000, members: Infinity } as const;

/**
 * Whether a model's text has more nesting, or more objects and lists, than an answer may have. To parse 20 MB of
 * brackets takes ten seconds, in which nobody else is served.
 */
export function isExcessive(text: string): boolean {
  if (text.length <= mostInAnswers.depth || !/^\s*[[{]/.test(text)) return false;
  const { depth, containers } = lookThrough(text, mostInAnswers);
  return depth > mostInAnswers.depth || containers > mostInAnswers.containers;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Jumps from quote to quote, which is many times faster than examining each character. */
function findEndOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    if ((at - before) % 2 === 0) return at;
  }
  return text.length;
}
