/** The connection to Redis: commands and scripts with a deadline, without a queue for bad times, and again by itself. */
import { GatewayError } from "../../core/errors.ts";
import type { Address } from "./address.ts";
import type { Reply, Script } from "./script.ts";
import { cannotUse, codeOf, isUnreachable } from "./trouble.ts";

export interface Connection {
  /**
   * Runs a script. What Redis refuses for reasons of its own is `store_unavailable`; what our scripts refuse is thrown as it
   * is.
   */
  run(script: Script, args: readonly string[], lost?: Lost): Promise<Reply>;
  send(command: readonly string[]): Promise<Reply>;
  /** Hears what is said on a channel, on a connection of its own that comes again by itself. What is said meanwhile is missed. */
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
  isReady(): boolean;
  /** Waits for what was asked already. */
  close(): Promise<void>;
}

/** What to do when the connection went before the answer came, so that nobody knows whether the script has run. */
export interface Lost {
  /** The arguments for the next connection, if that comes soon. */
  readonly again: () => readonly string[];
  /** That told nothing either. */
  readonly giveUp: () => void;
}

export interface ConnectionOptions {
  readonly address: Address;
  /** Sent ahead on every connection, so that works in flight keep their order when Redis does not know a script yet. */
  readonly scripts: readonly Script[];
  /** Called on every connection before anything else is asked. */
  readonly onReady: (connection: Connection) => void;
  /** How long nothing may be answered before the connection is given up. */
  readonly timeoutMs: number;
  /** How long the first connection may take. */
  readonly openingMs: number;
}

