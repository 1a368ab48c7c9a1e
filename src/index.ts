/** What a program that embeds Portico imports. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createChannel, type Talk } from "./channel.ts";
import { loadConfig, type Loaded } from "./config/load.ts";
import { closeGiven, withGiven } from "./given.ts";
import type { Caller } from "./core/gateway.ts";
import { makeOnce } from "./core/made.ts";
import { createIds } from "./ids.ts";
import type { Message } from "./message.ts";
import { findModel } from "./model.ts";
import { createPortico, type Portico as Composed, type Surroundings } from "./portico.ts";
import type { PorticoSettings } from "./settings.ts";

export type { Talk } from "./channel.ts";
export { ConfigError, type Problem } from "./config/problem.ts";
export type { Delta } from "./core/delta.ts";
export { type ErrorCode, GatewayError } from "./core/errors.ts";
export type { Event, OutputItem } from "./core/event.ts";
export type { AskedKey, Caller, Gateway, Reply } from "./core/gateway.ts";
export type { Annotation, Content, Item, Part, Role } from "./core/item.ts";
export type { Recalled } from "./core/live/recall.ts";
export type { About, Adapter, Remark, Tell } from "./core/ports.ts";
export type { Conversation } from "./core/store.ts";
export type { Answer, Ask, Finish, Format, Notes, Settings, Tool, ToolChoice, Turn, Usage } from "./core/turn.ts";
export type { TokenCount } from "./core/window/count.ts";
export type { DoorLog } from "./http/lines.ts";
export type { Message } from "./message.ts";
export type { Surroundings } from "./portico.ts";
export type { AdapterSettings, PorticoSettings } from "./settings.ts";

/** A gateway that is open. */
export interface Portico extends Omit<Composed, "note" | "reload" | "close"> {
  /** What somebody says in a channel of the program's own, answered in the sessions that clients over HTTP share. */
  talk(message: Message): Promise<Talk>;
  /** Who asks `gateway.answer` for a turn that is more than a talk: one with tools, say, in the session of that name. */
  caller(of?: Pick<Message, "session" | "owner" | "signal">): Caller;
  /**
   * Goes on with other settings: requests from now on see all of them, and what runs ends as it began. Throws, and changes
   * nothing, when they are wrong or change what only a new gateway can: where it listens and where it keeps things.
   */
  reload(settings: PorticoSettings): Promise<void>;
  /** Stops accepting, lets running turns end, those of channels too, then closes everything. */
  close(): Promise<void>;
}

/**
 * Opens a gateway with the settings of a config file, given as an object, and with adapters of the program's own, which the
 * settings may name as any other; they last through a reload, and are closed when the gateway is. Relative paths start from
 * `folder`, the current one by default. Throws a ConfigError with every problem at once if the settings are wrong.
 */
export async function openPortico(
  settings: PorticoSettings,
  surroundings: Surroundings & {
    readonly folder?: string | undefined;
    readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  } = {},
): Promise<Portico> {
  const { folder = process.cwd(), env = process.env, adapters: given = {} } = surroundings;
  async function read(written: PorticoSettings): Promise<Loaded> {
    const { settings: all, ...more } = withGiven(written, given);
    return loadConfig(
      { file: join(folder, "portico.json"), text: JSON.stringify(all) },
      {
        ...more,
        env,
        probe: async () => undefined,
        readText: (file) => readFileSync(file, "utf8"),
        modeOf: () => undefined,
        now: new Date(),
      },
    );
  }
  let current = await read(settings);
  const { note, ...portico } = await createPortico(current.config, surroundings);
  const newId = createIds(surroundings.now ?? (() => new Date()));
  /** The list is asked for once: with each turn it would cost a request to the model's server. */
  const listModels = () =>
    makeOnce(() => findModel(portico.models, "Name a model with the message, or configure one."));
  let listed = listModels();
  let closing: Promise<void> | undefined;

  const channel = createChannel({
    gateway: portico.gateway,
    hints: () => current.config.sessions.hints,
    model: async () => current.exampleModel ?? listed(),
    newTurnId: () => newId("resp"),
    ended: note,
  });

  return {
    ...portico,
    talk: channel.talk,
    caller: channel.caller,
    async reload(others) {
      const next = await read(others);
      await portico.reload(next.config);
      current = next;
      listed = listModels();
    },
    close: () => (closing ??= portico.close(channel.close).finally(() => closeGiven(given))),
  };
}
