/** The parts of undici that we need: all of it, with fetch, caches and mocks, takes a tenth of a second to load. */
import { createRequire } from "node:module";
import type * as undici from "undici";

const require = createRequire(import.meta.url);

/** Connections to one origin. */
export const Pool = require("undici/lib/dispatcher/pool.js") as typeof undici.Pool;

/** How a pool dials. */
export const buildConnector = require("undici/lib/core/connect.js") as typeof undici.buildConnector;

/** The agents for proxies, which few upstreams need. */
export function loadProxies(): Pick<typeof undici, "ProxyAgent" | "EnvHttpProxyAgent"> {
  return require("undici") as typeof undici;
}
