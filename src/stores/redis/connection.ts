/** The connection to Redis: commands and scripts with a deadline, no offline queue, and automatic reconnection. */
import { setTimeout as wait } from "node:timers/promises";
import type { Address } from "./address.ts";
import { loadClients, toPauseMs } from "./client.ts";
import type { ExchangeOptions } from "./exchange.ts";
import { type Link, createLink } from "./link.ts";
import type { Reply, Script } from "./script.ts";
import { createServers } from "./servers.ts";
import { type Listeners, createSubscriber } from "./subscriber.ts";
import { codeOf, evicted, explain, isLost } from "./trouble.ts";

export interface Connection {
  /**
   * Runs a script. What Redis itself refuses is thrown as `store_unavailable`; what our scripts refuse is thrown as it
   * is.
   */
  run(script: Script, args: readonly string[]): Promise<Reply>;
  /** The same for what must not be lost: as many replicas have it as the operator wants. */
  runDurably(script: Script, write: Write): Promise<Reply>;
  send(command: readonly string[]): Promise<Reply>;
  /** Listens to channels on a separate connection, which reconnects by itself. What is said meanwhile is missed. */
  listen(listeners: Listeners): Promise<void>;
  isReady(): boolean;
  /** Calls the listener from now on with every new connection, before anything else is sent on it. */
  onReconnect(listener: () => void): void;
  /** Waits for what is pending. */
  close(): Promise<void>;
}

interface Write {
  /** Called for each attempt. `mayBeDone`: the last one may have run, as the connection was lost before its reply. */
  toArgs(mayBeDone: boolean): readonly string[];
  /** Takes back the lease that Redis has lost, before what was refused for that is sent again. False: it cannot be. */
  retake(): Promise<boolean>;
  /** What may be done, and may not last; without this, it is not sent again. */
  readonly abandon?: (() => void) | undefined;
}

export interface ConnectionOptions extends Omit<ExchangeOptions, "replicas"> {
  readonly address: Address;
  /** Sent first on every connection, so that commands in flight keep their order if Redis lacks a script. */
  readonly scripts: readonly Script[];
  /** How long the first connection may take. */
  readonly openingMs: number;
}

/** Throws the cause if Redis cannot be reached in time, or refuses. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { address, scripts, timeoutMs, openingMs, copyingMs } = options;
  const makeClient = await loadClients(address);
  const subscriber = createSubscriber(makeClient);
  let onReconnect: (() => void) | undefined;
  const link = createLink({
    servers: createServers(address, makeClient, timeoutMs),
    replicas: address.replicas,
    copyingMs,
    timeoutMs,
    onFound(client, place) {
      for (const { text } of scripts) client.sendCommand(["SCRIPT", "LOAD", text]).catch(() => {});
      onReconnect?.();
      subscriber.moveTo(place);
    },
  });

  async function evaluate({ sha, text }: Script, args: readonly string[], isDurable: boolean): Promise<Reply> {
    try {
      return await link.send(["EVALSHA", sha, "1", address.keyPrefix, ...args], isDurable);
    } catch (thrown) {
      if (codeOf(thrown) !== "NOSCRIPT") throw thrown;
      return link.send(["EVAL", text, "1", address.keyPrefix, ...args], isDurable);
    }
  }

  /** What was sent when the connection was lost is sent once more, if that is allowed. */
  async function runOnce(script: Script, { toArgs, retake, abandon }: Write): Promise<Reply> {
    const waitMs = abandon === undefined ? momentMs : timeoutMs;
    const attempt = (mayBeDone: boolean) =>
      execute(link, timeoutMs, { waitMs, retake, say: () => evaluate(script, toArgs(mayBeDone), true) });
    try {
      return await attempt(false);
    } catch (thrown) {
      // Then it is written, but may be lost with the primary.
      const isAlone = codeOf(thrown) === "NOREPLICAS";
      if (abandon === undefined || !(isAlone || isLost(thrown))) throw thrown;
      try {
        if (isAlone) throw thrown;
        return await attempt(true);
      } catch (second) {
        abandon();
        throw second;
      }
    }
  }

  /** What may be done twice is sent again on the next connection. */
  const repeat = (say: () => Promise<Reply>) =>
    explain(execute(link, timeoutMs, { waitMs: momentMs, isRepeatable: true, say }));

  async function close(): Promise<void> {
    subscriber.close();
    await link.close();
  }

  try {
    await link.open(openingMs);
  } catch (thrown) {
    await close();
    throw thrown;
  }
  return {
    run: (script, args) => repeat(() => evaluate(script, args, false)),
    runDurably: (script, write) => explain(runOnce(script, write)),
    send: (command) => repeat(() => link.send(command, false)),
    listen: (listeners) => explain(subscriber.listen(listeners)),
    isReady: () => link.server() !== undefined,
    onReconnect(listener) {
      onReconnect = listener;
    },
    close,
  };
}

/** How long all but those that store a turn wait for a lost connection. */
const momentMs = 1_000;

interface Call extends Partial<Pick<Write, "retake">> {
  readonly say: () => Promise<Reply>;
  /** How long it waits for a lost connection. */
  readonly waitMs: number;
  readonly isRepeatable?: boolean;
}

/**
 * Sends again what a node has refused unread: where the store is by then, or once all of it has moved. A missing lease
 * was lost with other data, as by FLUSHALL; or Redis evicts it, again and again.
 */
async function execute(link: Link, limitMs: number, call: Call): Promise<Reply> {
  const { say, waitMs, isRepeatable = false, retake } = call;
  const giveUpAt = performance.now() + limitMs;
  let isRetaken = false;
  for (let attempts = 0; ; attempts += 1) {
    if (link.server() === undefined) await link.whenBack(waitMs);
    const asked = link.server();
    try {
      return await say();
    } catch (thrown) {
      const [code, restMs] = [codeOf(thrown), giveUpAt - performance.now()];
      if (code === "NOLEASE" && retake !== undefined) {
        if (isRetaken) throw evicted(thrown);
        isRetaken = await retake();
        if (!isRetaken) throw thrown;
        continue;
      }
      const isGone = isRepeatable && isLost(thrown) && asked !== link.server();
      const isUnread = code === "MOVED" || passing.has(code);
      if (!(isGone || isUnread) || restMs <= 0) throw thrown;
      if (code === "MOVED" && asked === link.server()) await link.whenFound(restMs);
      if (passing.has(code)) await wait(toPauseMs(attempts));
    }
  }
}

/** With these, as with MOVED, a node of a cluster refuses before it executes the command. */
const passing = new Set(["ASK", "TRYAGAIN", "CLUSTERDOWN"]);
