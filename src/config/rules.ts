/** What the schema cannot check: rules between keys, and the forms of addresses, dates and names. */
import { hash } from "node:crypto";
import { judgeAddress, judgeProxy } from "./address.ts";
import { faultAround, isToken } from "./headers.ts";
import { formatPath, isObject, type Path, valueAt } from "./path.ts";
import { misfit, problem, type Problems } from "./problem.ts";
import type { Shown } from "./references.ts";
import { judgeStore } from "./store.ts";

/** Problems between keys. The file may have others too, so nothing is assumed but that `gateway` is an object. */
export function* findConflicts(file: unknown, shown: Shown): Problems {
  yield* judgeForms(file, shown);
  yield* judgeTokens(file, shown);
  yield* judgeRate(file, ["gateway", "http", "limits"]);
  yield* judgeAdapterNames(file, shown);
}

/** Texts must have the form of their places. */
function* judgeForms(file: unknown, shown: Shown): Problems {
  for (const [path, judge] of [
    [["gateway", "http", "bind"], judgeAddress],
    ...entriesAt(file, ["gateway", "http", "trusted_proxies"]).map(([path]) => [path, judgeProxy] as const),
    ...entriesAt(file, ["gateway", "http", "cors", "origins"]).map(([path]) => [path, judgeOrigin] as const),
    [["gateway", "sessions", "store"], judgeStore],
  ] as const) {
    const text = valueAt(file, path);
    const allowed = typeof text === "string" ? judge(text) : undefined;
    if (allowed !== undefined) yield misfit(path, shown(path, text), allowed);
  }
}

function judgeOrigin(text: string): string | undefined {
  const isOrigin = URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;
  return isOrigin ? undefined : 'an exact origin like "https://app.example.com", without a path';
}

const lonely = [
  ["gateway", "auth", "token"],
  ["gateway", "http", "auth_token"],
] as const satisfies readonly Path[];

function* judgeTokens(file: unknown, shown: Shown): Problems {
  const named = namedTokens(file);
  for (const [path, token] of named) if (isObject(token)) yield* judgeNamed(file, path, token, shown);
  for (const [path, token] of tokensOf(file)) {
    if (token === "") yield misfit(path, token, "a long random token (`portico token make` makes one)");
    else if (!isToken(token)) {
      const fault = "contains a space or a character that no header can carry; allowed: visible ASCII characters";
      yield problem(path, faultAround(token) ?? fault);
    }
  }
  if (named.length === 0 && lonely.every((path) => valueAt(file, path) === undefined)) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    yield problem(["gateway"], `no token is set, and one is always required; ${remedy}`);
  }
  yield* findRepeated(file);
}

function* judgeNamed(file: unknown, path: Path, token: Readonly<Record<string, unknown>>, shown: Shown): Problems {
  yield* judgeRate(file, [...path, "limits"]);
  if (token.name === "default") {
    yield problem([...path, "name"], "'default' is the owner of the tokens without a name; choose another name");
  }
  const given = ["token", "sha256"].filter((key) => token[key] !== undefined);
  if (given.length === 2) yield problem(path, "has both 'token' and 'sha256'; allowed: one of them");
  if (given.length === 0) yield problem(path, "has neither 'token' nor 'sha256'; required: one of them");
  const expires = token.expires_at;
  if (typeof expires === "string" && /^\d{4}-\d{2}-\d{2}T/.test(expires) && !isDate(expires)) {
    const place = [...path, "expires_at"];
    yield misfit(place, shown(place, expires), "a date and time that exists");
  }
}

/** `Date` would read 30 February as 2 March. */
function isDate(text: string): boolean {
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  const exists = !Number.isNaN(day) && new Date(day).toISOString().slice(0, 10) === text.slice(0, 10);
  return exists && !Number.isNaN(Date.parse(text));
}

function* findRepeated(file: unknown): Problems {
  const tokens = tokensOf(file).filter(([, token]) => token !== "");
  const digests = [
    ...tokens.map(([path, token]) => [path, hash("sha256", token, "hex")] as const),
    ...ofNamed(file, "sha256").map(([path, digest]) => [path, digest.toLowerCase()] as const),
  ];
  const firsts = new Map<string, Path>();
  for (const [path, digest] of digests) {
    const first = firsts.get(digest);
    if (first === undefined) firsts.set(digest, path);
    else yield problem(path, `the same token as ${formatPath(first)}; every token needs its own value`);
  }
}

function* judgeRate(file: unknown, path: Path): Problems {
  const isRateless = valueAt(file, [...path, "requests_per_minute"]) === undefined;
  if (!isRateless || valueAt(file, [...path, "burst"]) === undefined) return;
  yield problem([...path, "burst"], "has no effect without 'requests_per_minute' beside it");
}

/** Adapters that are named elsewhere must exist. */
function* judgeAdapterNames(file: unknown, shown: Shown): Problems {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return;
  const names = Object.keys(adapters);
  const path = ["gateway", "default_adapter"];
  const chosen = valueAt(file, path);
  if (chosen !== undefined) yield* judgeName(path, chosen, names, shown, "gateway.adapters has none");
  else if (names.length > 1) yield problem(path, `missing; required with several adapters: ${names.join(", ")}`);
  const models = valueAt(file, ["gateway", "models"]);
  for (const [model, name] of Object.entries(isObject(models) ? models : {})) {
    yield* judgeName(["gateway", "models", model], name, names, shown);
  }
  for (const adapter of names) {
    const others = names.filter((name) => name !== adapter);
    for (const [path, name] of entriesAt(file, ["gateway", "adapters", adapter, "fallback"])) {
      yield* judgeName(path, name, others, shown);
    }
  }
}

function* judgeName(
  path: Path,
  name: unknown,
  known: readonly string[],
  shown: Shown,
  whyNone = "there is no other adapter",
): Problems {
  if (typeof name !== "string" || known.includes(name)) return;
  yield misfit(path, shown(path, name), known.length === 0 ? `nothing, because ${whyNone}` : known.join(", "));
}

/** Every token in plain text, with its path. */
export function tokensOf(file: unknown): readonly Entry<string>[] {
  return [...textsAt(file, lonely), ...ofNamed(file, "token")];
}

function ofNamed(file: unknown, key: "token" | "sha256"): readonly Entry<string>[] {
  const paths = namedTokens(file).map(([path]) => path.concat(key));
  return textsAt(file, paths);
}

function namedTokens(file: unknown): readonly Entry[] {
  return entriesAt(file, ["gateway", "http", "tokens"]);
}

type Entry<Value = unknown> = readonly [path: Path, value: Value];

/** The entries of a list with their paths; none if it is not a list, which the schema reports. */
function entriesAt(file: unknown, path: Path): readonly Entry[] {
  const list = valueAt(file, path);
  return Array.isArray(list) ? list.map((value: unknown, index) => [[...path, index], value] as const) : [];
}

function textsAt(file: unknown, paths: readonly Path[]): readonly Entry<string>[] {
  return paths.map((path) => [path, valueAt(file, path)] as const).filter(isText);
}

function isText(entry: Entry): entry is Entry<string> {
  return typeof entry[1] === "string";
}
