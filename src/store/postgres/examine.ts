/** What an operator should know of the database's server. Changes nothing. */
import type { Trait } from "../store.ts";
import { type Database, maxConnections, openDatabase } from "./database.ts";
import { prepareTables } from "./layout.ts";

interface Server {
  readonly version: string;
  readonly fsync: string;
  readonly commit: string;
  readonly used: number;
  readonly most: number;
  readonly layout: string | null;
}

/** Throws if it cannot be used. */
export async function examine(address: string): Promise<readonly Trait[]> {
  const database = openDatabase(address, () => {});
  try {
    const server = await database.tables.one<Server>(serverStatement);
    return server === undefined ? [] : [...toTraits(server), ...(await examineTables(database, server))];
  } finally {
    await database.close();
  }
}

function toTraits({ version, fsync, commit, used, most }: Server): readonly Trait[] {
  const isSynced = fsync === "on";
  const isWaitedFor = commit !== "off";
  const hasRoom = most - used >= maxConnections;
  return [
    [true, `PostgreSQL ${version}`],
    [isSynced, `fsync is ${fsync}${isSynced ? "" : ": a crash of its machine may damage the database. Set it to on"}`],
    [
      isWaitedFor,
      `synchronous_commit is ${commit}${isWaitedFor ? "" : ": a crash of the server loses turns that were answered. Set it to on"}`,
    ],
    [
      hasRoom,
      `${used} of ${most} connections are used; a gateway process takes up to ${maxConnections}${hasRoom ? "" : ". Raise max_connections, or put a pooler in front"}`,
    ],
  ];
}

async function examineTables(database: Database, { layout }: Server): Promise<readonly Trait[]> {
  const pooler: Trait = [true, (await database.isPooled()) ? "reached through a pooler" : "reached without a pooler"];
  if (layout === null) return [pooler, [true, "its tables are made at the first start"]];
  await prepareTables(database);
  const living = await database.tables.one<{ readonly gateways: number }>(livingStatement);
  return [pooler, [true, `${living?.gateways ?? 0} gateway processes use it now`]];
}

const serverStatement = `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS commit, (SELECT count(*) FROM pg_stat_activity) AS used,
  CAST(current_setting('max_connections') AS BIGINT) AS most, to_regclass('layout') AS layout`;
const livingStatement = `SELECT count(*) AS gateways FROM process
  WHERE beat > extract(epoch FROM clock_timestamp()) * 1000 - 5000`;
