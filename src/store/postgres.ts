/** The store of many processes: a database of PostgreSQL that is ours alone. */
import { GatewayError } from "../core/errors.ts";
import type { Query } from "../core/store.ts";
import type { Access } from "./access.ts";
import { cold, toNumber } from "./cold.ts";
import { createConversations } from "./conversations.ts";
import { createGrouped } from "./grouped.ts";
import { createKeeping, type Keeping } from "./keeping.ts";
import { createOperator } from "./operator.ts";
import { createCommits } from "./postgres/commit.ts";
import { codeOf, type Database, maxConnections, openDatabase } from "./postgres/database.ts";
import { createFind } from "./postgres/find.ts";
import { prepareTables } from "./postgres/layout.ts";
import { meet } from "./postgres/meeting.ts";
import { createLoadTexts, createPaths } from "./postgres/path.ts";
import { createOwnWrites } from "./postgres/writes.ts";
import { createReads } from "./reads.ts";
import { type KeyedRow, type ReadTurn, toInterrupted, toRow, toTurn, type TurnRow } from "./rows.ts";
import { createSecrets, readSecrets } from "./secrets.ts";
import { type ColdStore, type GatewayStore, sessionErased } from "./store.ts";

/** As a gateway opens it; others may be on it already. */
export function openPostgres(address: string, mayMigrate: boolean): Promise<GatewayStore> {
  return open(address, mayMigrate, async ({ database, access, keeping, migratedFrom, close }) => {
    // A sign of life waits behind nothing.
    const lifeline = openDatabase(address, keeping.suffer, 1);
    const { secrets } = access;
    const { tables } = database;
    const meeting = await meet(database, lifeline, {
      secrets,
      async stored(owner, key) {
        const row = await tables.one<ReadTurn>(cold.ended, toNumber(key), key, owner);
        return row && toTurn(row, await access.loadTexts([row]));
      },
    });
    const find = createFind(database);
    const finds = createGrouped((queries: readonly Query[]) => find(queries, meeting.before(queries)));
    const paths = createGrouped(createPaths(database, access.loadTexts));
    const commits = createGrouped(createCommits(database));

    async function commit(row: TurnRow): Promise<void> {
      if (!(await commits.send(row))) throw sessionErased();
      keeping.saved();
    }

    return {
      migratedFrom,
      others: meeting.others,
      ...createConversations(access, tables),
      ...createOperator(access),
      sessionOf: secrets.sessionOf,
      sealKeys: secrets.sealKeys,
      checkKeeping: keeping.checkKeeping,
      check: keeping.check,
      find: finds.send,
      path: ({ turn }) => paths.send(turn),
      commit: (turn) => commit(toRow(turn, secrets)),
      async turn(owner, key) {
        const row = await tables.one<ReadTurn>(cold.turn, toNumber(key), key, owner);
        return row && toTurn(row, await access.loadTexts([row]));
      },
      begin: (turn) => commit(toInterrupted(turn, secrets)),
      async keyed(owner, key, since) {
        const row = await tables.one<KeyedRow>(cold.keyed, secrets.nameKey(owner, key), owner, since);
        return row && { ...toTurn(row, await access.loadTexts([row])), fingerprint: row.fingerprint };
      },
      async close() {
        await Promise.all([finds.idle(), commits.idle()]);
        await meeting.leave();
        await lifeline.close();
        await close();
      },
    };
  });
}

/** As the command line opens it, beside whatever gateways run. */
export function openColdPostgres(address: string): Promise<ColdStore> {
  return open(address, false, async ({ access, keeping, close }) => ({
    ...createOperator(access),
    check: keeping.check,
    close,
  }));
}

interface Opened {
  readonly database: Database;
  readonly access: Access;
  readonly keeping: Keeping;
  readonly migratedFrom: number | undefined;
  close(): Promise<void>;
}

/** A database that cannot be used is not left open. */
async function open<Store>(
  address: string,
  mayMigrate: boolean,
  make: (opened: Opened) => Promise<Store>,
): Promise<Store> {
  const keeping = createKeeping(async (bytes) => {
    await database.tables.run(cold.setNote, "probe", "0".repeat(bytes));
    keeping.saved();
  });
  const database = openDatabase(address, keeping.suffer, maxConnections - 1);
  async function close(): Promise<void> {
    keeping.stop();
    await database.close();
  }
  try {
    const migratedFrom = await prepareTables(address, database, mayMigrate);
    return await make({ database, access: await openAccess(database), keeping, migratedFrom, close });
  } catch (thrown) {
    await close();
    throw explain(thrown);
  }
}

async function openAccess(database: Database): Promise<Access> {
  const { tables, transact } = database;
  const reads = createReads(tables) as Functions;
  const isThere = async (id: string): Promise<boolean> =>
    (await tables.one(cold.sessionById, toNumber(id.slice("conv_".length)))) !== undefined;
  return {
    secrets: createSecrets(await readSecrets(tables), () => readSecrets(tables), isThere),
    loadTexts: createLoadTexts(database),
    read: (name, given) => call(reads, name, given) as never,
    write: (name, given) => transact((own) => call(createOwnWrites(own) as Functions, name, given)) as never,
    // It is gone from every column; its space the server's own vacuum takes back.
    scrub: async () => {},
    hasUnfinishedErasure: () => false,
  };
}

/** What the server says of a database that is not there, or not ours, is for the operator alone. */
function explain(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !/^(28|3D|42501)/.test(codeOf(thrown))) return thrown;
  const { message } = (thrown.cause ?? thrown) as Error;
  const told = `The session store's database refuses the gateway: ${message}. Check its address (gateway.sessions.store).`;
  return new GatewayError("store_unavailable", told, { cause: thrown, isLasting: true });
}

type Functions = Readonly<Record<string, (given: never) => Promise<unknown>>>;

const call = async (functions: Functions, name: string, given: unknown): Promise<unknown> =>
  functions[name]?.(given as never);
