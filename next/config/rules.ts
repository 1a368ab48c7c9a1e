/** Rules between keys: tokens that exist once, adapters that are named rightly. */
import { hash } from "node:crypto";
import { isObject, formatPath, type Path, problem } from "./problem.ts";
import { type Reading, wrong } from "./read.ts";

/** Of the whole file as it was read; what is wrong in itself was told already. */
export function checkRules(file: unknown, reading: Reading): void {
  checkTokens(file, reading);
  checkNames(file, reading);
  const namedLimits = entriesAt(file, tokensPath).map(([path]) => [...path, "limits"]);
  for (const path of [["gateway", "http", "limits"], ...namedLimits]) {
    if (at(file, [...path, "burst"]) === undefined || at(file, [...path, "requests_per_minute"]) !== undefined)
      continue;
    tell([...path, "burst"], "has no effect without `requests_per_minute` beside it", reading);
  }
}

function tell(path: Path, message: string, { problems }: Reading): void {
  problems.push(problem(path, message));
}

const tokensPath = ["gateway", "http", "tokens"];
const unnamedPaths = [
  ["gateway", "auth", "token"],
  ["gateway", "http", "auth_token"],
];

function checkTokens(file: unknown, reading: Reading): void {
  const named = entriesAt(file, tokensPath);
  for (const [path, token] of named) {
    const given = ["token", "sha256"].filter((key) => at(token, [key]) !== undefined);
    if (!isObject(token) || given.length === 1) continue;
    tell(
      path,
      `has ${given.length === 0 ? "neither" : "both"} of 'token' and 'sha256'; required: one of them`,
      reading,
    );
  }
  if (named.length === 0 && [...unnamedPaths, tokensPath].every((path) => !isSet(at(file, path)))) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    tell(["gateway"], `no token is set, and one is always required; ${remedy}`, reading);
  }
  const firsts = new Map<string, Path>();
  for (const [path, digest] of digestsOf(file)) {
    const first = firsts.get(digest);
    if (first === undefined) firsts.set(digest, path);
    else tell(path, `the same token as ${formatPath(first)}; every token needs a value of its own`, reading);
  }
}

function isSet(value: unknown): boolean {
  return value === wrong || typeof value === "string";
}

function digestsOf(file: unknown): readonly (readonly [Path, string])[] {
  const digests = entriesAt(file, tokensPath).flatMap(([path, token]): (readonly [Path, string])[] => {
    const digest = at(token, ["sha256"]);
    return typeof digest === "string" ? [[[...path, "sha256"], digest.toLowerCase()]] : [];
  });
  return [...tokensOf(file).map(([path, token]) => [path, hash("sha256", token)] as const), ...digests];
}

/** Every token in plain text, with its path. */
export function tokensOf(file: unknown): readonly (readonly [path: Path, token: string])[] {
  const paths = [...unnamedPaths, ...entriesAt(file, tokensPath).map(([path]) => [...path, "token"])];
  return paths.flatMap((path) => {
    const token = at(file, path);
    return typeof token === "string" ? [[path, token] as const] : [];
  });
}

/** Adapters that are named somewhere must be there. */
function checkNames(file: unknown, reading: Reading): void {
  const adapters = at(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return;
  const known = Object.keys(adapters);
  const check = (path: Path, name: unknown, allowed: readonly string[]): void => {
    if (typeof name !== "string" || allowed.includes(name)) return;
    const found = reading.written.get(formatPath(path)) ?? name;
    const others = allowed.length === 0 ? "nothing, because there is no other adapter" : allowed.join(", ");
    tell(path, `found ${JSON.stringify(found)}; allowed: ${others}`, reading);
  };
  const chosen = ["gateway", "default_adapter"];
  if (known.length > 1 && at(file, chosen) === undefined) {
    tell(chosen, `missing; required with several adapters: ${known.join(", ")}`, reading);
  }
  check(chosen, at(file, chosen), known);
  for (const [path, name] of entriesAt(file, ["gateway", "models"])) check(path, name, known);
  for (const adapter of known) {
    const others = known.filter((name) => name !== adapter);
    const fallback = entriesAt(file, ["gateway", "adapters", adapter, "fallback"]);
    for (const [path, name] of fallback) check(path, name, others);
  }
}

function entriesAt(file: unknown, path: Path): readonly (readonly [path: Path, value: unknown])[] {
  const value = at(file, path);
  if (Array.isArray(value)) return value.map((entry: unknown, index) => [[...path, index], entry] as const);
  return isObject(value) ? Object.entries(value).map(([key, entry]) => [[...path, key], entry] as const) : [];
}

/** The value at a path; `wrong` where something on the way is. */
function at(value: unknown, path: Path): unknown {
  let inner = value;
  for (const key of path) {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, key))
      return inner === wrong ? wrong : undefined;
    inner = (inner as Readonly<Record<string | number, unknown>>)[key];
  }
  return inner;
}
