/** What no single key can tell: rules between keys, and the forms that addresses, dates and names must have. */
import { createHash } from "node:crypto";
import { allowedAddresses, faultOfAddress } from "./address.ts";
import { faultAround, isToken } from "./headers.ts";
import { formatPath, isObject, type Path, valueAt } from "./path.ts";
import { misfit, problem, type Problem } from "./problem.ts";
import type { Shown } from "./references.ts";
import { allowedRedis, isRedisUrl } from "./store.ts";

/** Problems between keys. The file may have other problems too, so nothing is taken for granted. */
export function findConflicts(file: unknown, shown: Shown): readonly Problem[] {
  return [
    ...judgeAddress(file, shown),
    ...judgeOrigins(file, shown),
    ...judgeTokens(file),
    ...judgeRate(file, ["gateway", "http", "limits"]),
    ...judgeDefaultAdapter(file),
    ...judgeRoutes(file),
    ...judgeStore(file, shown),
  ];
}

function judgeAddress(file: unknown, shown: Shown): readonly Problem[] {
  const path = ["gateway", "http", "bind"];
  const bind = textAt(file, path);
  const fault = bind === undefined ? undefined : faultOfAddress(bind);
  if (fault === undefined) return [];
  return [misfit(path, shown(path, bind), fault === "" ? allowedAddresses : `${allowedAddresses} (${fault})`)];
}

function judgeOrigins(file: unknown, shown: Shown): readonly Problem[] {
  const origins = valueAt(file, ["gateway", "http", "cors", "origins"]);
  if (!Array.isArray(origins)) return [];
  return origins.flatMap((origin: unknown, index) => {
    const path = ["gateway", "http", "cors", "origins", index];
    if (typeof origin !== "string" || isOrigin(origin)) return [];
    return [misfit(path, shown(path, origin), 'an exact origin like "https://app.example.com", without a path')];
  });
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;
}

function judgeStore(file: unknown, shown: Shown): readonly Problem[] {
  const path = ["gateway", "sessions", "store"];
  const store = textAt(file, path);
  if (store === undefined || !/^rediss?:\/\/./.test(store) || isRedisUrl(store)) return [];
  return [misfit(path, shown(path, store), allowedRedis)];
}

interface WrittenToken {
  readonly path: Path;
  readonly value: string;
}

const lonely = [
  ["gateway", "auth", "token"],
  ["gateway", "http", "auth_token"],
] as const satisfies readonly Path[];

function judgeTokens(file: unknown): readonly Problem[] {
  const named = namedTokens(file);
  const problems = named.flatMap((token, index) => judgeNamed(file, token, index));
  const tokens = tokensOf(file);
  for (const { path, value } of tokens) {
    if (value === "") problems.push(misfit(path, value, "a token of at least 16 characters"));
    else if (!isToken(value)) {
      problems.push(
        problem(
          path,
          faultAround(value) ??
            "has a space or a character that no header can carry; allowed: visible ASCII characters",
        ),
      );
    }
  }
  const isAny = named.length > 0 || lonely.some((path) => valueAt(file, path) !== undefined);
  if (!isAny) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    problems.push(problem(["gateway"], `no token is set, and nobody may enter without one; ${remedy}`));
  }
  return [...problems, ...findRepeated(file, tokens)];
}

function judgeNamed(file: unknown, token: Readonly<Record<string, unknown>>, index: number): Problem[] {
  const path = ["gateway", "http", "tokens", index];
  if (!isObject(valueAt(file, path))) return [];
  const problems: Problem[] = [...judgeRate(file, [...path, "limits"])];
  const { name } = token;
  if (name === "default") {
    problems.push(
      problem([...path, "name"], "'default' is the owner of the tokens without a name; choose another name"),
    );
  }
  const given = ["token", "sha256"].filter((key) => token[key] !== undefined);
  if (given.length === 2) problems.push(problem(path, "has both 'token' and 'sha256'; allowed: one of them"));
  if (given.length === 0) problems.push(problem(path, "has neither 'token' nor 'sha256'; required: one of them"));
  const expires = token.expires_at;
  if (typeof expires === "string" && /^\d{4}-\d{2}-\d{2}T/.test(expires) && !isDate(expires)) {
    problems.push(misfit([...path, "expires_at"], expires, "a date and time that exists"));
  }
  return problems;
}

