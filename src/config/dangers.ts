/** Settings that work, but that the operator should know of. */
import { isLoopback } from "./address.ts";
import { holdsSecret } from "./hide.ts";
import { isModel, isSecret, type Path } from "./path.ts";
import type { PlacedFile } from "./places.ts";
import { problem, type Problem } from "./problem.ts";
import { tokensOf } from "./rules.ts";

type Gateway = PlacedFile["gateway"];

/** The file has no problems. */
export function findDangers(file: PlacedFile, now: Date): readonly Problem[] {
  const { gateway } = file;
  return [
    ...judgeBind(gateway.http.bind),
    ...judgeSocket(gateway.http),
    ...judgeConsole(gateway),
    ...tokensOf(file).flatMap(({ path, value }) => judgeLength(path, value)),
    ...gateway.http.tokens.flatMap((token, index) =>
      judgeUse(gateway, token, ["gateway", "http", "tokens", index], now),
    ),
    ...judgeStore(gateway.sessions.store),
  ];
}

/** A secret that is written out in a file that others may read; `mode` has the file's permission bits, where there are such. */
export function findOpenSecret(written: unknown, mode: number | undefined): readonly Problem[] {
  if (mode === undefined || (mode & 0o077) === 0) return [];
  const place = findPlainSecret(written, []);
  if (place === undefined) return [];
  const remedy = "chmod 600 it, or refer to ${NAME} or a file";
  return [problem(place, `stands in a file that other users may read (mode ${(mode & 0o777).toString(8)}); ${remedy}`)];
}

function judgeBind(bind: string): readonly Problem[] {
  if (isLoopback(bind)) return [];
  const remedy = "put a proxy with TLS in front of it, or bind it to 127.0.0.1";
  return [
    problem(["gateway", "http", "bind"], `${bind} can be reached from other machines over plain HTTP; ${remedy}`),
  ];
}

function judgeSocket({ bind, socket_mode: mode }: Gateway["http"]): readonly Problem[] {
  if (bind.startsWith("unix:") || mode === "600") return [];
  return [problem(["gateway", "http", "socket_mode"], "means nothing without a unix socket to listen on")];
}

/** A page that cannot be reached, or has nothing to show. */
function judgeConsole({ auth, http }: Gateway): readonly Problem[] {
  const path = ["gateway", "http", "console"];
  if (!http.console) return [];
  if (!Object.values(http.endpoints).includes(true)) {
    return [problem(path, "no endpoint is on, so there is no listener to reach the console by")];
  }
  if (auth.token !== undefined) return [];
  const remedy = "set gateway.auth.token to see the overview and the sessions";
  return [problem(path, `no token opens the operator's routes, so a conversation can be tried and no more; ${remedy}`)];
}

function judgeLength(path: Path, token: string): readonly Problem[] {
  if (token.length >= 16) return [];
  return [problem(path, "shorter than 16 characters, so it can be guessed; use a long random token")];
}

function judgeUse(
  { http }: Gateway,
  token: Gateway["http"]["tokens"][number],
  path: Path,
  now: Date,
): readonly Problem[] {
  const warnings = (token.endpoints ?? []).flatMap((name, entry) =>
    name === "metrics" || http.endpoints[name]
      ? []
      : [
          problem(
            [...path, "endpoints", entry],
            `'${name}' is off; set gateway.http.endpoints.${name} to switch it on`,
          ),
        ],
  );
  if (token.expires_at !== undefined && new Date(token.expires_at) <= now) {
    warnings.push(problem([...path, "expires_at"], "has passed, so this token opens nothing"));
  }
  return warnings;
}

function judgeStore(store: string): readonly Problem[] {
  if (store !== "memory:") return [];
  return [problem(["gateway", "sessions", "store"], "sessions are kept in memory and lost when the gateway stops")];
}

function findPlainSecret(value: unknown, path: Path, before?: unknown): Path | undefined {
  if (typeof value === "string") {
    if (value.includes("${") || isModel(path)) return undefined;
    // A URL may carry a password, and an argument a key.
    return isSecret(path) || holdsSecret(value, before) ? path : undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, entry] of Object.entries(value)) {
    const place = Array.isArray(value)
      ? findPlainSecret(entry, [...path, Number(key)], value[Number(key) - 1])
      : findPlainSecret(entry, [...path, key]);
    // The path of a secret's file is no secret.
    if (place !== undefined && key !== "file") return place;
  }
  return undefined;
}
