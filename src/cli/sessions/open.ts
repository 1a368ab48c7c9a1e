/** Opens the configured store beside a gateway that may run on it, and closes it again. */
import { existsSync } from "node:fs";
import type { SessionsConfig } from "../../config/config.ts";
import { hideSecrets } from "../../config/hide.ts";
import { fileOfStore } from "../../config/store.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SessionStore } from "../../core/store.ts";
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
  const { config } = await readSettings(options, terminal, house);
  const { store: url } = config.sessions;
  const file = fileOfStore(url);

  function endWithout(reason: string): number {
    terminal.complain(`There is nothing to see: ${reason}`);
    if (typeof whenAbsent !== "function") return 1;
    whenAbsent();
    return 0;
  }

  if (url === "memory:") return endWithout('the store is "memory:", which lives in the running gateway alone.');
  // To look at a store must not make one.
  if (whenAbsent !== "make" && !(await isThere(url, file))) {
    return endWithout(`no store is at ${file ?? hideSecrets(url)} yet.`);
  }
  const { openStore } = await import("../../stores/index.ts");
  const store = await openStore(url);
  try {
    return await use({ store, file, config: config.sessions });
  } catch (thrown) {
    throw thrown instanceof GatewayError ? nameCause(thrown, file) : thrown;
  } finally {
    await store.close();
  }
}

/** A gateway tells strangers neither its file nor what the system says of it, and has a log for that; there is none here. */
export function nameCause(failure: GatewayError, file: string | undefined): GatewayError {
  const { code, message, cause } = failure;
  if (code !== "store_unavailable" || file === undefined) return failure;
  if (!(cause instanceof Error) || message.includes(cause.message)) return failure;
  const where = cause.message.includes(file) ? "" : `${file}: `;
  return new GatewayError(code, `${message} (${where}${cause.message})`, { cause });
}

async function isThere(url: string, file: string | undefined): Promise<boolean> {
  if (file !== undefined) return existsSync(file);
  const { inspectRedis } = await import("../../stores/redis/inspect.ts");
  return (await inspectRedis(url)).version !== undefined;
}
