/** Inspects what is at the URL of a Redis store without changing it. */
import { readAddress } from "./address.ts";
import { openConnection } from "./connection.ts";
import { findLosses } from "./durability.ts";
import { newestVersion } from "./schema.ts";
import { cannotOpen } from "./trouble.ts";

export interface Inspection {
  /** The URL without its password. */
  readonly shown: string;
  /** Of the schema, as it is written there; undefined if there is no store yet. */
  readonly version: string | undefined;
  /** The version that this program knows. */
  readonly newest: number;
  /** Server settings with which turns could be lost. */
  readonly losses: readonly string[];
}

/** Throws `store_unavailable` with one sentence when it cannot be reached, or refuses. */
export async function inspectRedis(url: string): Promise<Inspection> {
  const address = readAddress(url);
  const { shown } = address;
  try {
    const times = { openingMs: 3_000, timeoutMs: 3_000, copyingMs: 3_000 };
    const connection = await openConnection({ address, scripts: [], ...times });
    try {
      const send = (...command: readonly string[]) => connection.send(command);
      const version = await send("GET", `${address.keyPrefix}version`);
      const losses = await findLosses(send, address);
      return { shown, version: version === null ? undefined : String(version), newest: newestVersion, losses };
    } finally {
      await connection.close();
    }
  } catch (thrown) {
    throw cannotOpen(thrown, shown);
  }
}
