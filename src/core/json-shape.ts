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

/** A list in a text, and what is in it; its depth is that of all before its end. */
export interface ListShape extends JsonShape {
  /** Where its first element begins. */
  readonly start: number;
  /** Where its closing bracket is. */
  readonly end: number;
}

/**
 * What the text contains, counted until a limit is exceeded. The text may be anything, JSON or not. If the outermost
 * object has a list of that name, or of one that ends the same after a quote, `list` is the last of them.
 */
export function lookThrough(
  text: string,
  most: Omit<JsonShape, "commas">,
  listName?: string,
): JsonShape & { readonly list?: ListShape | undefined } {
  let level = 0;
  let depth = 0;
  let containers = 0;
  let members = 0;
  let commas = 0;
  let before: Omit<ListShape, "end" | "depth"> | undefined;
  let list: ListShape | undefined;
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
      if (level === 2 && listName !== undefined && character === openList && isNamed(text, at, listName)) {
        before = { start: at + 1, containers, members, commas };
      }
    } else if (character === closeList || character === closeObject) {
      level--;
      if (level !== 1 || before === undefined) continue;
      list = {
        start: before.start,
        end: at,
        depth,
        containers: containers - before.containers,
        members: members - before.members,
        commas: commas - before.commas,
      };
      before = undefined;
    }
  }
  return { depth, containers, members, commas, list };
}

/** What is in a value that was parsed: an entry of a list counts as a comma, and no depth is told. */
export function shapeOf(value: unknown): JsonShape {
  const shape = { depth: 0, containers: 0, members: 0, commas: 0 };
  countParts(value, shape);
  return shape;
}

function countParts(value: unknown, shape: { -readonly [Count in keyof JsonShape]: number }): void {
  if (typeof value !== "object" || value === null) return;
  shape.containers += 1;
  if (Array.isArray(value)) {
    shape.commas += value.length;
    for (const entry of value) countParts(entry, shape);
    return;
  }
  // A list of the values would take three times as long.
  for (const name in value) {
    shape.members += 1;
    countParts(value[name as keyof typeof value], shape);
  }
}

/** What two texts contain together. */
export function addShapes(one: JsonShape, other: JsonShape): JsonShape {
  return {
    depth: Math.max(one.depth, other.depth),
    containers: one.containers + other.containers,
    members: one.members + other.members,
    commas: one.commas + other.commas,
  };
}

/** The memory that the parts of a text will take. */
export function toPartBytes({ containers, members, commas }: JsonShape): number {
  return containers * bytesPerContainer + members * bytesPerMember + commas * bytesPerEntry;
}

const bytesPerContainer = 64;
const bytesPerMember = 64;
const bytesPerEntry = 8;

/**
 * The string that is the outermost object's member of that name, or of one that ends the same after a quote; the last
 * of them. The rest is not parsed, which would take ten times as long. Undefined also if something is left open.
 */
export function findString(text: string, name: string): string | undefined {
  let level = 0;
  let found = "";
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === quote) {
      const end = findEndOfString(text, at);
      if (level === 1 && isNamed(text, at, name)) found = text.slice(at, end + 1);
      at = end;
    } else if (character === openList || character === openObject) level++;
    else if (character === closeList || character === closeObject) level--;
  }
  return found === "" || level !== 0 ? undefined : parseString(found);
}

function parseString(text: string): string | undefined {
  try {
    return String(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Whether what begins here is the value of a member of that name. */
function isNamed(text: string, at: number, name: string): boolean {
  const colonAt = skipBlanksBefore(text, at);
  if (text.charCodeAt(colonAt - 1) !== colon) return false;
  return text.endsWith(`"${name}"`, skipBlanksBefore(text, colonAt - 1));
}

function skipBlanksBefore(text: string, at: number): number {
  let before = at;
  while (text.charCodeAt(before - 1) <= blank) before--;
  return before;
}

/** Far more than any model's answer has: a request's tools, echoed, or log probabilities with many alternatives. */
export const mostInAnswers = { depth: 1_000, containers: 2_000_000, members: 3_000_000 } as const;
/** Beyond so many members they must repeat the same names, as log probabilities do. */
export const mostOfAnyName = 500_000;
export const mostNames = 1_000;

/**
 * Whether a model's text has more nesting, more objects and lists, or more members than an answer may have. To parse 20
 * MB of brackets takes ten seconds, in which nobody else is served; so do 50 MB of members, if each has another name.
 */
export function isExcessive(text: string): boolean {
  if (text.length <= mostInAnswers.depth || !/^\s*[[{]/.test(text)) return false;
  const { depth, containers, members } = lookThrough(text, mostInAnswers);
  const { depth: mostDepth, containers: mostContainers, members: mostMembers } = mostInAnswers;
  if (depth > mostDepth || containers > mostContainers || members > mostMembers) return true;
  return members > mostOfAnyName && hasManyNames(text);
}

function hasManyNames(text: string): boolean {
  const names = new Set<string>();
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) {
    const start = at + 1;
    at = findEndOfString(text, at);
    if (text.charCodeAt(skipBlanksAfter(text, at + 1)) === colon) names.add(text.slice(start, at));
    if (names.size > mostNames) return true;
  }
  return false;
}

function skipBlanksAfter(text: string, at: number): number {
  let after = at;
  while (text.charCodeAt(after) <= blank) after++;
  return after;
}

const blank = 0x20;
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