/** Throws what stood in the way when Redis cannot be reached in time, or refuses. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { createClient } = await import("@redis/client");
  const { address, scripts, onReady, timeoutMs } = options;
  const deadline = performance.now() + options.openingMs;
  let state: "opening" | "open" | "closed" = "opening";
  let failure: unknown;
  let isLeft = false;
  let pending = 0;
  let movedAt = 0;
  let watch: NodeJS.Timeout | undefined;
  let leaving: NodeJS.Timeout | undefined;
  const waiting: (() => void)[] = [];
  let client = makeClient();
  let ear: ReturnType<typeof makeClient> | undefined;
  const connection: Connection = { run, send, subscribe, isReady: () => client.isReady, close };

  function makeClient() {
    const made = makePlainClient();
    let greeting: NodeJS.Timeout | undefined;
    made.on("error", (thrown: unknown) => {
      clearTimeout(greeting);
      // One that was left tells only that it was.
      if (made === client && !isLeft) failure = thrown;
    });
    made.on("connect", () => (greeting = setTimeout(connectAnew, timeoutMs, hasNotAnswered())));
    made.on("ready", () => {
      clearTimeout(greeting);
      for (const { text } of scripts) made.sendCommand(["SCRIPT", "LOAD", text]).catch(() => {});
      onReady(connection);
      for (const go of waiting.splice(0)) go();
    });
    return made;
  }

  function subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    return explain(listen(channel, listener));
  }

  async function listen(channel: string, listener: (message: string) => void): Promise<void> {
    if (ear === undefined) {
      ear = makePlainClient();
      // Its trouble is that of the other connection, which tells of it.
      ear.on("error", () => {});
      await ear.connect();
    }
    await ear.subscribe(channel, listener);
  }

  function makePlainClient() {
    const { host, port, tls, username, password, database } = address;
    return createClient({
      socket: { host, port, connectTimeout: timeoutMs, reconnectStrategy, ...(tls && { tls: true }) },
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      database,
      RESP: 2,
      disableOfflineQueue: true,
      maintNotifications: "disabled",
      // Its own deadline is over when a command was sent, and costs each a timer.
      commandOptions: { timeout: 0 },
    });
  }

  /** While it opens, a password that is refused once is refused for good. */
  function reconnectStrategy(retries: number, cause: Error): number | Error {
    const isHopeless = performance.now() > deadline || hopeless.has(codeOf(cause));
    return state === "opening" && isHopeless ? cause : Math.min(firstPauseMs * 2 ** Math.min(retries, 9), maxPauseMs);
  }

  async function exchange(command: readonly string[]): Promise<Reply> {
    if (!client.isReady) throw isUnreachable(failure);
    if (pending === 0) movedAt = performance.now();
    pending += 1;
    watch ??= setTimeout(judge, timeoutMs);
    try {
      return (await client.sendCommand(command)) as unknown as Reply;
    } catch (thrown) {
      leaveReplica(thrown);
      throw thrown;
    } finally {
      pending -= 1;
      movedAt = performance.now();
    }
  }

  /** A server that stands still keeps its connections open, so they are left when it answers nothing. */
  function judge(): void {
    watch = undefined;
    if (pending === 0) return;
    const restMs = movedAt + timeoutMs - performance.now();
    if (restMs > 0) {
      watch = setTimeout(judge, restMs + 1);
      return;
    }
    connectAnew(hasNotAnswered());
  }

  function hasNotAnswered(): Error {
    return new Error(`Redis has answered nothing for ${timeoutMs} ms.`);
  }

  function connectAnew(reason: Error): void {
    failure = reason;
    isLeft = true;
    client.destroy();
    if (state !== "open") return;
    client = makeClient();
    isLeft = false;
    client.connect().catch((thrown: unknown) => (failure = thrown));
  }

  /** Whoever has become a replica may have a successor under the same name. */
  function leaveReplica(thrown: unknown): void {
    if (codeOf(thrown) !== "READONLY" || !(thrown instanceof Error)) return;
    leaving ??= setTimeout(() => {
      leaving = undefined;
      connectAnew(thrown);
    }, timeoutMs).unref();
  }

  async function evaluate({ sha, text }: Script, args: readonly string[]): Promise<Reply> {
    const key = toKeyPrefix(address);
    try {
      return await exchange(["EVALSHA", sha, "1", key, ...args]);
    } catch (thrown) {
      if (codeOf(thrown) !== "NOSCRIPT") throw thrown;
      return exchange(["EVAL", text, "1", key, ...args]);
    }
  }

  function whenReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(isUnreachable(failure)), timeoutMs);
      waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  async function evaluateAgain(script: Script, { again, giveUp }: Lost, thrown: unknown): Promise<Reply> {
    if (!isLost(thrown)) throw thrown;
    try {
      if (!client.isReady) await whenReady();
      return await evaluate(script, again());
    } catch (second) {
      giveUp();
      throw second;
    }
  }

  function run(script: Script, args: readonly string[], lost?: Lost): Promise<Reply> {
    const reply = evaluate(script, args);
    return explain(lost === undefined ? reply : reply.catch((thrown) => evaluateAgain(script, lost, thrown)));
  }

  function send(command: readonly string[]): Promise<Reply> {
    return explain(exchange(command));
  }

  async function close(): Promise<void> {
    if (state === "closed") return;
    state = "closed";
    ear?.destroy();
    if (client.isReady) await client.close();
    else client.destroy();
    clearTimeout(watch);
    clearTimeout(leaving);
  }

  try {
    await client.connect();
    state = "open";
    return connection;
  } catch (thrown) {
    await close();
    throw failure ?? thrown;
  }
}

/** Braces, so that all keys of a store lie in one slot of a cluster. */
export function toKeyPrefix({ prefix }: Address): string {
  return `{${prefix}}:`;
}

const firstPauseMs = 20;
const maxPauseMs = 2_000;
const hopeless = new Set(["NOAUTH", "WRONGPASS", "NOPERM"]);

/** What scripts of ours say no with. */
const ownRefusals = new Set(["KEPT", "REKEY"]);

/** It was sent, and nobody knows what came of it. */
function isLost(thrown: unknown): boolean {
  return !(thrown instanceof GatewayError) && codeOf(thrown) === "";
}

async function explain<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (thrown) {
    if (thrown instanceof GatewayError || ownRefusals.has(codeOf(thrown))) throw thrown;
    throw codeOf(thrown) === "" ? isUnreachable(thrown) : cannotUse(thrown);
  }
}
