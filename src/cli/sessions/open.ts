/** Opens the configured store beside a gateway that may run on it, and closes it again. */
import { existsSync } from "node:fs";
import type { SessionsConfig } from "../../config/config.ts";
import type { SessionStore } from "../../core/store.ts";
import type { Arguments } from "../command.ts";
import type { House } from "../house.ts";
import { readSettings } from "../settings.ts";
import type { Terminal } from "../terminal.ts";

export interface Opened {
  readonly store: SessionStore;
  readonly file: string;
  readonly config: SessionsConfig;
}

/** Gives what `use` gives; where there is nothing to see it says so, and gives 0. */
export async function withStore(
  { options }: Arguments,
  terminal: Terminal,
  house: House,
  use: (opened: Opened) => Promise<number>,
  whenAbsent: "tell" | "make" = "tell",
): Promise<number> {
  const { config } = await readSettings({ config: options["config"] }, terminal, house);
  const { store: place } = config.sessions;
  if (place.type === "memory") {
    terminal.complain('There is nothing to see: the store is "memory:", which lives in the running gateway alone.');
    return 0;
  }
  // To look at a store must not make one.
  if (whenAbsent === "tell" && !existsSync(place.file)) {
    terminal.complain(`There is nothing to see: no store is at ${place.file} yet.`);
    return 0;
  }
  const { openStore } = await import("../../stores/index.ts");
  const store = openStore(`sqlite:${place.file}`);
  try {
    return await use({ store, file: place.file, config: config.sessions });
  } finally {
    await store.close();
  }
}
