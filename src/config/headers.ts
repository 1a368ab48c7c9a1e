/** Checks values that adapters send as headers: what HTTP cannot carry is reported at loading, not by failing turns. */
import { leavesOf, type Path, valueAt } from "./path.ts";
import { problem, type Problems } from "./problem.ts";
import type { AdapterOptions } from "./schema.ts";

/**
 * An option is a header if its schema says `format: "header"`, and so is everything under `headers`. Provider packages
 * take headers, and the key that becomes one, among options of their own.
 */
export function* judgeHeaders(file: unknown, adapterOptions: AdapterOptions): Problems {
  for (const [path, value] of leavesOf(valueAt(file, adaptersPath), adaptersPath)) {
    const [, , name = "", option = "", ...within] = path;
    const { properties = {} } = adapterOptions[String(valueAt(file, [...adaptersPath, name, "type"]))] ?? {};
    const key = path.at(-1);
    const isNamed = within.length > 0 && path.at(-2) === "headers" && typeof key === "string";
    if (isNamed) yield* judgeName(path, key);
    const isHeader = isNamed || key === "apiKey" || properties[option]?.format === "header";
    const fault = isHeader && typeof value === "string" ? faultOfHeader(value) : undefined;
    if (fault !== undefined) yield problem(path, fault);
  }
}

const adaptersPath = ["gateway", "adapters"];

/** A token is one word in a header: visible ASCII characters. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** What is wrong with the ends of a secret, and what to do; undefined if no white space is around it. */
export function faultAround(text: string): string | undefined {
  if (/[\r\n]$/.test(text)) return 'ends with a newline; remove it, or write {"file": "…"}, which ignores it';
  return text.trim() === text ? undefined : "has whitespace around it; remove it";
}

/** What is wrong with a text for a header or a part of one, and what to do; undefined if it can be sent. */
export function faultOfHeader(text: string): string | undefined {
  const fault = "contains a newline or another character that no header can carry; write it on one line, in Latin-1";
  return faultAround(text) ?? (/[^\t\x20-\x7e\x80-\xff]/.test(text) ? fault : undefined);
}

function* judgeName(path: Path, name: string): Problems {
  if (ofTheConnection.has(name.toLowerCase())) {
    yield problem(path, "belongs to the connection itself, which the gateway manages; leave it out");
  } else if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
    yield problem(path, "not a valid header name; allowed: letters, digits and !#$%&'*+-.^_`|~");
  }
}

const ofTheConnection: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);
