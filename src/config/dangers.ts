/** Settings that work, but of which the operator is warned. */
import { isLoopback } from "./address.ts";
import { holdsSecret } from "./hide.ts";
import { isModel, isSecret, type Leaf, leavesOf, type Path } from "./path.ts";
import type { PlacedFile } from "./places.ts";
import { problem, type Problems } from "./problem.ts";
import { tokensOf } from "./rules.ts";
import type { AdapterShape } from "./schema/adapter.ts";

type Gateway = PlacedFile["gateway"];

/** The file must be valid. */
export function* findDangers(file: PlacedFile, now: Date): Problems {
  const { http, sessions } = file.gateway;
  const listens = Object.values(http.endpoints).includes(true);
  if (listens && !isLoopback(http.bind)) {
    const remedy = "put a proxy with TLS in front of it, or bind it to 127.0.0.1";
    yield problem(
      ["gateway", "http", "bind"],
      `${http.bind} can be reached from other machines over plain HTTP; ${remedy}`,
    );
  }
  if (!http.bind.startsWith("unix:") && http.socket_mode !== "600") {
    yield problem(["gateway", "http", "socket_mode"], "has no effect unless gateway.http.bind is a unix socket");
  }
  yield* judgeProxies(http);
  if (http.console) yield* judgeConsole(file.gateway, listens);
  for (const [path, token] of tokensOf(file)) {
    if (token.length >= 16) continue;
    yield problem(
      path,
      "shorter than 16 characters, so it can be guessed; use a long random token (`portico token make` makes one)",
    );
  }
  for (const [index, token] of http.tokens.entries()) {
    yield* judgeUse(http, token, ["gateway", "http", "tokens", index], now);
  }
  yield* judgeReach(file.gateway);
  if (sessions.store === "memory:") {
    yield problem(["gateway", "sessions", "store"], "sessions are stored in memory and lost when the gateway stops");
  }
}

/** Warns of an adapter that no request leads to. */
function* judgeReach({ adapters, models, default_adapter }: Gateway): Problems {
  const all = Object.entries(adapters) as [name: string, adapter: AdapterShape][];
  const named = new Set([default_adapter, ...Object.values(models), ...all.flatMap(([, { fallback }]) => fallback)]);
  for (const [name, { model, models: own }] of all) {
    if (named.has(name) || model !== undefined || Object.keys(own).length > 0) continue;
    const remedy = "name models for it in gateway.models, or its own 'model' or 'models'";
    yield problem(["gateway", "adapters", name], `no model leads to it, so it is never asked; ${remedy}`);
  }
}

/** Warns of a plain secret in a file that others may read; `mode` has the permission bits, if the system has them. */
export function* findOpenSecret(written: unknown, mode: number | undefined): Problems {
  if (mode === undefined || (mode & 0o077) === 0) return;
  const secret = leavesOf(written).find(isPlainSecret);
  if (secret === undefined) return;
  const remedy = "chmod 600 it, or refer to ${NAME} or a file";
  yield problem(secret[0], `is in a file that other users may read (mode ${(mode & 0o777).toString(8)}); ${remedy}`);
}

function isPlainSecret([path, value, before]: Leaf): boolean {
  if (typeof value !== "string" || value.includes("${") || isModel(path)) return false;
  // The path of a secret's file is no secret.
  if (path.at(-1) === "file") return false;
  // A URL may carry a password, and an argument a key.
  return isSecret(path) || holdsSecret(value, before);
}

/** Warns of callers that can choose their addresses, and of a list that leaves out, or names in vain, the socket. */
function* judgeProxies({ bind, trusted_proxies: proxies }: Gateway["http"]): Problems {
  const path = ["gateway", "http", "trusted_proxies"];
  for (const [index, proxy] of proxies.entries()) {
    if (!/\/0+$/.test(proxy)) continue;
    yield problem([...path, index], "trusts everybody, so callers can choose their address; name only your proxies");
  }
  const isSocket = bind.startsWith("unix:");
  if (proxies.length === 0 || proxies.includes("unix") === isSocket) return;
  const fault = isSocket
    ? 'has no effect without "unix", because gateway.http.bind is a unix socket'
    : '"unix" has no effect unless gateway.http.bind is a unix socket';
  yield problem(path, fault);
}

/** Warns of a page that is unreachable or shows little. */
function* judgeConsole({ auth }: Gateway, listens: boolean): Problems {
  const path = ["gateway", "http", "console"];
  if (!listens) {
    yield problem(path, "no endpoint is on, so there is no listener through which to reach the console");
  } else if (auth.token === undefined) {
    const remedy = "set gateway.auth.token to see the overview and the sessions";
    yield problem(path, `no token opens the operator routes, so the console shows only Try it; ${remedy}`);
  }
}

function* judgeUse(http: Gateway["http"], token: Gateway["http"]["tokens"][number], path: Path, now: Date): Problems {
  for (const [entry, name] of (token.endpoints ?? []).entries()) {
    if (name === "metrics" || http.endpoints[name]) continue;
    yield problem([...path, "endpoints", entry], `'${name}' is off; set gateway.http.endpoints.${name} to enable it`);
  }
  if (token.expires_at !== undefined && new Date(token.expires_at) <= now) {
    yield problem([...path, "expires_at"], "has passed, so this token no longer works");
  }
}
