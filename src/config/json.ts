/** Reads JSON in which a person may also write comments and trailing commas, and says where it went wrong. */

export type ParsedJson = { readonly value: unknown } | { readonly fault: string };

/** The value, or the first fault with its line and column. The text itself is never quoted: it may hold secrets. */
export function parseJson(text: string): ParsedJson {
  try {
    return { value: createReader(text).readFile() };
  } catch (thrown) {
    if (!(thrown instanceof JsonFault)) throw thrown;
    const before = text.slice(0, thrown.position).split("\n");
    return { fault: `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${thrown.message}` };
  }
}

/** Happens when the text is not JSON; carries the place. */
class JsonFault extends Error {
  override readonly name = "JsonFault";
  readonly position: number;

  constructor(position: number, message: string) {
    super(message);
    this.position = position;
  }
}

const maxDepth = 100;
const blank = /(?:[ \t\r\n\uFEFF]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const quoted = /"(?:[^"\\\n]|\\.)*"/y;
const bare = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

function createReader(text: string) {
  let position = 0;

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) position += found.length;
    return found;
  }

  /** The next character that means something. */
  function peek(): string | undefined {
    take(blank);
    if (text.startsWith("/*", position)) throw new JsonFault(position, "this comment is not closed");
    return text[position];
  }

  function expected(what: string): JsonFault {
    const reason = position >= text.length ? "the file ends here" : "something else stands here";
    return new JsonFault(position, `expected ${what}, but ${reason}`);
  }

  function readString(what: string): string {
    const start = position;
    const found = take(quoted);
    if (found === undefined && text[position] === '"') throw new JsonFault(start, "this string is not closed");
    if (found === undefined) throw expected(what);
    try {
      return JSON.parse(found) as string;
    } catch {
      throw new JsonFault(start, "this string has a character that must be escaped, or a wrong escape");
    }
  }

  function readValue(depth: number): unknown {
    if (depth > maxDepth) throw new JsonFault(position, `nested more than ${maxDepth} deep`);
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
    position++;
    while (peek() !== "}") {
      const start = position;
      const key = readString("a key in double quotes, or }");
      if (entries.has(key)) throw new JsonFault(start, "this key stands here for the second time");
      if (peek() !== ":") throw expected("a colon");
      position++;
      entries.set(key, readValue(depth + 1));
      if (!separates("}")) throw expected("a comma or }");
    }
    position++;
    return Object.fromEntries(entries);
  }

  function readList(depth: number): unknown[] {
    const values: unknown[] = [];
    position++;
    while (peek() !== "]") {
      values.push(readValue(depth + 1));
      if (!separates("]")) throw expected("a comma or ]");
    }
    position++;
    return values;
  }

  /** Steps over a comma; the end needs none. */
  function separates(end: string): boolean {
    const next = peek();
    if (next === ",") position++;
    return next === "," || next === end;
  }

  return {
    readFile(): unknown {
      const value = readValue(0);
      if (peek() !== undefined) throw new JsonFault(position, "expected the end of the file, but more stands here");
      return value;
    },
  };
}
