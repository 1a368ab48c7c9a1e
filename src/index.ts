/** What a program that embeds Portico imports. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { adapterOptions } from "./adapters/index.ts";
import { createChannel, type Message, type Talk } from "./channel.ts";
import { loadConfig, type Loaded } from "./config/load.ts";
import { createIds } from "./ids.ts";
import { createPortico, type Portico as Composed, type Surroundings } from "./portico.ts";

export type { Message, Talk } from "./channel.ts";
export type { Delta } from "./core/delta.ts";
export { GatewayError } from "./core/errors.ts";
export type { Event } from "./core/event.ts";
export type { Caller, Gateway, Reply } from "./core/gateway.ts";
export type { Content, Item, Part, Role } from "./core/item.ts";
export type { Adapter, Remark, Tell } from "./core/ports.ts";
export type { Answer, Ask, Finish, Notes, Settings, Tool, ToolChoice, Turn, Usage } from "./core/turn.ts";
export type { Surroundings } from "./portico.ts";

/** A gateway that is open. */
export interface Portico extends Omit<Composed, "reload"> {
  /** What somebody says in a channel of the program's own, answered in the sessions that clients over HTTP share. */
  talk(message: Message): Promise<Talk>;
  /**
   * Goes on with other settings: requests from now on see all of them, and what runs ends as it began. Throws, and changes
   * nothing, when they are wrong or change what only a new gateway can: where it listens and where it keeps things.
   */
  reload(settings: object): Promise<void>;
}

/**
 * Opens a gateway with the settings of a config file, given as an object. Relative paths start from `folder`, the current
 * one by default. Throws with every problem at once if the settings are wrong.
 */
export async function openPortico(
  settings: object,
  surroundings: Surroundings & { readonly folder?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Portico> {
  const { folder = process.cwd(), env = process.env } = surroundings;
  let current = await read(settings, folder, env);
  const portico = await createPortico(current.config, surroundings);
  const newId = createIds(surroundings.now ?? (() => new Date()));
  return {
    ...portico,
    talk: createChannel({
      gateway: portico.gateway,
      hints: () => current.config.sessions.hints,
      model: () => current.exampleModel,
      newTurnId: () => newId("resp"),
    }),
    async reload(others) {
      const next = await read(others, folder, env);
      await portico.reload(next.config);
      current = next;
    },
  };
}

function read(settings: object, folder: string, env: NodeJS.ProcessEnv): Promise<Loaded> {
  return loadConfig(
    { file: join(folder, "portico.json"), text: JSON.stringify(settings) },
    {
      env,
      probe: async () => undefined,
      adapterOptions,
      readText: (file) => readFileSync(file, "utf8"),
      modeOf: () => undefined,
      now: new Date(),
    },
  );
}
