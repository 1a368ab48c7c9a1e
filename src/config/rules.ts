/** What the schema cannot check: rules between keys, and the forms of addresses, dates and names. */
import { hash } from "node:crypto";
import { allowedAddresses, faultOfAddress } from "./address.ts";
import { faultAround, isToken } from "./headers.ts";
import { formatPath, isObject, type Path, valueAt } from "./path.ts";
import { misfit, problem, type Problems } from "./problem.ts";
import type { Shown } from "./references.ts";
import { allowedRedis, isRedisUrl } from "./store.ts";

/** Problems between keys. The file may have others too, so nothing is assumed but that `gateway` is an object. */
export function* findConflicts(file: unknown, shown: Shown): Problems {
  yield* judgeAddress(file, shown);
  yield* judgeOrigins(file, shown);
  yield* judgeTokens(file);
  yield* judgeRate(file, ["gateway", "http", "limits"]);
  yield* judgeAdapterNames(file);
  yield* judgeStore(file, shown);
}

function* judgeAddress(file: unknown, shown: Shown): Problems {
  const path = ["gateway", "http", "bind"];
  const bind = textAt(file, path);
  const fault = bind === undefined ? undefined : faultOfAddress(bind);
  if (fault === undefined) return;
  yield misfit(path, shown(path, bind), fault === "" ? allowedAddresses : `${allowedAddresses} (${fault})`);
}

function* judgeOrigins(file: unknown, shown: Shown): Problems {
  for (const [path, origin] of entriesAt(file, ["gateway", "http", "cors", "origins"])) {
    if (typeof origin !== "string" || isOrigin(origin)) continue;
    yield misfit(path, shown(path, origin), 'an exact origin like "https://app.example.com", without a path');
  }
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;
}

function* judgeStore(file: unknown, shown: Shown): Problems {
  const path = ["gateway", "sessions", "store"];
  const store = textAt(file, path);
  if (store === undefined || !/^rediss?:\/\/./.test(store) || isRedisUrl(store)) return;
  yield misfit(path, shown(path, store), allowedRedis);
}

const lonely = [
  ["gateway", "auth", "token"],
  ["gateway", "http", "auth_token"],
] as const satisfies readonly Path[];

function* judgeTokens(file: unknown): Problems {
  const named = namedTokens(file);
  for (const [path, token] of named) if (isObject(token)) yield* judgeNamed(file, path, token);
  for (const { path, value } of tokensOf(file)) {
    if (value === "") yield misfit(path, value, "a token of at least 16 characters");
    else if (!isToken(value)) {
      const fault = "contains a space or a character that no header can carry; allowed: visible ASCII characters";
      yield problem(path, faultAround(value) ?? fault);
    }
  }
  if (named.length === 0 && lonely.every((path) => valueAt(file, path) === undefined)) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    yield problem(["gateway"], `no token is set, and one is always required; ${remedy}`);
  }
  yield* findRepeated(file);
}

function* judgeNamed(file: unknown, path: Path, token: Readonly<Record<string, unknown>>): Problems {
  yield* judgeRate(file, [...path, "limits"]);
  if (token.name === "default") {
    yield problem([...path, "name"], "'default' is the owner of the tokens without a name; choose another name");
  }
  const given = ["token", "sha256"].filter((key) => token[key] !== undefined);
  if (given.length === 2) yield problem(path, "has both 'token' and 'sha256'; allowed: one of them");
  if (given.length === 0) yield problem(path, "has neither 'token' nor 'sha256'; required: one of them");
  const expires = token.expires_at;
  if (typeof expires === "string" && /^\d{4}-\d{2}-\d{2}T/.test(expires) && !isDate(expires)) {
    yield misfit([...path, "expires_at"], expires, "a date and time that exists");
  }
}

/** `Date` would read 30 February as 2 March. */
function isDate(text: string): boolean {
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  const exists = !Number.isNaN(day) && new Date(day).toISOString().slice(0, 10) === text.slice(0, 10);
  return exists && !Number.isNaN(Date.parse(text));
}

function* findRepeated(file: unknown): Problems {
  const written = tokensOf(file).filter(({ value }) => value !== "");
  const digests = [
    ...written.map(({ path, value }) => ({ path, digest: hash("sha256", value, "hex") })),
    ...textsAt(
      file,
      namedTokens(file).map(([path]) => path.concat("sha256")),
    ).map(({ path, value }) => ({ path, digest: value.toLowerCase() })),
  ];
  const firsts = new Map<string, Path>();
  for (const { path, digest } of digests) {
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
function* judgeAdapterNames(file: unknown): Problems {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return;
  const names = Object.keys(adapters);
  const path = ["gateway", "default_adapter"];
  const chosen = valueAt(file, path);
  if (chosen !== undefined) yield* judgeName(path, chosen, names, "gateway.adapters has none");
  else if (names.length > 1) yield problem(path, `missing; required with several adapters: ${names.join(", ")}`);
  const models = valueAt(file, ["gateway", "models"]);
  for (const [model, name] of Object.entries(isObject(models) ? models : {})) {
    yield* judgeName(["gateway", "models", model], name, names);
  }
  for (const adapter of names) {
    const others = names.filter((name) => name !== adapter);
    for (const [path, name] of entriesAt(file, ["gateway", "adapters", adapter, "fallback"])) {
      yield* judgeName(path, name, others);
    }
  }
}

function* judgeName(
  path: Path,
  name: unknown,
  known: readonly string[],
  whyNone = "there is no other adapter",
): Problems {
  if (typeof name !== "string" || known.includes(name)) return;
  yield misfit(path, name, known.length === 0 ? `nothing, because ${whyNone}` : known.join(", "));
}

/** Every token in plain text, with its path. */
export function tokensOf(file: unknown): readonly Written[] {
  return textsAt(file, [...lonely, ...namedTokens(file).map(([path]) => path.concat("token"))]);
}

function namedTokens(file: unknown): readonly Entry[] {
  return entriesAt(file, ["gateway", "http", "tokens"]);
}

type Entry = readonly [path: Path, value: unknown];

/** The entries of a list with their paths; none if it is not a list, which the schema reports. */
function entriesAt(file: unknown, path: Path): readonly Entry[] {
  const list = valueAt(file, path);
  return Array.isArray(list) ? list.map((value: unknown, index) => [[...path, index], value] as const) : [];
}

interface Written {
  readonly path: Path;
  readonly value: string;
}

function textsAt(file: unknown, paths: readonly Path[]): readonly Written[] {
  return paths.flatMap((path) => {
    const value = textAt(file, path);
    return value === undefined ? [] : [{ path, value }];
  });
}

function textAt(file: unknown, path: Path): string | undefined {
  const value = valueAt(file, path);
  return typeof value === "string" ? value : undefined;
}
