/**
 * Removes secrets from a text: from URLs, arguments, headers and connection strings in it. Every expression here scans
 * a text once: none starts again within what it has already tried in vain.
 */
import { namesSecret } from "./path.ts";

/**
 * What remains is of no use to anybody; a reference like `${NAME}` stays as it is written. Among a program's arguments,
 * `before` is the previous one: what follows `--api-key` is a secret.
 */
export function hideSecrets(text: string, before?: unknown): string {
  return hideKnown(text, before).replaceAll(
    /([?&])([^=?&#\s]+)=([^&#\s]+)/g,
    (found, mark: string, name: string, value: string) =>
      harmlessSettings.has(name.toLowerCase()) ? found : `${mark}${name}=${star(value)}`,
  );
}

/** Whether it contains a secret, by name, place or form; `hideSecrets` also hides what only may be one. */
export function holdsSecret(text: string, before?: unknown): boolean {
  return hideKnown(text, before) !== text;
}

/** `***` in place of all but references. */
export function star(text: string): string {
  return text
    .split(/((?<!\$)\$\{[A-Za-z_]\w*\})/)
    .map((part, index) => (index % 2 === 1 || part === "" ? part : "***"))
    .join("");
}

/** Query parameters that may be shown: their names say they are harmless. */
const harmlessSettings: ReadonlySet<string> = new Set([
  "api-version",
  "version",
  "alt",
  "model",
  "deployment",
  "region",
  "prefix",
  "replicas",
]);

function hideKnown(text: string, before: unknown): string {
  const option = typeof before === "string" ? before.trimEnd() : "";
  if (/^--?[^=]+$/.test(option)) {
    if (opens(option)) return star(text);
    if (namesUser(option)) return starPassword(text);
  }
  // The URL of a store in a file.
  if (/^sqlite:[^?\s]*$/.test(text)) return text;
  const shown = text
    .replace(/^(rediss?:\/\/)(\S*)@/, (_, scheme: string, user: string) => `${scheme}${star(user)}@`)
    .replaceAll(/:\/\/([^/?#\s]*)@/g, (_, user: string) => `://${star(user)}@`);
  return hideNamed(shown).replaceAll(knownForm, star);
}

/** Keys recognised by their prefixes. */
const knownForm =
  /(?<![\w-])(?:(?:sk|pk|rk|xai)-(?=[\w-]*\d)[\w-]{8,}|(?:AIza|gsk_|hf_|gh[a-z]_|github_pat_|glpat-|xox[a-z]-)[\w-]{16,}|[spr]k_(?:live|test)_\w{8,}|A[KS]IA[A-Z\d]{12,}|eyJ[\w-]+\.[\w-]+\.[\w-]*)/g;

/** `PASSWORD=…`, `Authorization: Bearer …`, `"api_key": "…"`, `--api-key …` */
function hideNamed(text: string): string {
  let shown = "";
  let from = 0;
  for (const { 0: found, 1: quote = "", 2: name = "", 3: sign = "", index } of text.matchAll(naming)) {
    const begin = index + found.length;
    const isWhole = opens(name);
    if (begin < from || !(isWhole || namesUser(name)) || !assigns(name, sign, text[index - 1])) continue;
    const [start, end] = findValue(text, begin, sign, index === 0 ? undefined : quote);
    const value = text.slice(start, end);
    shown += text.slice(from, start) + (isWhole ? star(value) : starPassword(value));
    from = end;
  }
  return shown + text.slice(from);
}

/** A name, with any quote in front, and what may separate it from its value. */
const naming = /(?<=^|(\\*["'])|[^\w.-])([\w.-]+)(\\*["']?\s*(?:=+>?|:+(?!\/\/))\s*|\s+)/g;

function opens(name: string): boolean {
  return namesSecret(name) || /auth$/i.test(name);
}

/** Options whose value is `name:password`. */
function namesUser(name: string): boolean {
  return /^--?(?:u|user|proxy-user)$/i.test(name);
}

/** Only options and `Bearer` have their value after a space; part of a path or address is no name (`http://key:80`). */
function assigns(name: string, sign: string, previous: string | undefined): boolean {
  if (sign.trim() === "") return /^(?:-|bearer$)/i.test(name);
  return sign !== ":" || !"/@:".includes(previous ?? " ");
}

/** Where a value begins and ends. `quote` is what opens before the name, if any; undefined at the start of the text. */
function findValue(text: string, begin: number, sign: string, quote: string | undefined): readonly [number, number] {
  const isOption = sign.trim() === "";
  if (quote === undefined && !isOption) return [begin, text.length];
  const opened = matchAt(/\\*["']/y, text, begin);
  if (opened !== "") return [begin + opened.length, findQuote(text, begin + opened.length, opened)];
  // A whole header in quotes: `'Authorization: …'`.
  const end = quote === undefined || quote === "" || isOption || /["']/.test(sign) ? -1 : text.indexOf(quote, begin);
  if (end !== -1) return [begin, end];
  const bracket = closing.get(text[begin] ?? "");
  if (bracket !== undefined) {
    const last = text.lastIndexOf(bracket);
    return [begin, last < begin ? text.length : last + matchAt(/.[^\s"'&;,}\]]*/y, text, last).length];
  }
  return [begin, begin + matchAt(/(?:(?:Bearer|Basic|Token|ApiKey)\s+)?[^\s"'&;]+/iy, text, begin).length];
}

/** Where a quoted text ends. A quote with backslashes belongs to a text within a text. */
function findQuote(text: string, start: number, quote: string): number {
  if (quote === '"') return start + matchAt(/(?:[^"\\]+|\\.)*/sy, text, start).length;
  const end = text.indexOf(quote, start);
  return end === -1 ? text.length : end;
}

const closing: ReadonlyMap<string, string> = new Map([
  ["[", "]"],
  ["{", "}"],
]);

function matchAt(expression: RegExp, text: string, index: number): string {
  expression.lastIndex = index;
  return expression.exec(text)?.[0] ?? "";
}

function starPassword(text: string): string {
  const colon = text.indexOf(":") + 1;
  return colon === 0 ? text : text.slice(0, colon) + star(text.slice(colon));
}
