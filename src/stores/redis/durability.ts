/** Finds out whether Redis is set up so that turns which were acknowledged could be lost. */
import type { Address } from "./address.ts";
import { type Reply, toTexts } from "./script.ts";

/** In words for the operator. Managed servers do not tell how they are set up; then nothing is said. */
export async function findLosses(
  send: (...command: readonly string[]) => Promise<Reply>,
  { replicas }: Address,
): Promise<readonly string[]> {
  const losses: string[] = [];
  const wanted = ["appendonly", "maxmemory", "maxmemory-policy"];
  const texts = toTexts(await send("CONFIG", "GET", ...wanted).catch(() => []));
  const settings = new Map(wanted.map((name) => [name, texts[texts.indexOf(name) + 1]]));
  const policy = settings.get("maxmemory-policy") ?? "noeviction";
  if (settings.get("appendonly") === "no") {
    losses.push(
      "Redis keeps turns in memory and writes them down only now and then: those of the last minutes are lost when it stops. Set `appendonly yes` in it, and `appendfsync always` to lose none at all.",
    );
  }
  if (policy !== "noeviction" && settings.get("maxmemory") !== "0") {
    losses.push(
      `Redis may throw away what the gateway keeps when it runs out of memory (maxmemory-policy ${policy}). Set \`maxmemory-policy noeviction\` in it.`,
    );
  }
  const told = await send("INFO", "replication").catch(() => "");
  if (replicas === 0 && /connected_slaves:[1-9]/.test(String(told))) {
    losses.push(
      "Redis has a replica, which may lack the last turns if it has to take over. Add replicas=1 to the URL (gateway.sessions.store), so that a turn is acknowledged when a replica has it.",
    );
  }
  return losses;
}
