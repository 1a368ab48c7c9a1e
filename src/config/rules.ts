/** Rules between keys, which must hold, and settings of which the operator is warned. */
import { hash } from "node:crypto";
import type { AdapterShape, FileShape } from "./config.ts";
import { isLoopback } from "./judges.ts";
import { formatPath, type Path, problem, type Problem } from "./problem.ts";
import type { Found } from "./read.ts";

/** Anything may be missing before all is right; where it is wrong, that was told. */
export type Partly<Shape> = Shape extends readonly (infer Each)[]
  ? readonly (Partly<Each> | undefined)[]
  : Shape extends object
    ? { readonly [Key in keyof Shape]?: Partly<Shape[Key]> | undefined }
    : Shape;

type IsTold = (path: Path) => boolean;

export function checkRules(file: Partly<FileShape>, { problems, shown }: Found): readonly Problem[] {
  const isTold: IsTold = (path) => problems.some((told) => told.path.startsWith(formatPath(path)));
  const unknown = namesIn(file).filter(([, name, known]) => name !== undefined && !known.includes(name));
  return [
    ...checkTokens(file, isTold),
    ...checkDefault(file, isTold),
    ...unknown.map(([path, name, known]) => {
      const allowed = known.join(", ") || "nothing, because there is no other adapter";
      return problem(path, `found ${JSON.stringify(shown.get(formatPath(path)) ?? name)}; allowed: ${allowed}`);
    }),
  ];
}

const tokenPath = (index: number): Path => ["gateway", "http", "tokens", index];

function* checkTokens(file: Partly<FileShape>, isTold: IsTold): Generator<Problem> {
  const tokens = file.gateway?.http?.tokens ?? [];
  const digests = tokensOf(file).map(([path, token]) => [path, hash("sha256", token)] as const);
  for (const [index, { token, sha256 } = {}] of tokens.entries()) {
    if (sha256 !== undefined) digests.push([tokenPath(index), sha256.toLowerCase()]);
    if ((token === undefined) !== (sha256 === undefined) || isTold(tokenPath(index))) continue;
    yield problem(tokenPath(index), "required: either 'token' or 'sha256'");
  }
  const places = [["auth"], ["http", "auth_token"], ["http", "tokens"]];
  const isWrong = file.gateway?.http === undefined || places.some((place) => isTold(["gateway", ...place]));
  if (!isWrong && digests.length === 0 && tokens.length === 0) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    yield problem(["gateway"], `no token is set, and one is always required; ${remedy}`);
  }
  for (const [path, digest] of digests) {
    const [first] = digests.find(([, other]) => other === digest) ?? [path];
    if (first !== path) yield problem(path, `the same token as ${formatPath(first)}; every token needs its own value`);
  }
}

/** Every token in plain text, with its path. */
function tokensOf({ gateway }: Partly<FileShape>): readonly (readonly [path: Path, token: string])[] {
  const all: readonly (readonly [Path, string | undefined])[] = [
    [["gateway", "auth", "token"], gateway?.auth?.token],
    [["gateway", "http", "auth_token"], gateway?.http?.auth_token],
    ...(gateway?.http?.tokens ?? []).map((each, index) => [[...tokenPath(index), "token"], each?.token] as const),
  ];
  return all.flatMap(([path, token]) => (token === undefined ? [] : [[path, token] as const]));
}

function checkDefault({ gateway }: Partly<FileShape>, isTold: IsTold): readonly Problem[] {
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

const minTokenLength = 16;

/** `mode` has the file's permission bits, and `secret` is the place of one that stands in it. */
export function findDangers(file: FileShape, mode = 0, secret: Path | undefined): readonly Problem[] {
  const { http } = file.gateway;
  const dangers: Problem[] = [];
  const warn = (path: Path, message: string): void => void dangers.push(problem(path, message));

  const listens = http.endpoints.compat_chat || http.endpoints.compat_responses;
  if (listens && !isLoopback(http.bind)) {
    const remedy = "put a proxy with TLS in front of it, or bind it to 127.0.0.1";
    warn(["gateway", "http", "bind"], `other machines reach ${http.bind} over plain HTTP; ${remedy}`);
  }
  for (const [path, token] of tokensOf(file)) {
    const remedy = "use a long random one (`portico token make`)";
    if (token.length < minTokenLength) warn(path, `shorter than ${minTokenLength} characters; ${remedy}`);
  }
  for (const [index, proxy] of http.trusted_proxies.entries()) {
    const place = ["gateway", "http", "trusted_proxies", index];
    if (/\/0+$/.test(proxy)) warn(place, "trusts everybody, so callers choose their address; name only your proxies");
  }
  if (secret !== undefined && (mode & 0o077) !== 0) {
    const remedy = "chmod 600 it, or refer to ${NAME} or a file";
    warn(secret, `is in a file that other users may read (mode ${(mode & 0o777).toString(8)}); ${remedy}`);
  }
  return dangers;
}
