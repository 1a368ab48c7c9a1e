/** The settings that only a restart changes: how the gateway listens and where it stores. The rest can be reloaded. */
import { isDeepStrictEqual } from "node:util";
import { type Config, hasListener } from "./config/config.ts";

/** The fixed keys in which two configurations differ. */
export function findFixed(before: Config, after: Config): readonly string[] {
  return Object.entries(fixed).flatMap(([key, read]) => (isDeepStrictEqual(read(before), read(after)) ? [] : [key]));
}

const fixed: Readonly<Record<string, (config: Config) => unknown>> = {
  "gateway.data_dir": ({ dataDir }) => dataDir,
  "gateway.http.bind": ({ http }) => http.bind,
  "gateway.http.port": ({ http }) => http.port,
  "gateway.http.socket_mode": ({ http }) => http.socketMode,
  "gateway.http.endpoints": ({ http }) => hasListener(http),
  "gateway.http.limits.headers_timeout_ms": ({ http }) => http.limits.headersTimeoutMs,
  "gateway.sessions.store": ({ sessions }) => sessions.store,
};
