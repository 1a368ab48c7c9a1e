/** What a program that embeds Portico imports. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createChannel, type Talk } from "./channel.ts";
import { loadConfig, type Loaded } from "./config/load.ts";
import { closeGiven, withGiven } from "./given.ts";
import type { Caller, Gateway as WholeGateway } from "./core/gateway.ts";
import { makeOnce } from "./core/lazy.ts";
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
export type { AskedKey, Caller, Reply } from "./core/gateway.ts";
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

/** Turns and what is kept of them, for what `talk` does not offer. */
export type Gateway = Pick<WholeGateway, "answer" | "countTokens" | "conversations" | "recall" | "cancel" | "forget">;

/** A running gateway. */
export interface Portico extends Pick<Composed, "address" | "models"> {
  /** For channels other than HTTP: turns in the same sessions. */
  readonly gateway: Gateway;
  /** Answers a message from the program's own channel, in the sessions that HTTP clients share. */
  talk(message: Message): Promise<Talk>;
  /** The caller to pass to `gateway.answer` for what `talk` does not offer, such as tools, in the named session. */
  caller(of?: Pick<Message, "session" | "owner" | "signal">): Caller;
  /**
   * Switches to other settings: new requests see all of them, and running ones finish under the old. Throws, and
   * changes nothing, if they are invalid or change what only a new gateway can: how it listens and where it stores.
   */
  reload(settings: PorticoSettings): Promise<void>;
  /** Stops accepting, lets running turns finish, channels' included, then closes everything. */
  close(): Promise<void>;
}

/**
 * Opens a gateway with the settings of a config file, as an object. They can name the program's own `adapters` like any
 * other; these survive a reload and are closed with the gateway. Relative paths start from `folder`, by default the
 * current one. If the settings are invalid, throws a ConfigError that lists every problem.
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
      // Not every program is type-checked.
      { file: join(folder, "portico.json"), text: JSON.stringify(all) ?? "null" },
      {
        ...more,
        env,
        probe: async () => undefined,
        readText: (file) => readFileSync(file, "utf8"),
        now: new Date(),
      },
    );
  }
  let current = await read(settings);
  const portico = await createPortico(current.config, surroundings);
  const { address, gateway, models } = portico;
  const newId = createIds(surroundings.now ?? (() => new Date()));
  /** The list is fetched once: for every turn, it would cost a request to the model's server. */
  const listModels = () => makeOnce(() => findModel(models, "Name a model with the message, or configure one."));
  let listed = listModels();
  let closing: Promise<void> | undefined;

  const channel = createChannel({
    gateway,
    hints: () => current.config.sessions.hints,
    model: async () => current.exampleModel ?? listed(),
    newTurnId: () => newId("resp"),
    ended: portico.note,
  });

  return {
    address,
    gateway,
    models,
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
