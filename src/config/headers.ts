/** Checks values that adapters send as headers: what HTTP cannot carry is reported at loading, not by failing turns. */
import { isObject, type Path, valueAt } from "./path.ts";
import { problem, type Problems } from "./problem.ts";
import type { AdapterOptions } from "./schema.ts";

/** An option is a header if its schema says `format: "header"`, and so is everything under `headers`. */
export function* judgeHeaders(file: unknown, adapterOptions: AdapterOptions): Problems {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return;
  for (const [name, adapter] of Object.entries(adapters)) {
    if (!isObject(adapter)) continue;
    const forms = adapterOptions[String(adapter.type)]?.properties ?? {};
    for (const [key, value] of Object.entries(adapter)) {
      const path = ["gateway", "adapters", name, key];
      yield* forms[key]?.format === "header" ? judgeValue(path, value) : judgeWithin(path, value);
    }
  }
}

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

/** Provider packages take headers, and the key that becomes one, among options of their own. */
function* judgeWithin(path: Path, value: unknown): Problems {
  if (path.at(-1) === "apiKey") yield* judgeValue(path, value);
  else if (isObject(value)) {
    for (const [key, inner] of Object.entries(value)) {
      const place = [...path, key];
      if (path.at(-1) !== "headers") yield* judgeWithin(place, inner);
      else {
        yield* judgeName(place, key);
        yield* judgeValue(place, inner);
      }
    }
  }
}

function* judgeValue(path: Path, value: unknown): Problems {
  const fault = typeof value === "string" ? faultOfHeader(value) : undefined;
  if (fault !== undefined) yield problem(path, fault);
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
