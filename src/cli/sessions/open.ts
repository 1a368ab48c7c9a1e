/** Opens the configured store beside a gateway that may run on it, and closes it again. */
import { existsSync } from "node:fs";
import type { SessionsConfig, StoreConfig } from "../../config/config.ts";
import { maskSecrets } from "../../config/mask.ts";
import type { SessionStore } from "../../core/store.ts";
import { toStoreUrl } from "../../parts.ts";
import type { Arguments } from "../command.ts";
import type { House } from "../house.ts";
import { readSettings } from "../settings.ts";
import type { Terminal } from "../terminal.ts";

export interface Opened {
  readonly store: SessionStore;
  /** Where the store is a file. */
  readonly file: string | undefined;
  readonly config: SessionsConfig;
}

/**
 * Gives what `use` gives. Where there is no store it says so: whoever wanted something of it has failed, whoever only asked
 * gets an empty answer, and what is to be put in makes one.
 */
export async function withStore(
  { options }: Arguments,
  terminal: Terminal,
  house: House,
  use: (opened: Opened) => Promise<number>,
  whenAbsent: "fail" | "make" | (() => void) = "fail",
): Promise<number> {
  const { config } = await readSettings({ config: options["config"] }, terminal, house);
  const { store: place } = config.sessions;

  function endWithout(reason: string): number {
    terminal.complain(`There is nothing to see: ${reason}`);
    if (typeof whenAbsent !== "function") return 1;
    whenAbsent();
    return 0;
  }

  if (place.type === "memory") return endWithout('the store is "memory:", which lives in the running gateway alone.');
  // To look at a store must not make one.
  if (whenAbsent !== "make" && !(await isThere(place))) {
    return endWithout(`no store is at ${place.type === "sqlite" ? place.file : String(maskSecrets(place.url))} yet.`);
  }
  const { openStore } = await import("../../stores/index.ts");
  const store = await openStore(toStoreUrl(config));
  try {
    return await use({ store, file: place.type === "sqlite" ? place.file : undefined, config: config.sessions });
  } finally {
    await store.close();
  }
}

async function isThere(place: Exclude<StoreConfig, { readonly type: "memory" }>): Promise<boolean> {
  if (place.type === "sqlite") return existsSync(place.file);
  const { inspectRedis } = await import("../../stores/redis/inspect.ts");
  return (await inspectRedis(place.url)).version !== undefined;
}
