/** PgBouncer as most run it: what a connection sets or prepares is in another session after its transaction. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeHome, startDaemon } from "./daemon.ts";
import { need } from "./needs.ts";
import { endAfter, findFreePort, type Scope } from "./scope.ts";

/** Returns an address for the same database, by way of a pooler that is killed at the end. */
export async function openPooler(scope: Scope, address: string): Promise<string> {
  const home = makeHome(scope);
  const port = await findFreePort();
  const server = new URL(address);
  const settings = [
    "[databases]",
    `* = host=${server.hostname} port=${server.port || 5432} user=${server.username}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
  ];
  writeFileSync(join(home.cwd, "pgbouncer.ini"), settings.join("\n"));
  const daemon = await startDaemon(need("pgbouncer").path, ["pgbouncer.ini"], home, "process up");
  endAfter(scope, () => daemon.end());
  server.host = `127.0.0.1:${port}`;
  return server.href;
}
