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

const blank = String.raw`[ \t\n\r]*`;
// Unrolled, so that a long string is one step of the matcher and not one for every character.
const openString = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})[^"\\\x00-\x1f]*)*`;
const atom = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null`;
const tokens = new RegExp(`(${blank})(?:([{}[\\],:])|(${openString}")|${atom})`, "gy");

/** What may come next. */
const allowed = {
  value: ["{", "[", "string", "atom"],
  firstValue: ["{", "[", "string", "atom", "]"],
  key: ["string"],
  firstKey: ["string", "}"],
  colon: [":"],
  after: [",", "}", "]"],
};
type State = keyof typeof allowed;

function findErrorOffset(text: string): number {
  const open: ("{" | "[")[] = [];
  let state: State = "value";
  let at = 0;
  for (const [token, before = "", mark, string] of text.matchAll(tokens)) {
    const kind = mark ?? (string === undefined ? "atom" : "string");
    const next: State | undefined = allowed[state].includes(kind) ? toNext(state, kind, open.at(-1)) : undefined;
    if (next === undefined) return at + before.length;
    if (kind === "{" || kind === "[") open.push(kind);
    if (kind === "}" || kind === "]") open.pop();
    state = next;
    at += token.length;
  }
  // A bad string is reported where it goes wrong, not where it begins.
  const rest = new RegExp(allowed[state].includes("string") ? `${blank}(?:${openString})?` : blank, "y");
  rest.lastIndex = at;
  return at + (rest.exec(text)?.[0].length ?? 0);
}

/** Undefined if the container is another, or none is open. */
function toNext(state: State, kind: string, container: "{" | "[" | undefined): State | undefined {
  if (kind === "{") return "firstKey";
  if (kind === "[") return "firstValue";
  if (kind === ":") return "value";
  if (kind === ",") return container && (container === "{" ? "key" : "value");
  if (kind === "}" || kind === "]") return container === (kind === "}" ? "{" : "[") ? "after" : undefined;
  return state === "key" || state === "firstKey" ? "colon" : "after";
}
