/** Opens a store by its address: a file that belongs to one gateway, or a database of many. */
import type { ColdStore, GatewayStore, Trait } from "./store.ts";

/**
 * `onFatal`: the store can never be trusted again, so the gateway must stop, and say why. `mayMigrate`: a store of an
 * older layout is brought to the newest; else it is refused.
 */
export async function openStore(
  address: string,
  onFatal: (message: string) => void,
  mayMigrate: boolean,
): Promise<GatewayStore> {
  const file = fileOf(address);
  // Each brings a driver of its own.
  if (file !== undefined) return (await import("./sqlite.ts")).openSqlite(file, onFatal, mayMigrate);
  return (await import("./postgres.ts")).openPostgres(address, mayMigrate);
}

/** As the command line opens it, whether or not gateways run on it. */
export async function openCold(address: string): Promise<ColdStore> {
  const file = fileOf(address);
  if (file !== undefined) return (await import("./sqlite.ts")).openColdSqlite(file);
  return (await import("./postgres.ts")).openColdPostgres(address);
}

/** What is said of a database's server. Throws if it cannot be used. */
export async function examineServer(address: string): Promise<readonly Trait[]> {
  return (await import("./postgres/examine.ts")).examine(address);
}

/** Undefined: it is a database's. */
export function fileOf(address: string): string | undefined {
  return address.startsWith("sqlite:") ? address.slice("sqlite:".length) : undefined;
}
