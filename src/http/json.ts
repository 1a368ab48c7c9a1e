/** Says where a text stops being JSON and why; only for texts that JSON.parse has refused. */

export interface JsonError {
  readonly line: number;
  readonly column: number;
  readonly problem: string;
}

export function findJsonError(text: string): JsonError {
  const at = findErrorOffset(text);
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - before.lastIndexOf("\n");
  const found = text[at];
  return { line, column, problem: found === undefined ? "unexpected end" : `unexpected ${JSON.stringify(found)}` };
}

const blank = /[ \t\n\r]*/y;
const atom = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"/y;

/** What may come next, as a pushdown of the containers that are open. */
type State = "value" | "first-value" | "first-key" | "key" | "colon" | "after";

function findErrorOffset(text: string): number {
  const open: ("{" | "[")[] = [];
  let state: State = "value";
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const length = pattern.exec(text)?.[0].length ?? 0;
    at += length;
    return length > 0;
  };

  for (;;) {
    skip(blank);
    const char = text[at];
    if (char === undefined) return at;
    if (state === "after") {
      const container = open.at(-1);
      if (container === undefined) return at;
      if (char === ",") state = container === "{" ? "key" : "value";
      else if (char === (container === "{" ? "}" : "]")) open.pop();
      else return at;
      at++;
    } else if (state === "colon") {
      if (char !== ":") return at;
      at++;
      state = "value";
    } else if ((state === "first-key" && char === "}") || (state === "first-value" && char === "]")) {
      open.pop();
      at++;
      state = "after";
    } else if (state === "key" || state === "first-key") {
      if (!skip(string)) return endOfBadString(text, at);
      state = "colon";
    } else if (char === "{" || char === "[") {
      open.push(char);
      at++;
      state = char === "{" ? "first-key" : "first-value";
    } else if (skip(string) || skip(atom)) {
      state = "after";
    } else {
      return endOfBadString(text, at);
    }
  }
}

const stringStart = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*/y;

/** A string that does not end well is wrong where it goes wrong, not where it begins. */
function endOfBadString(text: string, at: number): number {
  stringStart.lastIndex = at;
  return at + (stringStart.exec(text)?.[0].length ?? 0);
}
