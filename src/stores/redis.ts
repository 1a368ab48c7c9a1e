/** Stores turns in Redis or Valkey: each commit is one script, hence atomic, and one round trip. */
import type { SessionStore } from "../core/store.ts";
import { readAddress } from "./redis/address.ts";
import { createArchive } from "./redis/archive.ts";
import { createServerCheck } from "./redis/check.ts";
import { type ConnectionOptions, openConnection } from "./redis/connection.ts";
import { createConversations } from "./redis/conversations.ts";
import { createRetries } from "./redis/retries.ts";
import { findLosses } from "./redis/durability.ts";
import { createAccess } from "./redis/access.ts";
import { createImport } from "./redis/import.ts";
import { createTurnWriter } from "./redis/writer.ts";
import { type LeaseTimes, createLease } from "./redis/lease.ts";
import { createPeers } from "./redis/peers.ts";
import { createDeletion, createPrune } from "./redis/removal.ts";
import * as scripts from "./redis/scripts.ts";
import { createSearch } from "./redis/search.ts";
import { cannotOpen } from "./redis/trouble.ts";

export interface RedisStoreOptions {
  /** `redis[s]://[user:password@]host[:port][,host[:port]…][/database][?prefix=NAME][&replicas=N]`. */
  readonly url: string;
  readonly now?: (() => Date) | undefined;
  /** How many characters of turns are cached; each turn counts as a thousand more than its items have. */
  readonly maxRecentSize?: number | undefined;
  /** Told of server settings that could lose turns; by default a process warning. */
  readonly warn?: ((message: string) => void) | undefined;
  readonly times?: Partial<RedisTimes> | undefined;
}

type RedisTimes = LeaseTimes & Pick<ConnectionOptions, "openingMs" | "timeoutMs" | "copyingMs">;

const usualTimes: RedisTimes = {
  openingMs: 5_000,
  timeoutMs: 5_000,
  copyingMs: 1_000,
  leaseMs: 10_000,
  renewMs: 3_000,
};

/** A store in Redis, created if it is missing. Throws `store_unavailable` with one sentence if it cannot be opened. */
export async function createRedisStore(options: RedisStoreOptions): Promise<SessionStore> {
  const { now = () => new Date(), maxRecentSize, warn = warnProcess } = options;
  const times = { ...usualTimes, ...options.times };
  const address = readAddress(options.url);
  const refuse = (thrown: unknown): never => {
    throw cannotOpen(thrown, address.shown);
  };
  const connection = await openConnection({ address, scripts: Object.values(scripts), ...times }).catch(refuse);
  try {
    // Turns' ends are stored before their names are released. Redis may also have come back empty, and the command line
    // looks for what marks a store.
    const lease = createLease(connection, times, () => {
      retries.retryAll();
      peers.renew();
      access.prepare().catch(() => {});
    });
    const access = await createAccess(connection, lease, address, now, maxRecentSize);
    connection.onReconnect(() => {
      access.forget();
      lease.reconnect();
    });
    const search = createSearch(access);
    const deletion = createDeletion(access);
    const retries = createRetries();
    const peers = createPeers(access, connection, lease, times);
    return {
      ...search,
      peers,
      ...createTurnWriter(access, retries, peers, deletion),
      ...deletion,
      prune: createPrune(access),
      ...createConversations(access),
      ...createArchive(access, search.readPath),
      importRecords: createImport(access),
      async claim() {
        await lease.claim();
        await peers.open();
        for (const loss of await findLosses(access.send, address)) warn(loss);
      },
      check: createServerCheck(access, connection.isReady),
      async close() {
        if (!access.isOpen()) return;
        access.close();
        await peers.close();
        await lease.release();
        await connection.close();
      },
    };
  } catch (thrown) {
    await connection.close();
    return refuse(thrown);
  }
}

function warnProcess(message: string): void {
  process.emitWarning(message, "PorticoWarning");
}
