/** Finds where a text stops being JSON and why; only for texts that JSON.parse refused. */

/** A place beyond it is not worth the time to find it. */
const maxSearched = 1024 * 1024;

/** `unexpected "}" at line 1, column 14`. */
export function findJsonError(text: string): string {
  const searched = text.slice(0, maxSearched);
  const at = findErrorOffset(searched);
  if (at === searched.length && at < text.length) return `somewhere after the first ${maxSearched} characters`;
  const line = searched.slice(0, at).split("\n").length;
  const column = at - searched.lastIndexOf("\n", at - 1);
  const found = searched[at];
  return `unexpected ${found === undefined ? "end" : JSON.stringify(found)} at line ${line}, column ${column}`;
}

// Unrolled, so that a long string is one step of the matcher and not one for every character.
const stringBody = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})[^"\\\x00-\x1f]*)*`;
const patterns = {
  blank: String.raw`[ \t\n\r]*`,
  atom: String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null`,
  string: `${stringBody}"`,
  openString: stringBody,
};

/** What may come next. */
type State = "value" | "first-value" | "first-key" | "key" | "colon" | "after";

function findErrorOffset(text: string): number {
  const open: ("{" | "[")[] = [];
  let state: State = "value";
  let at = 0;
  const matchers = Object.fromEntries(
    Object.entries(patterns).map(([name, pattern]) => [name, new RegExp(pattern, "y")]),
  );

  function skip(name: keyof typeof patterns): boolean {
    const matcher = matchers[name] as RegExp;
    matcher.lastIndex = at;
    const length = matcher.exec(text)?.[0].length ?? 0;
    at += length;
    return length > 0;
  }

  for (;;) {
    skip("blank");
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
      if (!skip("string")) break;
      state = "colon";
    } else if (char === "{" || char === "[") {
      open.push(char);
      at++;
      state = char === "{" ? "first-key" : "first-value";
    } else if (skip("string") || skip("atom")) {
      state = "after";
    } else {
      break;
    }
  }
  // A bad string is reported where it goes wrong, not where it begins.
  skip("openString");
  return at;
}
