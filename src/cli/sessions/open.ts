/** Opens the configured store beside a gateway that may run on it, and closes it again. */
import { statSync } from "node:fs";
import type { SessionsConfig } from "../../config/config.ts";
import { hideSecrets } from "../../config/hide.ts";
import { fileOfStore } from "../../config/store.ts";
import { codeOf, GatewayError } from "../../core/errors.ts";
import type { SessionStore } from "../../core/store.ts";
import { type Arguments, CommandError } from "../command.ts";
import { readSettings } from "../settings.ts";
import type { Terminal } from "../terminal.ts";

export interface Opened {
  readonly store: SessionStore;
  /** If the store is a file. */
  readonly file: string | undefined;
  readonly config: SessionsConfig;
}

/**
 * Returns what `use` returns. If there is no store, it says so and fails or, if `whenAbsent` is a function, lets that
 * give an empty answer; "make" creates the store.
 */
export async function withStore(
  { options }: Arguments,
  terminal: Terminal,
  whenAbsent: "fail" | "make" | (() => void),
  use: (opened: Opened) => Promise<number>,
): Promise<number> {
  const { config } = await readSettings(options, terminal);
  const { store: url } = config.sessions;
  const file = fileOfStore(url);

  function endWithout(reason: string): number {
    terminal.complain(`There is nothing to see: ${reason}`);
    if (typeof whenAbsent !== "function") return 1;
    whenAbsent();
    return 0;
  }

  if (url === "memory:") return endWithout('the store is "memory:", which exists only inside the running gateway.');
  // Looking at a store must not make one.
  if (whenAbsent !== "make" && !(await storeExists(url, file))) {
    return endWithout(`there is no store at ${file ?? hideSecrets(url)} yet.`);
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

/** A gateway hides its file and the system's errors from strangers, and logs them; here there is no log. */
export function nameCause(failure: GatewayError, file: string | undefined): GatewayError {
  const { code, message, cause } = failure;
  if (code !== "store_unavailable" || file === undefined) return failure;
  if (!(cause instanceof Error) || message.includes(cause.message)) return failure;
  const where = cause.message.includes(file) ? "" : `${file}: `;
  return new GatewayError(code, `${message} (${where}${cause.message})`, { cause });
}

/** Throws if it cannot tell. */
export async function storeExists(url: string, file: string | undefined): Promise<boolean> {
  if (file !== undefined) return fileExists(file);
  const { inspectRedis } = await import("../../stores/redis/inspect.ts");
  return (await inspectRedis(url)).version !== undefined;
}

/** Throws if it cannot tell. */
function fileExists(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (thrown) {
    throw new CommandError(`The store ${file} cannot be read (${codeOf(thrown)}); run this as the gateway's user.`);
  }
}
