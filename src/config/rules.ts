/** Rules between keys, which must hold, and settings of which the operator is warned. */
import { hash } from "node:crypto";
import type { FileShape } from "./config.ts";
import { isAdapterName, isDigest, isLoopback, isProxy, isStore, isToken } from "./judges.ts";
import { formatPath, isObject, type Path, problem, type Problem, valueAt } from "./problem.ts";
import { type Found, type FoundText, masked } from "./read.ts";

/** What is wrong by itself was told. */
export function checkRules(settings: unknown, { texts }: Found): readonly Problem[] {
  return [
    ...checkPresence(settings),
    ...checkSame(texts),
    ...checkAdapters(settings, texts),
    ...checkWorkers(settings, texts),
  ];
}

function checkPresence(settings: unknown): readonly Problem[] {
  const named = valueAt(settings, ["gateway", "http", "tokens"]) ?? [];
  const [general, clients] = [
    ["auth", "token"],
    ["http", "auth_token"],
  ].map((path) => valueAt(settings, ["gateway", ...path]));
  if (!Array.isArray(named) || !isObject(valueAt(settings, ["gateway"]) ?? {})) return [];
  if (general === undefined && clients === undefined && named.length === 0) {
    const remedy = "set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";
    return [problem(["gateway"], `no token is set, and one is always required; ${remedy}`)];
  }
  return named.flatMap((each: unknown, index) => {
    const isOne = !isObject(each) || (each["token"] === undefined) !== (each["sha256"] === undefined);
    return isOne ? [] : [problem(["gateway", "http", "tokens", index], "required: either 'token' or 'sha256'")];
  });
}

function checkSame(texts: readonly FoundText[]): readonly Problem[] {
  const paths = new Map<string, Path>();
  return texts.flatMap(({ path, form, text }) => {
    if (form.judge !== isToken && form.judge !== isDigest) return [];
    const digest = form.judge === isToken ? hash("sha256", text) : text.toLowerCase();
    const first = paths.get(digest);
    paths.set(digest, first ?? path);
    const remedy = "every token needs its own value";
    return first === undefined ? [] : [problem(path, `the same token as ${formatPath(first)}; ${remedy}`)];
  });
}

function checkAdapters(settings: unknown, texts: readonly FoundText[]): readonly Problem[] {
  const adapters = valueAt(settings, ["gateway", "adapters"]) ?? {};
  if (!isObject(adapters)) return [];
  const known = Object.keys(adapters);
  const chosen = ["gateway", "default_adapter"];
  const isOpen = known.length > 1 && valueAt(settings, chosen) === undefined;
  const unknown = texts.flatMap(({ path, form, text, shown }) => {
    // The fallback of an adapter is another one.
    const others = known.filter((name) => path[1] !== "adapters" || path[2] !== name);
    if (form.judge !== isAdapterName || others.includes(text)) return [];
    const allowed = others.join(", ") || "nothing, because there is no other adapter";
    return [problem(path, `found ${JSON.stringify(shown)}; allowed: ${allowed}`)];
  });
  const missing = problem(chosen, `missing; required with several adapters: ${known.join(", ")}`);
  return isOpen ? [missing, ...unknown] : unknown;
}

/** A store in SQLite belongs to one process. */
function checkWorkers(settings: unknown, texts: readonly FoundText[]): readonly Problem[] {
  const path = ["gateway", "workers"];
  const workers = valueAt(settings, path);
  const usual = valueAt(settings, ["gateway", "sessions", "store"]) === undefined ? "sqlite:" : "";
  const store = texts.find(({ form }) => form.judge === isStore)?.text ?? usual;
  if (typeof workers !== "number" || workers < 2 || !store.startsWith("sqlite:")) return [];
  const remedy = 'name a PostgreSQL database in gateway.sessions.store ("postgres://…"), or write 1';
  return [problem(path, `found ${workers}, but a store in SQLite belongs to one process; ${remedy}`)];
}

const minTokenLength = 16;

/** `mode` has the file's permission bits. */
export function findDangers(file: FileShape, texts: readonly FoundText[], mode = 0): readonly Problem[] {
  const { bind, endpoints } = file.gateway.http;
  const dangers: Problem[] = [];
  const warn = (path: Path, message: string): void => void dangers.push(problem(path, message));

  if ((endpoints.compat_chat || endpoints.compat_responses) && !isLoopback(bind)) {
    const remedy = "put a proxy with TLS in front of it, or bind it to 127.0.0.1";
    warn(["gateway", "http", "bind"], `other machines reach ${bind} over plain HTTP; ${remedy}`);
  }
  for (const { path, form, text } of texts) {
    if (form.judge === isToken && text.length < minTokenLength)
      warn(path, `shorter than ${minTokenLength} characters; use a long random one (\`portico token make\`)`);
    if (form.judge === isProxy && /\/0+$/.test(text))
      warn(path, "trusts everybody, so callers choose their address; name only your proxies");
  }
  // An option that somebody else reads may be no secret.
  const open = texts.find(({ form, shown }) => form.type !== undefined && shown === masked);
  if (open !== undefined && (mode & 0o077) !== 0) {
    const remedy = "chmod 600 it, or refer to ${NAME} or a file";
    warn(open.path, `is in a file that other users may read (mode ${(mode & 0o777).toString(8)}); ${remedy}`);
  }
  return dangers;
}
