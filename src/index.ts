/** What a program that embeds Portico imports. */
import { type GivenAdapter } from "./adapters/module.ts";
import { loadConfig, type Loaded } from "./config/load.ts";
import { ConfigError, type Problem } from "./config/problem.ts";
import { startPortico, type Surroundings } from "./portico.ts";
import { createChannel, type Message, type Talk } from "./talk.ts";

export type { Message, Talk } from "./talk.ts";

export { ConfigError, type Problem };
export { type ErrorCode, GatewayError } from "./core/errors.ts";
export type { Delta, Event } from "./core/event.ts";
export type { Annotation, Content, Item, Part, Role } from "./core/item.ts";
export type { Answer, Finish, Notes, Turn, Usage } from "./core/turn.ts";
export type { Format, Settings, Tool, ToolChoice } from "./core/settings.ts";
export type { GivenAdapter as Adapter } from "./adapters/module.ts";
export type { Log as DoorLog } from "./observe/index.ts";

/** A config file's settings, as a program writes them. */
export interface PorticoSettings {
  readonly $schema?: string | undefined;
  readonly gateway?: Readonly<Record<string, unknown>> | undefined;
}

/** A running gateway. */
export interface Portico {
  /** Where it listens; undefined if both endpoints are off. */
  readonly address: string | undefined;
  /** Answers a message from the program's own channel, in the sessions that HTTP clients share. */
  talk(message: Message): Promise<Talk>;
  /** The models that callers may choose from, as far as the adapters list them. */
  models(): Promise<readonly string[]>;
  /** Switches to other settings: new requests see all of them, and running ones finish under the old. */
  reload(settings: PorticoSettings): Promise<void>;
  /** Stops accepting, lets running turns finish, then closes everything. */
  close(): Promise<void>;
}

interface Around extends Surroundings {
  /** Relative paths start here; by default the current folder. */
  readonly folder?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Opens a gateway with the settings of a config file, as an object. Throws a ConfigError that lists every problem. */
export async function openPortico(settings: PorticoSettings, around: Around = {}): Promise<Portico> {
  const { folder = process.cwd(), env = process.env, adapters = {} } = around;
  checkPassed(around);
  const given = Object.keys(adapters);
  async function read(written: PorticoSettings): Promise<Loaded> {
    const loaded = await loadConfig(written, { folder, env, probe: async () => undefined, given });
    const message = "a program that embeds Portico is one process; write 1";
    if (loaded.config.workers > 1) throw new ConfigError([{ path: "gateway.workers", message }]);
    return loaded;
  }
  let current = await read(settings);
  const portico = await startPortico(current.config, around, { mayMigrate: true });
  const { gateway, models, ended } = portico;
  const channel = createChannel({ gateway, ended, model: findModel });
  let closing: Promise<void> | undefined;
  return {
    address: portico.address,
    models,
    talk: channel.talk,
    async reload(others) {
      const next = await read(others);
      await portico.reload(next.config);
      current = next;
    },
    close: () => (closing ??= close()),
  };

  async function findModel(): Promise<string> {
    const { exampleModel, config } = current;
    return exampleModel ?? (await models())[0] ?? config.defaultAdapter;
  }

  async function close(): Promise<void> {
    await channel.close(current.config.http.limits.drainTimeoutMs);
    await portico.close();
    // What the program passed in is closed with the gateway, each once.
    for (const adapter of new Set<GivenAdapter>(Object.values(adapters))) await adapter.close?.();
  }
}

/** What a program passes beside its settings is not type-checked everywhere. */
function checkPassed({ adapters = {}, log }: Around): void {
  const problems = Object.entries(adapters)
    .filter(([, adapter]) => typeof adapter?.stream !== "function")
    .map(([name]): Problem => ({ path: `adapters.${name}`, message: "must have the function stream" }));
  for (const level of ["info", "error"] as const) {
    if (log !== undefined && typeof log[level] !== "function")
      problems.push({ path: `log.${level}`, message: "must be a function" });
  }
  if (problems.length > 0) throw new ConfigError(problems);
}
