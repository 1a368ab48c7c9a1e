/** What only a new start can change: where the gateway listens and where it keeps things. All else can change while it runs. */
import { isDeepStrictEqual } from "node:util";
import type { Config } from "./config/config.ts";

/** The keys of this kind in which two configurations differ. */
export function findFixed(before: Config, after: Config): readonly string[] {
  return Object.entries(fixed).flatMap(([key, read]) => (isDeepStrictEqual(read(before), read(after)) ? [] : [key]));
}

const fixed: Readonly<Record<string, (config: Config) => unknown>> = {
  "gateway.data_dir": ({ dataDir }) => dataDir,
  "gateway.http.bind": ({ http }) => http.bind,
  "gateway.http.port": ({ http }) => http.port,
  "gateway.http.socket_mode": ({ http }) => http.socketMode,
  // With none there is no listener.
  "gateway.http.endpoints": ({ http: { endpoints } }) => endpoints.compatChat || endpoints.compatResponses,
  "gateway.http.limits.headers_timeout_ms": ({ http }) => http.limits.headersTimeoutMs,
  "gateway.sessions.store": ({ sessions }) => sessions.store,
};
