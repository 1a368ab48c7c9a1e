/** Stores turns in Redis or Valkey: each commit is one script, hence atomic, and one round trip. */
import type { SessionStore } from "../core/store.ts";
import { readAddress } from "./redis/address.ts";
import { createArchive } from "./redis/archive.ts";
import { createServerCheck } from "./redis/check.ts";
import { type Connection, type ConnectionOptions, openConnection } from "./redis/connection.ts";
import { createConversations } from "./redis/conversations.ts";
import { createDebts } from "./redis/debts.ts";
import { findLosses } from "./redis/durability.ts";
import { createGround } from "./redis/ground.ts";
import { createImport } from "./redis/import.ts";
import { createKeeping } from "./redis/keeping.ts";
import { type LeaseTimes, createLease } from "./redis/lease.ts";
import { createNeighbours } from "./redis/neighbours.ts";
import { createDeletion, createPrune } from "./redis/removal.ts";
import { scripts } from "./redis/scripts.ts";
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
  let forget: (() => void) | undefined;
  const settling: (() => void)[] = [];
  const lease = createLease(times, () => settling.forEach((settle) => settle()));
  const onReady = (made: Connection) => {
    forget?.();
    lease.reconnect(made);
  };
  const wanted = { address, scripts: Object.values(scripts), onReady, onForgotten: lease.retake, ...times };
  const connection = await openConnection(wanted).catch(refuse);
  try {
    const ground = await createGround({ connection, lease, address, now, maxRecentSize });
    forget = ground.forget;
    const search = createSearch(ground);
    const deletion = createDeletion(ground);
    const debts = createDebts();
    const neighbours = createNeighbours(ground, connection, times);
    // Turns' ends are stored before their names are released. Redis may also have come back empty, and the command line
    // looks for what marks a store.
    settling.push(debts.settle, neighbours.settle, () => void ground.prepare().catch(() => {}));
    return {
      ...search,
      neighbours,
      ...createKeeping(ground, debts, neighbours, deletion),
      ...deletion,
      prune: createPrune(ground),
      ...createConversations(ground),
      ...createArchive(ground, search.readPath),
      importRecords: createImport(ground),
      async claim() {
        await lease.claim(connection);
        await neighbours.open();
        for (const loss of await findLosses(ground.send, address)) warn(loss);
      },
      check: createServerCheck(ground, connection.isReady),
      async close() {
        if (!ground.isOpen()) return;
        ground.close();
        await neighbours.close();
        await lease.release(connection);
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
