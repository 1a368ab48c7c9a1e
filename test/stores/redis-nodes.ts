/** A Redis cluster for tests: three primaries, and a replica of the one that holds all stores. */
import { setTimeout as wait } from "node:timers/promises";
import { findFreePort } from "../gateway.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

export interface RedisCluster {
  /** The two that may hold stores: a primary and its replica. */
  readonly pair: readonly [RedisServer, RedisServer];
  /** Two more primaries. They are empty at first. */
  readonly others: readonly [RedisServer, RedisServer];
  /** The URL of a store that no other test uses. It names a node that is empty. */
  url(settings?: string): string;
  /** Which of the two is the primary now. */
  findPair(): Promise<{ readonly primary: RedisServer; readonly replica: RedisServer }>;
  /** Lets the replica take over, with the primary's consent. */
  failOver(): Promise<void>;
  /** Moves the slot of a prefix away from the pair; `meanwhile` is called when half of its keys have been moved. */
  moveSlot(prefix: string, to: RedisServer, meanwhile?: () => Promise<void>): Promise<void>;
  remove(): Promise<void>;
}

export async function startCluster(): Promise<RedisCluster> {
  const buses = await Promise.all(Array.from({ length: 4 }, findFreePort));
  const servers = await Promise.all(buses.map(startNode));
  const [first, second, third, fourth] = servers as [RedisServer, RedisServer, RedisServer, RedisServer];
  const pair = [first, fourth] as const;
  let stores = 0;

  await demand(first, "CLUSTER", "ADDSLOTSRANGE", "0", "16381");
  await demand(second, "CLUSTER", "ADDSLOTS", "16382");
  await demand(third, "CLUSTER", "ADDSLOTS", "16383");
  for (const [index, server] of servers.entries()) {
    await demand(server, "CLUSTER", "SET-CONFIG-EPOCH", String(index + 1));
    // Each meets each, as they are slow to announce others.
    for (const other of servers.slice(0, index)) {
      await demand(other, "CLUSTER", "MEET", "127.0.0.1", String(server.port), String(buses[index]));
    }
  }
  await until(() => everyone(/^(?![^]*handshake)([^]* connected){4}/, "CLUSTER", "NODES"));
  await demand(fourth, "CLUSTER", "REPLICATE", await readId(first));
  await until(() => everyone(/cluster_state:ok/, "CLUSTER", "INFO"));
  await whenCopied(pair[1]);

  async function everyone(wanted: RegExp, ...command: readonly string[]): Promise<boolean> {
    const replies = await Promise.all(servers.map((server) => server.ask(...command)));
    return replies.every((reply) => wanted.test(reply));
  }

  async function findPair() {
    const isPrimary = /role:master/.test(await pair[0].ask("INFO", "replication").catch(() => ""));
    return isPrimary ? { primary: pair[0], replica: pair[1] } : { primary: pair[1], replica: pair[0] };
  }

  return {
    pair,
    others: [second, third],
    url: (settings = `prefix=store${(stores += 1)}`) => `redis://127.0.0.1:${third.port}?${settings}`,
    findPair,
    async failOver() {
      const { primary, replica } = await findPair();
      // Redis itself abandons an attempt after five seconds.
      for (let attempts = 0; (await findPair()).primary !== replica; attempts += 1) {
        if (attempts % 300 === 0) await demand(replica, "CLUSTER", "FAILOVER");
        await wait(20);
      }
      await whenCopied(primary);
    },
    async moveSlot(prefix, to, meanwhile) {
      const { primary: from } = await findPair();
      const slot = /\d+/.exec(await from.ask("CLUSTER", "KEYSLOT", `{${prefix}}`))![0];
      const [fromId, toId] = [await readId(from), await readId(to)];
      await demand(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
      await demand(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
      const count = Number(/\d+/.exec(await from.ask("CLUSTER", "COUNTKEYSINSLOT", slot))![0]);
      const moveSome = async (most: number): Promise<boolean> => {
        const keys = (await from.ask("CLUSTER", "GETKEYSINSLOT", slot, String(most))).match(/\{\S+/g) ?? [];
        if (keys.length === 0) return false;
        await demand(from, "MIGRATE", "127.0.0.1", String(to.port), "", "0", "20000", "KEYS", ...keys);
        return true;
      };
      await moveSome(Math.min(Math.ceil(count / 2), 100));
      await meanwhile?.();
      while (await moveSome(100));
      for (const server of [to, from, second, third]) await demand(server, "CLUSTER", "SETSLOT", slot, "NODE", toId);
    },
    async remove() {
      await Promise.all(servers.map((server) => server.remove()));
    },
  };
}

function startNode(bus: number): Promise<RedisServer> {
  // A busy machine must not count as unreachable, and a replica that was disconnected for long may still take over.
  const patience = ["--cluster-node-timeout", "30000", "--cluster-replica-validity-factor", "0"];
  const haste = ["--repl-diskless-sync-delay", "0"];
  return startRedis("--cluster-enabled", "yes", "--cluster-port", String(bus), ...patience, ...haste);
}

/** Polls for what happens by itself after a while. */
export async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await wait(20);
}

async function whenCopied(replica: RedisServer): Promise<void> {
  await until(async () => /role:slave[^]*master_link_status:up/.test(await replica.ask("INFO", "replication")));
}

async function readId(server: RedisServer): Promise<string> {
  return /[0-9a-f]{40}/.exec(await server.ask("CLUSTER", "MYID"))![0];
}

async function demand(server: RedisServer, ...command: readonly string[]): Promise<void> {
  const reply = await server.ask(...command);
  if (!/^\+(OK|NOKEY)/.test(reply)) throw new Error(`${command.join(" ")}: ${reply}`);
}
