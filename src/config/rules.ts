/** Rules between keys: tokens that are there and differ, adapters that are named rightly. */
import { hash } from "node:crypto";
import type { AdapterShape, FileShape } from "./config.ts";
import { formatPath, type Path, problem, type Problem } from "./problem.ts";
import type { Found } from "./read.ts";

/** Anything may be missing before all is right; where it is wrong, that was told. */
export type Partly<Shape> = Shape extends readonly (infer Each)[]
  ? readonly (Partly<Each> | undefined)[]
  : Shape extends object
    ? { readonly [Key in keyof Shape]?: Partly<Shape[Key]> | undefined }
    : Shape;

export function checkRules(file: Partly<FileShape>, { problems, shown }: Found): readonly Problem[] {
  const isTold = (path: Path): boolean => problems.some((told) => told.path.startsWith(formatPath(path)));
  const unknownNames = namesIn(file).filter(([, name, known]) => name !== undefined && !known.includes(name));
  return [
    ...checkTokens(file, isTold),
    ...checkDefault(file, isTold),
    ...unknownNames.map(([path, name, known]) => {
      const allowed = known.join(", ") || "nothing, because there is no other adapter";
      return problem(path, `found ${JSON.stringify(shown.get(formatPath(path)) ?? name)}; allowed: ${allowed}`);
    }),
  ];
}

const tokenPath = (index: number): Path => ["gateway", "http", "tokens", index];

function* checkTokens(file: Partly<FileShape>, isTold: (path: Path) => boolean): Generator<Problem> {
  const tokens = file.gateway?.http?.tokens;
  for (const [index, token] of (tokens ?? []).entries()) {
    const given = [token?.token, token?.sha256].filter((each) => each !== undefined).length;
    if (given === 1 || isTold(tokenPath(index))) continue;
    const found = given === 0 ? "neither" : "both";
    yield problem(tokenPath(index), `has ${found} of 'token' and 'sha256'; required: one of them`);
  }
  const all = tokensOf(file).map(([path, token]) => [path, hash("sha256", token)] as const);
  for (const [index, token] of (tokens ?? []).entries()) {
    if (token?.sha256 !== undefined) all.push([tokenPath(index), token.sha256.toLowerCase()]);
  }
  const isWrong = tokens === undefined || isTold(["gateway", "http", "auth_token"]) || isTold(["gateway", "auth"]);
  if (!isWrong && tokens.length === 0 && all.length === 0) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    yield problem(["gateway"], `no token is set, and one is always required; ${remedy}`);
  }
  for (const [path, digest] of all) {
    const [first] = all.find(([, other]) => other === digest) ?? [path];
    if (first !== path) yield problem(path, `the same token as ${formatPath(first)}; every token needs its own value`);
  }
}

/** Every token in plain text, with its path. */
export function tokensOf({ gateway }: Partly<FileShape>): (readonly [path: Path, token: string])[] {
  const named = (gateway?.http?.tokens ?? []).map(
    (each, index) => [[...tokenPath(index), "token"], each?.token] as const,
  );
  const unnamed = [
    [["gateway", "auth", "token"], gateway?.auth?.token],
    [["gateway", "http", "auth_token"], gateway?.http?.auth_token],
  ] as const;
  return [...unnamed, ...named].flatMap(([path, token]) => (token === undefined ? [] : [[path, token] as const]));
}

function checkDefault({ gateway }: Partly<FileShape>, isTold: (path: Path) => boolean): readonly Problem[] {
  const path = ["gateway", "default_adapter"];
  const names = Object.keys(gateway?.adapters ?? {});
  if (names.length < 2 || gateway?.default_adapter !== undefined || isTold(path)) return [];
  return [problem(path, `missing; required with several adapters: ${names.join(", ")}`)];
}

/** Where adapters are named, and those that may be named there. */
function namesIn({ gateway }: Partly<FileShape>): readonly (readonly [Path, string | undefined, readonly string[]])[] {
  if (gateway?.adapters === undefined) return [];
  const known = Object.keys(gateway.adapters);
  const fallbacks = Object.entries(gateway.adapters).flatMap(([name, adapter]) => {
    const others = known.filter((other) => other !== name);
    const { fallback = [] } = (adapter ?? {}) as Partly<AdapterShape>;
    return fallback.map((other, index) => [["gateway", "adapters", name, "fallback", index], other, others] as const);
  });
  const models = Object.entries(gateway.models ?? {}).map(([model, name]) => {
    return [["gateway", "models", model], name, known] as const;
  });
  return [[["gateway", "default_adapter"], gateway.default_adapter, known], ...models, ...fallbacks];
}
