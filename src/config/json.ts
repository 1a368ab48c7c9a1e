/** Parses JSON that may have comments and trailing commas, and says where it is wrong. */
import { ConfigError, problem } from "./problem.ts";

const maxDepth = 100;
const blank = /(?:[ \t\r\n\uFEFF]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const quoted = /"(?:[^"\\\n]|\\.)*"/y;
const bare = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Throws the first error, with line and column. The text itself is never quoted: it may contain secrets. */
export function parseJson(text: string): unknown {
  let position = 0;

  function fault(what: string, at = position): ConfigError {
    const before = text.slice(0, at).split("\n");
    const column = (before.at(-1)?.length ?? 0) + 1;
    return new ConfigError([problem([], `not valid JSON: line ${before.length}, column ${column}: ${what}`)]);
  }

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) position += found.length;
    return found;
  }

  /** The next character that is not blank. */
  function peek(): string | undefined {
    take(blank);
    if (text.startsWith("/*", position)) throw fault("this comment is not closed");
    return text[position];
  }

  function expected(what: string): ConfigError {
    return fault(`expected ${what}, but ${describeFound(text[position])} here`);
  }

  function readString(what: string): string {
    const start = position;
    const found = take(quoted);
    if (found === undefined) throw text[position] === '"' ? fault("this string is not closed") : expected(what);
    try {
      return JSON.parse(found) as string;
    } catch {
      throw fault("this string has a character that must be escaped, or an invalid escape", start);
    }
  }

  function readValue(depth: number): unknown {
    if (depth > maxDepth) throw fault(`nested more than ${maxDepth} deep`);
    const next = peek();
    if (next === "{") return readObject(depth);
    if (next === "[") return readList(depth);
    if (next === '"') return readString("a string");
    const found = take(bare);
    if (found === undefined) throw expected("a value");
    return JSON.parse(found);
  }

  function readObject(depth: number): Record<string, unknown> {
    const entries = new Map<string, unknown>();
    readEach("}", () => {
      const start = position;
      const key = readString("a key in double quotes, or }");
      if (entries.has(key)) throw fault("this key is here for the second time", start);
      if (peek() !== ":") throw expected("a colon");
      position++;
      entries.set(key, readValue(depth + 1));
    });
    return Object.fromEntries(entries);
  }

  function readList(depth: number): unknown[] {
    const values: unknown[] = [];
    readEach("]", () => values.push(readValue(depth + 1)));
    return values;
  }

  /** Everything up to the closing bracket, separated by commas; the last may have one too. */
  function readEach(end: string, readOne: () => unknown): void {
    position++;
    while (peek() !== end) {
      readOne();
      const next = peek();
      if (next === ",") position++;
      else if (next !== end) throw expected(`a comma or ${end}`);
    }
    position++;
  }

  const value = readValue(0);
  if (peek() !== undefined) throw fault("expected the end of the file, but there is more here");
  return value;
}

/** What kind of character is in the wrong place. */
function describeFound(character: string | undefined): string {
  if (character === undefined) return "the file ends";
  if (character === '"') return "a string is";
  if (/['`\u2018-\u201f]/.test(character)) return 'a quotation mark other than " is';
  if (/[\0\ufffd]/.test(character)) return "a byte that is not UTF-8 text (save the file as UTF-8) is";
  return /\p{L}/u.test(character) ? "a word without quotation marks is" : "something else is";
}
