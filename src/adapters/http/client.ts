/** Connections to one server: direct, over a unix socket, or through a proxy. */
import { createRequire } from "node:module";
import type * as undici from "undici";
import type { Dispatcher } from "undici";

// All of undici, with fetch, caches and mocks, takes a tenth of a second to load.
const require = createRequire(import.meta.url);
const Connection = require("undici/lib/dispatcher/client.js") as typeof undici.Client;
const buildConnector = require("undici/lib/core/connect.js") as typeof undici.buildConnector;

export interface Target {
  /** `http://…`, `https://…` or `unix:/path/to.sock`, with a path that precedes every request's own: `unix:/path/to.sock:/v1`. */
  readonly baseUrl: string;
  /** A proxy's URL; absent: the environment decides. */
  readonly proxy?: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface Question {
  readonly method: "GET" | "POST";
  /** Below the base URL, whose query goes behind it. */
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body?: string | undefined;
}

export interface Client {
  /** Host and port, or the socket's path: how errors name the server. */
  readonly address: string;
  /** The address with the base URL's path: gateways have the servers behind them under paths of their own. */
  readonly source: string;
  send(question: Question, handler: Dispatcher.DispatchHandler): void;
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
  const [, socketPath, behind = ""] = /^unix:(\/[^:]+)(?::(\/.*))?$/.exec(target.baseUrl) ?? [];
  const url = new URL(socketPath === undefined ? target.baseUrl : `http://localhost${behind}`);
  const { origin, hostname, search } = url;
  const prefix = url.pathname.replace(/\/$/, "");
  const address = socketPath ?? `${hostname}:${url.port || (url.protocol === "https:" ? "443" : "80")}`;
  const connect = { allowH2: false, timeout: connectMs, ...(socketPath !== undefined && { socketPath }) };
  const proxy = socketPath === undefined ? createProxy(url, target) : undefined;
  const dispatcher = proxy ?? createPool(origin, buildConnector(connect));
  return {
    address,
    source: address + prefix,
    send({ method, path, headers, body }, handler) {
      dispatcher.dispatch({ origin, method, path: prefix + path + search, headers, body }, handler);
    },
    close: () => dispatcher.destroy(),
  };
}

/** undici's own looks at every connection for each request: where 5,000 stream, that is a sixth of what a request costs. */
function createPool(
  origin: string,
  connect: undici.buildConnector.connector,
): Pick<Dispatcher, "dispatch" | "destroy"> {
  const all: Dispatcher[] = [];
  const free: Dispatcher[] = [];
  function open(): Dispatcher {
    const connection = new Connection(origin, { ...common, connect });
    connection.on("drain", () => free.push(connection));
    all.push(connection);
    return connection;
  }
  return {
    dispatch(request, handler) {
      // The one that was used last: the others may come to their end.
      return (free.pop() ?? open()).dispatch(request, handler);
    },
    destroy: async () => void (await Promise.all(all.map((connection) => connection.destroy()))),
  };
}

function createProxy({ hostname, protocol }: URL, { proxy, environment }: Target): Dispatcher | undefined {
  const settings = { ...common, requestTls: { allowH2: false }, proxyTls: { allowH2: false } };
  if (proxy !== undefined) return new (loadAll().ProxyAgent)({ ...settings, uri: proxy });
  // The environment's proxy is for the world outside: none can reach our own loopback.
  if (/^(localhost|.*\.localhost|\[::1\]|127\..*)$/.test(hostname)) return undefined;
  const [httpProxy, httpsProxy, noProxy] = ["http_proxy", "https_proxy", "no_proxy"].map(
    (name) => environment[name] ?? environment[name.toUpperCase()] ?? "",
  );
  if ((protocol === "https:" ? httpsProxy : httpProxy) === "") return undefined;
  return new (loadAll().EnvHttpProxyAgent)({ ...settings, httpProxy, httpsProxy, noProxy });
}

/** Few servers are behind a proxy. */
function loadAll(): typeof undici {
  return require("undici") as typeof undici;
}
