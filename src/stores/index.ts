/** Opens the store that a URL names. */
import { isAbsolute } from "node:path";
import type { SessionStore } from "../core/store.ts";
import { createSqliteStore } from "./sqlite.ts";

/**
 * The URL's scheme names the kind of store: `memory:` forgets at the end, `sqlite:<absolute path>` and `redis://…` do
 * not. `warn` is told what works less well, for a while or as configured.
 */
export async function openStore(url: string, warn?: Warn): Promise<SessionStore> {
  const scheme = url.slice(0, url.indexOf(":") + 1);
  const open = schemes.get(scheme);
  // Shows only the scheme: the rest may contain a password.
  if (open === undefined) throw new Error(`Unknown session store '${scheme}'. Known stores: ${known}.`);
  return open(url, warn);
}

type Warn = (message: string) => void;

const schemes = new Map<string, (url: string, warn?: Warn) => SessionStore | Promise<SessionStore>>([
  ["memory:", () => createSqliteStore({ file: ":memory:" })],
  ["sqlite:", openSqlite],
  ["redis:", openRedis],
  ["rediss:", openRedis],
]);

const known = "memory:, sqlite:<absolute path>, redis://<host>, rediss://<host>";

function openSqlite(url: string, warn?: Warn): SessionStore {
  const file = url.slice("sqlite:".length);
  if (isAbsolute(file)) return createSqliteStore({ file, warn });
  throw new Error(`The session store '${url}' must name its file by an absolute path.`);
}

/** Its code and its client library are loaded only when needed. */
async function openRedis(url: string, warn?: Warn): Promise<SessionStore> {
  const { createRedisStore } = await import("./redis.ts");
  return createRedisStore({ url, warn });
}
