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
  return [
    ...checkPresence(file, isTold),
    ...findRepeated(file),
    ...[...namesIn(file)].flatMap(([path, name, known]): readonly Problem[] => {
      if (name === undefined || known.includes(name)) return [];
      const found = JSON.stringify(shown.get(formatPath(path)) ?? name);
      const allowed = known.join(", ") || "nothing, because there is no other adapter";
      return [problem(path, `found ${found}; allowed: ${allowed}`)];
    }),
  ];
}

function* checkPresence({ gateway }: Partly<FileShape>, isTold: (path: Path) => boolean): Generator<Problem> {
  const tokens = gateway?.http?.tokens;
  for (const [index, token] of (tokens ?? []).entries()) {
    const path = ["gateway", "http", "tokens", index];
    const given = [token?.token, token?.sha256].filter((each) => each !== undefined).length;
    const found = given === 0 ? "neither" : "both";
    if (given !== 1 && !isTold(path))
      yield problem(path, `has ${found} of 'token' and 'sha256'; required: one of them`);
  }
  const isWrong = tokens === undefined || isTold(["gateway", "http", "auth_token"]) || isTold(["gateway", "auth"]);
  if (!isWrong && tokens.length === 0 && tokensOf({ gateway }).length === 0) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    yield problem(["gateway"], `no token is set, and one is always required; ${remedy}`);
  }
  const chosen = ["gateway", "default_adapter"];
  const names = Object.keys(gateway?.adapters ?? {});
  if (names.length > 1 && gateway?.default_adapter === undefined && !isTold(chosen)) {
    yield problem(chosen, `missing; required with several adapters: ${names.join(", ")}`);
  }
}

type Token = readonly [path: Path, value: string];

function* findRepeated(file: Partly<FileShape>): Generator<Problem> {
  const plain = tokensOf(file).map(([path, token]): Token => [path, hash("sha256", token)]);
  const digests = (file.gateway?.http?.tokens ?? []).flatMap((token, index): readonly Token[] =>
    token?.sha256 === undefined ? [] : [[["gateway", "http", "tokens", index], token.sha256.toLowerCase()]],
  );
  const firsts = new Map<string, Path>();
  for (const [path, digest] of [...plain, ...digests]) {
    const first = firsts.get(digest);
    if (first === undefined) firsts.set(digest, path);
    else yield problem(path, `the same token as ${formatPath(first)}; every token needs a value of its own`);
  }
}

/** Every token in plain text, with its path. */
export function tokensOf({ gateway }: Partly<FileShape>): readonly Token[] {
  const named = (gateway?.http?.tokens ?? []).map((each, index) => {
    return [["gateway", "http", "tokens", index, "token"], each?.token] as const;
  });
  const unnamed = [
    [["gateway", "auth", "token"], gateway?.auth?.token],
    [["gateway", "http", "auth_token"], gateway?.http?.auth_token],
  ] as const;
  return [...unnamed, ...named].flatMap(([path, token]): readonly Token[] =>
    token === undefined ? [] : [[path, token]],
  );
}

/** Where adapters are named, and those that may be named there. */
function* namesIn({ gateway }: Partly<FileShape>): Generator<readonly [Path, string | undefined, readonly string[]]> {
  if (gateway?.adapters === undefined) return;
  const known = Object.keys(gateway.adapters);
  yield [["gateway", "default_adapter"], gateway.default_adapter, known];
  for (const [model, name] of Object.entries(gateway.models ?? {})) yield [["gateway", "models", model], name, known];
  for (const [name, adapter] of Object.entries(gateway.adapters)) {
    const others = known.filter((other) => other !== name);
    const { fallback = [] } = (adapter ?? {}) as Partly<AdapterShape>;
    for (const [index, other] of fallback.entries()) {
      yield [["gateway", "adapters", name, "fallback", index], other, others];
    }
  }
}
