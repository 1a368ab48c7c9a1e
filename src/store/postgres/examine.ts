/** What an operator should know of the database's server. Changes nothing. */
import type { Trait } from "../store.ts";
import { maxConnections, openDatabase } from "./database.ts";
import { prepareTables, readLayout } from "./layout.ts";

/** Throws if it cannot be used. */
export async function examine(address: string): Promise<readonly Trait[]> {
  const database = openDatabase(address, () => {}, 1);
  try {
    const rows = await database.tables.all<{ readonly well: number; readonly text: string }>(question, maxConnections);
    const traits = rows.map(({ well, text }): Trait => [well === 1, text]);
    traits.push([true, (await database.isPooled()) ? "reached through a pooler" : "reached without a pooler"]);
    if ((await readLayout(database.tables)) === 0) return [...traits, [true, "its tables are made at the first start"]];
    await prepareTables(address, database, false);
    const living = await database.tables.one<{ readonly count: number }>(livingQuestion);
    return [...traits, [true, `${living?.count ?? 0} gateway processes use it now`]];
  } finally {
    await database.close();
  }
}

const question = `WITH now AS (SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
    current_setting('max_connections') AS most, (SELECT count(*) FROM pg_stat_activity) AS used)
  SELECT 1 AS well, 'PostgreSQL ' || current_setting('server_version') AS text
  UNION ALL SELECT CASE fsync WHEN 'on' THEN 1 ELSE 0 END, 'fsync is ' || fsync
    || CASE fsync WHEN 'on' THEN '' ELSE ': a crash of its machine may damage the database. Set it to on' END FROM now
  UNION ALL SELECT CASE commit WHEN 'off' THEN 0 ELSE 1 END, 'synchronous_commit is ' || commit
    || CASE commit WHEN 'off' THEN ': a crash of the server loses turns that were answered. Set it to on' ELSE '' END FROM now
  UNION ALL SELECT CASE WHEN CAST(most AS BIGINT) - used < CAST(? AS BIGINT) THEN 0 ELSE 1 END,
    used || ' of ' || most || ' connections are used; a gateway process takes up to ${maxConnections}' FROM now`;
const livingQuestion = `SELECT count(*) AS count FROM process
  WHERE beat > extract(epoch FROM clock_timestamp()) * 1000 - 3000`;
