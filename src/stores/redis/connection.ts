/** The connection to Redis: commands and scripts with a deadline, no offline queue, and automatic reconnection. */
import { setTimeout as wait } from "node:timers/promises";
import { type Address, toKeyPrefix } from "./address.ts";
import { type Client, loadClients, toPauseMs } from "./client.ts";
import { createConfirm } from "./copies.ts";
import { createSubscriber } from "./subscriber.ts";
import { type Deadline, createDeadline } from "./deadline.ts";
import type { Reply, Script } from "./script.ts";
import { type Found, createServers, isFinalRefusal, noAnswer } from "./servers.ts";
import { codeOf, evicted, explain, isLost, toRefusal } from "./trouble.ts";

export interface Connection {
  /**
   * Runs a script. What Redis itself refuses is thrown as `store_unavailable`; what our scripts refuse is thrown as it
   * is.
   */
  run(script: Script, args: readonly string[]): Promise<Reply>;
  /** The same for what must not be lost: as many replicas have it as the operator wants. Calls `toArgs` per attempt. */
  runDurably(script: Script, toArgs: () => readonly string[], lost?: Lost): Promise<Reply>;
  send(command: readonly string[]): Promise<Reply>;
  /** Listens to a channel on a separate connection, which reconnects by itself. What is said meanwhile is missed. */
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
  isReady(): boolean;
  /** Waits for what is pending. */
  close(): Promise<void>;
}

/** What to do if a script may have run, as the connection was lost before the reply, or if its writes may not last. */
export interface Lost {
  /** The arguments for the next connection, if that comes soon. */
  readonly retryArgs: () => readonly string[];
  /** That failed too, or too few replicas have it. */
  readonly abandon: () => void;
}

export interface ConnectionOptions {
  readonly address: Address;
  /** Sent first on every connection, so that commands in flight keep their order if Redis lacks a script. */
  readonly scripts: readonly Script[];
  /** Called on every connection before anything else is sent. */
  readonly onReady: (connection: Connection) => void;
  /** Called when Redis has lost the gateway's lease, before what it refused for that is sent again. True: it is back. */
  readonly onForgotten?: (connection: Connection) => Promise<boolean>;
  /** How long Redis may be silent before the connection is given up. */
  readonly timeoutMs: number;
  /** How long the first connection may take. */
  readonly openingMs: number;
  /** How long replicas may take to copy what was written. */
  readonly copyingMs: number;
}

