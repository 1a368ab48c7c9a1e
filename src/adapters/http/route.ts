/** The route to an upstream: direct, over a unix socket, or through a proxy. */
import { Socket } from "node:net";
import type { Dispatcher } from "undici";
import type { Target } from "./target.ts";
import { Pool, buildConnector, loadProxies } from "./undici.ts";
import type { UpstreamOptions } from "./upstream.ts";

export interface Route {
  /** Sends a request and returns the socket that was dialled for it, if any. */
  dispatch(request: Dispatcher.DispatchOptions, receiver: Dispatcher.DispatchHandler): Socket | undefined;
  destroy(): Promise<void>;
}

/**
 * Each stream has its own connection: over HTTP/2 they would share one window, and a slow reader would hold up the
 * others. The exchange keeps the deadlines, so undici's are off.
 */
const common = { allowH2: false, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 } as const;

export function createRoute(target: Target, options: UpstreamOptions): Route {
  const proxy = chooseProxy(target, options);
  if (proxy === undefined) return createStraightRoute(target, options.connectMs);
  // A proxy agent's dialling is hidden from us; if the caller leaves, it ends by its own time limit.
  return { dispatch: (request, receiver) => void proxy.dispatch(request, receiver), destroy: () => proxy.destroy() };
}

function createStraightRoute(target: Target, connectMs: number): Route {
  const connect = buildConnector({ allowH2: false, timeout: connectMs, socketPath: target.socketPath });
  let dialled: Socket | undefined;
  const pool = new Pool(target.origin, {
    ...common,
    connect(options, callback) {
      const socket: unknown = connect(options, callback);
      if (socket instanceof Socket) dialled = socket;
    },
  });
  return {
    dispatch(request, receiver) {
      // A pool dials within the call that needs the connection, so this socket is this request's.
      dialled = undefined;
      pool.dispatch(request, receiver);
      return dialled;
    },
    destroy: () => pool.destroy(),
  };
}

function chooseProxy(target: Target, options: UpstreamOptions): Dispatcher | undefined {
  const { proxy, environment, connectMs } = options;
  const settings = {
    ...common,
    connectTimeout: connectMs,
    requestTls: { allowH2: false },
    proxyTls: { allowH2: false },
  };
  if (proxy === false || target.socketPath !== undefined) return undefined;
  if (proxy !== undefined) return new (loadProxies().ProxyAgent)({ ...settings, uri: proxy });
  // The environment's proxy is for the world outside; no proxy can reach our own loopback.
  if (isLoopback(target.origin)) return undefined;
  const httpProxy = environment["http_proxy"] ?? environment["HTTP_PROXY"] ?? "";
  const httpsProxy = environment["https_proxy"] ?? environment["HTTPS_PROXY"] ?? "";
  if ((target.origin.startsWith("https:") ? httpsProxy : httpProxy) === "") return undefined;
  const noProxy = environment["no_proxy"] ?? environment["NO_PROXY"] ?? "";
  return new (loadProxies().EnvHttpProxyAgent)({ ...settings, httpProxy, httpsProxy, noProxy });
}

function isLoopback(origin: string): boolean {
  const { hostname } = new URL(origin);
  return (
    hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || hostname.startsWith("127.")
  );
}