/** The 30th of February would be taken for the 2nd of March. */
function isDate(text: string): boolean {
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  const exists = !Number.isNaN(day) && new Date(day).toISOString().slice(0, 10) === text.slice(0, 10);
  return exists && !Number.isNaN(Date.parse(text));
}

function findRepeated(file: unknown, tokens: readonly WrittenToken[]): readonly Problem[] {
  const digests = tokens
    .filter(({ value }) => value !== "")
    .map(({ path, value }) => ({ path, digest: createHash("sha256").update(value).digest("hex") }));
  for (const [index, { sha256 }] of namedTokens(file).entries()) {
    const path = ["gateway", "http", "tokens", index, "sha256"];
    if (typeof sha256 === "string") digests.push({ path, digest: sha256.toLowerCase() });
  }
  const firsts = new Map<string, Path>();
  return digests.flatMap(({ path, digest }) => {
    const first = firsts.get(digest);
    if (first === undefined) firsts.set(digest, path);
    return first === undefined
      ? []
      : [problem(path, `the same token as ${formatPath(first)}; every token needs its own value`)];
  });
}

function judgeRate(file: unknown, path: Path): readonly Problem[] {
  const isRateless = valueAt(file, [...path, "requests_per_minute"]) === undefined;
  if (!isRateless || valueAt(file, [...path, "burst"]) === undefined) return [];
  return [problem([...path, "burst"], "means nothing without 'requests_per_minute' beside it")];
}

function judgeDefaultAdapter(file: unknown): readonly Problem[] {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (adapters !== undefined && !isObject(adapters)) return [];
  const names = Object.keys(adapters ?? {});
  const path = ["gateway", "default_adapter"];
  const chosen = valueAt(file, path);
  if (chosen === undefined) {
    return names.length < 2 ? [] : [problem(path, `missing; required with several adapters: ${names.join(", ")}`)];
  }
  if (typeof chosen !== "string" || names.includes(chosen)) return [];
  const allowed = names.length === 0 ? "nothing, because gateway.adapters has none" : names.join(", ");
  return [misfit(path, chosen, allowed)];
}

function judgeName(path: Path, name: unknown, known: readonly string[]): readonly Problem[] {
  if (typeof name !== "string" || known.includes(name)) return [];
  return [misfit(path, name, known.length === 0 ? "nothing, because there is no other adapter" : known.join(", "))];
}

/** Adapters that are named elsewhere must be there. */
function judgeRoutes(file: unknown): readonly Problem[] {
  const adapters = valueAt(file, ["gateway", "adapters"]);
  if (!isObject(adapters)) return [];
  const names = Object.keys(adapters);
  const models = valueAt(file, ["gateway", "models"]);
  return [
    ...Object.entries(isObject(models) ? models : {}).flatMap(([model, name]) =>
      judgeName(["gateway", "models", model], name, names),
    ),
    ...names.flatMap((adapter) => {
      const path = ["gateway", "adapters", adapter, "fallback"];
      const fallback = valueAt(file, path);
      const others = names.filter((name) => name !== adapter);
      return Array.isArray(fallback)
        ? fallback.flatMap((name, index) => judgeName([...path, index], name, others))
        : [];
    }),
  ];
}

/** Every token that is written out, with its place. */
export function tokensOf(file: unknown): WrittenToken[] {
  const named = namedTokens(file).map((_, index) => ["gateway", "http", "tokens", index, "token"]);
  return [...lonely, ...named].flatMap((path) => {
    const value = textAt(file, path);
    return value === undefined ? [] : [{ path, value }];
  });
}

function namedTokens(file: unknown): readonly Readonly<Record<string, unknown>>[] {
  const tokens = valueAt(file, ["gateway", "http", "tokens"]);
  // Entries keep their numbers, so what is no object stays as an empty one; the schema has told of it.
  return Array.isArray(tokens) ? tokens.map((token: unknown) => (isObject(token) ? token : {})) : [];
}

function textAt(file: unknown, path: Path): string | undefined {
  const value = valueAt(file, path);
  return typeof value === "string" ? value : undefined;
}