/** Throws the cause if Redis cannot be reached in time, or refuses. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { address, scripts, onReady, onForgotten, timeoutMs, copyingMs } = options;
  const makeClient = await loadClients(address);
  const servers = createServers(address, makeClient, timeoutMs);
  const subscriber = createSubscriber(makeClient);
  const confirm = address.replicas === 0 ? undefined : createConfirm(address.replicas, copyingMs);
  const openBy = performance.now() + options.openingMs;
  const closing = new AbortController();
  let state: "opening" | "open" | "closed" = "opening";
  let client: Client | undefined;
  let failure: unknown;
  let isSearching = false;
  let pending = 0;
  let lostAt = -Infinity;
  let deadline: Deadline | undefined;
  let leaving: NodeJS.Timeout | undefined;
  const waiting: (() => void)[] = [];
  const connection: Connection = { run, runDurably, send, subscribe, isReady, close };

  /** Until the store is found, or this is closed. A moved store is searched for while the old node still answers. */
  async function search(): Promise<void> {
    if (isSearching) return;
    isSearching = true;
    for (let attempts = 0; state !== "closed"; attempts += 1) {
      try {
        return take(await servers.find());
      } catch (thrown) {
        failure = thrown;
        if (state === "opening" && (isFinalRefusal(thrown) || performance.now() > openBy)) throw thrown;
      }
      await wait(toPauseMs(attempts), undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  function take({ client: found, place }: Found): void {
    if (state === "closed" || !found.isReady) {
      found.destroy();
      throw new Error("The connection was lost as soon as it was made.");
    }
    const left = client;
    client = found;
    failure = undefined;
    state = "open";
    isSearching = false;
    found.on("terminated", (thrown: unknown) => {
      if (found === client) lookAgain(thrown);
    });
    for (const { text } of scripts) found.sendCommand(["SCRIPT", "LOAD", text]).catch(() => {});
    onReady(connection);
    for (const go of waiting.splice(0)) go();
    subscriber.moveTo(place);
    if (left?.isReady === true) void drain(left);
    else left?.destroy();
  }

  function lookAgain(reason: unknown): void {
    failure = reason;
    if (!isReady()) lostAt = performance.now();
    if (state === "open") void search();
  }

  /** What was sent there is answered there, if only with where to send it. */
  async function drain(left: Client): Promise<void> {
    const { stop } = createDeadline(timeoutMs, () => left.destroy());
    await left.close();
    stop();
  }

  function isReady(): boolean {
    return client?.isReady === true;
  }

  function subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    return explain(subscriber.subscribe(channel, listener));
  }

  async function exchange(command: readonly string[], isDurable: boolean): Promise<Reply> {
    const asked = client;
    if (asked?.isReady !== true) throw toRefusal(failure);
    deadline ??= createDeadline(timeoutMs, judge);
    if (pending === 0) deadline.renew();
    pending += 1;
    const copied = isDurable ? confirm?.(asked) : undefined;
    // The command's own reply may have failed already.
    copied?.catch(() => {});
    try {
      const reply = (await asked.sendCommand(command)) as unknown as Reply;
      if (copied !== undefined) await copied;
      return reply;
    } catch (thrown) {
      if (asked === client) learnFromRefusal(thrown);
      throw thrown;
    } finally {
      pending -= 1;
      deadline?.renew();
    }
  }

  /** A hanging server keeps its connections open, so they are left if it answers nothing. */
  function judge(): void {
    deadline = undefined;
    if (pending > 0) reconnect(noAnswer(timeoutMs));
  }

  function reconnect(reason: unknown): void {
    client?.destroy();
    lookAgain(reason);
  }

  /** What a refusal says about the node. */
  function learnFromRefusal(thrown: unknown): void {
    const code = codeOf(thrown);
    if (code === "MOVED") servers.follow(thrown);
    if (code === "MOVED" || code === "CLUSTERDOWN") lookAgain(thrown);
    if (code === "UNBLOCKED") reconnect(thrown);
    if (code === "READONLY") leaveReplica(thrown);
  }

  /** A server that has become a replica may have a successor at the same address, if none has been found by then. */
  function leaveReplica(reason: unknown): void {
    const replica = client;
    leaving ??= setTimeout(() => {
      leaving = undefined;
      if (replica === client) reconnect(reason);
    }, timeoutMs).unref();
  }

  async function evaluate({ sha, text }: Script, args: readonly string[], isDurable: boolean): Promise<Reply> {
    const key = toKeyPrefix(address);
    try {
      return await exchange(["EVALSHA", sha, "1", key, ...args], isDurable);
    } catch (thrown) {
      if (codeOf(thrown) !== "NOSCRIPT") throw thrown;
      return exchange(["EVAL", text, "1", key, ...args], isDurable);
    }
  }

  function whenReady(withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const { stop } = createDeadline(withinMs, () => reject(toRefusal(failure)));
      waiting.push(() => {
        stop();
        resolve();
      });
    });
  }

  /** A lost connection is usually back in a moment. Later calls are refused at once. */
  async function whenBack(waitMs: number): Promise<void> {
    const restMs = lostAt + waitMs - performance.now();
    if (restMs > 0) await whenReady(restMs);
  }

  /**
   * Sends again what a node has refused unread: where the store is by then, or once all of it has moved. What may be
   * done `twice` is sent again on the next connection too. A missing lease was lost with other data, as by FLUSHALL; or
   * Redis evicts it, again and again.
   */
  async function sendUntilExecuted(say: () => Promise<Reply>, waitMs: number, twice: boolean): Promise<Reply> {
    const since = performance.now();
    let retaken: Promise<boolean> | undefined;
    for (let attempts = 0; ; attempts += 1) {
      if (!isReady()) await whenBack(waitMs);
      const asked = client;
      try {
        return await say();
      } catch (thrown) {
        const [code, restMs] = [codeOf(thrown), since + timeoutMs - performance.now()];
        if (code === "NOLEASE" && onForgotten !== undefined) {
          if (retaken !== undefined) throw (await retaken) ? evicted(thrown) : thrown;
          retaken = onForgotten(connection);
          // It may fail before the answer that asks for it.
          retaken.catch(() => {});
          continue;
        }
        const isGone = twice && isLost(thrown) && asked?.isReady !== true;
        if (!(isGone || unread.has(code)) || restMs <= 0) throw thrown;
        if (isGone) continue;
        if (code !== "MOVED") await wait(toPauseMs(attempts));
        else if (asked === client) await whenReady(restMs);
      }
    }
  }

  async function retryDurably(script: Script, { retryArgs, abandon }: Lost, thrown: unknown): Promise<Reply> {
    // Then it is written, but may be lost with the primary.
    const isAlone = codeOf(thrown) === "NOREPLICAS";
    if (isAlone) abandon();
    if (isAlone || !isLost(thrown)) throw thrown;
    try {
      if (!isReady()) await whenReady(timeoutMs);
      return await sendUntilExecuted(() => evaluate(script, retryArgs(), true), momentMs, false);
    } catch (second) {
      abandon();
      throw second;
    }
  }

  function run(script: Script, args: readonly string[]): Promise<Reply> {
    return explain(sendUntilExecuted(() => evaluate(script, args, false), momentMs, true));
  }

  function runDurably(script: Script, toArgs: () => readonly string[], lost?: Lost): Promise<Reply> {
    const reply = sendUntilExecuted(
      () => evaluate(script, toArgs(), true),
      lost === undefined ? momentMs : timeoutMs,
      false,
    );
    return explain(lost === undefined ? reply : reply.catch((thrown) => retryDurably(script, lost, thrown)));
  }

  function send(command: readonly string[]): Promise<Reply> {
    return explain(sendUntilExecuted(() => exchange(command, false), momentMs, true));
  }

  async function close(): Promise<void> {
    if (state === "closed") return;
    state = "closed";
    closing.abort();
    subscriber.close();
    // What was just written is confirmed by replicas only then.
    if (confirm !== undefined) await new Promise((resolve) => setImmediate(resolve));
    if (client?.isReady === true) await client.close();
    else client?.destroy();
    deadline?.stop();
    clearTimeout(leaving);
  }

  try {
    await search();
    return connection;
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** How long all but those that store a turn wait for a lost connection. */
const momentMs = 1_000;

/** With these a node of a cluster refuses before it executes the command. */
const unread = new Set(["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"]);
