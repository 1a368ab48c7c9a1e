/** Finds out whether Redis is configured so that acknowledged turns could be lost. */
import type { Address } from "./address.ts";
import { type Reply, toTexts } from "./script.ts";

/** In words for the operator; nothing about what a server does not tell: managed ones hide their settings. */
export async function findLosses(
  send: (...command: readonly string[]) => Promise<Reply>,
  { replicas }: Address,
): Promise<readonly string[]> {
  const losses: string[] = [];
  const settings = toTexts(await send("CONFIG", "GET", "appendonly").catch(() => []));
  // Servers that hide their settings tell this much, too.
  const told = String(await send("INFO").catch(() => ""));
  const [, policy = "noeviction"] = /^maxmemory_policy:(\S+)/m.exec(told) ?? [];
  if (settings[1] === "no") {
    losses.push(
      "Redis keeps turns in memory and saves them only now and then: those of the last minutes are lost if it stops. Set `appendonly yes` in Redis, and `appendfsync always` to lose none at all.",
    );
  }
  if (policy !== "noeviction" && !/^maxmemory:0\b/m.test(told)) {
    losses.push(
      `Redis may evict the gateway's data when it runs out of memory (maxmemory-policy ${policy}). Set \`maxmemory-policy noeviction\` in Redis.`,
    );
  }
  if (replicas === 0 && /^connected_slaves:[1-9]/m.test(told)) {
    losses.push(
      "Redis has a replica, which may lack the last turns if it has to take over. Add replicas=1 to the URL (gateway.sessions.store), so that a turn is acknowledged only once a replica has it.",
    );
  }
  return losses;
}
