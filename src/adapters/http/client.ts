/** Connections to one server: direct, over a unix socket, or through a proxy. */
import { createRequire } from "node:module";
import type * as undici from "undici";
import type { Dispatcher } from "undici";

// All of undici, with fetch, caches and mocks, takes a tenth of a second to load.
const require = createRequire(import.meta.url);
const Pool = require("undici/lib/dispatcher/pool.js") as typeof undici.Pool;

export interface Target {
  /** `http://…`, `https://…` or `unix:/path/to.sock`, with a path that precedes every request's own: `unix:/path/to.sock:/v1`. */
  readonly baseUrl: string;
  /** A proxy's URL; absent: the environment decides. */
  readonly proxy?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface Client {
  /** Host and port, or the socket's path: how errors name the server. */
  readonly address: string;
  /** The address with the base URL's path: gateways have the servers behind them under paths of their own. */
  readonly source: string;
  /** A request's path, with the base URL's before it and its query behind. */
  toPath(path: string): string;
  dispatch(request: Omit<Dispatcher.DispatchOptions, "origin">, handler: Dispatcher.DispatchHandler): void;
  close(): Promise<void>;
}

const connectMs = 5_000;

/**
 * Each stream has its own connection: over HTTP/2 they would share one window, and a slow reader would hold up the
 * others. The exchange keeps the other deadlines, so undici's are off.
 */
const common = {
  allowH2: false,
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
  connectTimeout: connectMs,
} as const;

export function createClient(target: Target): Client {
  const { origin, socketPath, prefix, search, address } = readBaseUrl(target.baseUrl);
  const connect = { allowH2: false, timeout: connectMs, ...(socketPath !== undefined && { socketPath }) };
  const dispatcher =
    (socketPath === undefined ? createProxy(origin, target) : undefined) ?? new Pool(origin, { ...common, connect });
  return {
    address,
    source: address + prefix,
    toPath: (path) => prefix + path + search,
    dispatch: (request, handler) => void dispatcher.dispatch({ ...request, origin }, handler),
    close: () => dispatcher.destroy(),
  };
}

function readBaseUrl(baseUrl: string) {
  const [, socketPath, behind = ""] = /^unix:(\/[^:]+)(?::(\/.*))?$/.exec(baseUrl) ?? [];
  const url = new URL(socketPath === undefined ? baseUrl : `http://localhost${behind}`);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return {
    origin: url.origin,
    socketPath,
    prefix: url.pathname.replace(/\/$/, ""),
    search: url.search,
    address: socketPath ?? `${url.hostname}:${port}`,
  };
}

function createProxy(origin: string, { proxy, environment }: Target): Dispatcher | undefined {
  const settings = { ...common, requestTls: { allowH2: false }, proxyTls: { allowH2: false } };
  if (proxy !== undefined) return new (loadAll().ProxyAgent)({ ...settings, uri: proxy });
  // The environment's proxy is for the world outside: none can reach our own loopback.
  if (isLoopback(origin)) return undefined;
  const [httpProxy, httpsProxy, noProxy] = ["http_proxy", "https_proxy", "no_proxy"].map(
    (name) => environment[name] ?? environment[name.toUpperCase()] ?? "",
  );
  if ((origin.startsWith("https:") ? httpsProxy : httpProxy) === "") return undefined;
  return new (loadAll().EnvHttpProxyAgent)({ ...settings, httpProxy, httpsProxy, noProxy });
}

/** Few servers are behind a proxy. */
function loadAll(): typeof undici {
  return require("undici") as typeof undici;
}

function isLoopback(origin: string): boolean {
  const { hostname } = new URL(origin);
  return /^(localhost|.*\.localhost|\[::1\]|127\..*)$/.test(hostname);
}
