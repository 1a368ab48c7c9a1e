/** Values that adapters send as headers: what HTTP cannot carry is told when the file is read, not by every turn that fails. */
import { isObject, type Path, valueAt } from "./path.ts";
import { problem, type Problem } from "./problem.ts";
import type { AdapterOptions } from "./schema.ts";

/** An option is a header where its schema says `format: "header"`, and all that stands under `headers` is one. */
export function judgeHeaders(file: unknown, adapterOptions: AdapterOptions): readonly Problem[] {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return [];
  return Object.entries(adapters).flatMap(([name, adapter]) => {
    if (!isObject(adapter)) return [];
    const forms = adapterOptions[String(adapter.type)]?.properties ?? {};
    return Object.entries(adapter).flatMap(([key, value]) => {
      const path = ["gateway", "adapters", name, key];
      return forms[key]?.format === "header" ? judgeValue(path, value) : judgeWithin(path, value);
    });
  });
}

/** A token travels in a header, and is one word there: visible ASCII characters. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** What is wrong with the ends of a secret, and what to do; nothing: it has no white space around it. */
export function faultAround(text: string): string | undefined {
  if (/[\r\n]$/.test(text)) return 'ends with a line end; take it off, or write {"file": "…"}, which leaves it out';
  return text.trim() === text ? undefined : "has white space around it; take it off";
}

/** What is wrong with a text that shall be all or a part of a header, and what to do; nothing: it can be sent. */
export function faultOfHeader(text: string): string | undefined {
  const fault = faultAround(text);
  if (fault !== undefined) return fault;
  if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
    return "has a line end or another character within it that no header can carry; write it on one line, in Latin-1";
  }
  return undefined;
}

/** Packages of providers take their headers, and the key that becomes one, among options of their own. */
function judgeWithin(path: Path, value: unknown): readonly Problem[] {
  if (path.at(-1) === "apiKey") return judgeValue(path, value);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const place = path.concat(key);
    return path.at(-1) === "headers"
      ? judgeName(place, key).concat(judgeValue(place, inner))
      : judgeWithin(place, inner);
  });
}

function judgeValue(path: Path, value: unknown): readonly Problem[] {
  const fault = typeof value === "string" ? faultOfHeader(value) : undefined;
  return fault === undefined ? [] : [problem(path, fault)];
}

function judgeName(path: Path, name: string): readonly Problem[] {
  if (ofTheConnection.has(name.toLowerCase())) {
    return [problem(path, "belongs to the connection itself, which the gateway looks after; leave it out")];
  }
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return [];
  return [problem(path, "no name that a header can have; allowed: letters, digits and !#$%&'*+-.^_`|~")];
}

const ofTheConnection: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);
