/** Keeps a connection to the server that has the store, and finds another when it is lost or the store has moved. */
import { setTimeout as wait } from "node:timers/promises";
import type { Place } from "./address.ts";
import { type Client, toPauseMs } from "./client.ts";
import { createDeadline } from "./deadline.ts";
import { type Exchange, type ExchangeOptions, createExchange } from "./exchange.ts";
import type { Reply } from "./script.ts";
import { type Found, type Servers, isFinalRefusal } from "./servers.ts";
import { codeOf, toRefusal } from "./trouble.ts";

export interface Link {
  /** Throws the cause if no server can be reached in time, or if one refuses. */
  open(withinMs: number): Promise<void>;
  /** The server that is asked now, if any. */
  server(): Exchange | undefined;
  /** Throws what the server refuses, or the reason why there is none. */
  send(command: readonly string[], isDurable: boolean): Promise<Reply>;
  /** Waits for a connection that was lost less than `waitMs` ago: it is usually back in a moment. */
  whenBack(waitMs: number): Promise<void>;
  /** Waits for the next connection. */
  whenFound(withinMs: number): Promise<void>;
  close(): Promise<void>;
}

export interface LinkOptions extends ExchangeOptions {
  readonly servers: Servers;
  /** Called with each connection before anything else is sent on it. */
  readonly onFound: (client: Client, place: Place) => void;
}

type State =
  /** Nothing can be sent, and the store is searched for; so it begins. */
  | { readonly is: "lost"; readonly at: number; readonly reason: unknown }
  | { readonly is: "open"; readonly server: Exchange }
  /** A replica by now, left after a while: its address may have a successor. Until then it still answers readers. */
  | { readonly is: "demoted"; readonly server: Exchange }
  /** The store is searched for elsewhere; what was sent here is answered here, if only with where to send it. */
  | { readonly is: "moving"; readonly server: Exchange; readonly reason: unknown }
  | { readonly is: "closed" };

type Searching = Extract<State, { readonly reason: unknown }>;

export function createLink({ servers, onFound, ...options }: LinkOptions): Link {
  const closing = new AbortController();
  let state: State = { is: "lost", at: -Infinity, reason: undefined };
  let next = Promise.withResolvers<void>();

  async function search(isFinal: (thrown: unknown) => boolean): Promise<void> {
    for (let attempts = 0; isSearching(state); attempts += 1) {
      try {
        return take(await servers.find());
      } catch (thrown) {
        if (isFinal(thrown)) throw thrown;
        if (isSearching(state)) state = withReason(state, thrown);
      }
      await wait(toPauseMs(attempts), undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  function take({ client, place }: Found): void {
    if (!isSearching(state) || !client.isReady) {
      client.destroy();
      throw new Error("The connection was lost as soon as it was made.");
    }
    const left = serverOf(state);
    const server = createExchange(client, options, (reason) => lose(server, reason));
    client.on("terminated", (reason: unknown) => lose(server, reason));
    state = { is: "open", server };
    onFound(client, place);
    next.resolve();
    next = Promise.withResolvers();
    void left?.close();
  }

  function searchFrom(from: Searching): void {
    const wasSearching = isSearching(state);
    state = from;
    if (!wasSearching) void search(() => false);
  }

  function lose(server: Exchange, reason: unknown): void {
    if (server !== serverOf(state)) return;
    searchFrom({ is: "lost", at: performance.now(), reason });
    // By then, whoever waits there has got the cause.
    process.nextTick(() => server.destroy());
  }

  /** What a refusal says about the server. */
  function learn(server: Exchange, refusal: unknown): void {
    const code = codeOf(refusal);
    if (code === "UNBLOCKED") lose(server, refusal);
    if (code === "MOVED" || code === "CLUSTERDOWN") {
      servers.follow(refusal);
      searchFrom({ is: "moving", server, reason: refusal });
    }
    if (code === "READONLY" && state.is === "open") {
      state = { is: "demoted", server };
      setTimeout(() => lose(server, refusal), options.timeoutMs).unref();
    }
  }

  async function whenFound(withinMs: number): Promise<void> {
    const late = Promise.withResolvers<never>();
    const { stop } = createDeadline(withinMs, () => late.reject(toRefusal(reasonOf(state))));
    await Promise.race([next.promise, late.promise]).finally(stop);
  }

  return {
    open(withinMs) {
      const openBy = performance.now() + withinMs;
      return search((thrown) => isFinalRefusal(thrown) || performance.now() > openBy);
    },
    server: () => serverOf(state),
    async send(command, isDurable) {
      const server = serverOf(state);
      if (server === undefined) throw toRefusal(reasonOf(state));
      try {
        return await server.send(command, isDurable);
      } catch (thrown) {
        if (server === serverOf(state)) learn(server, thrown);
        throw thrown;
      }
    },
    async whenBack(waitMs) {
      const restMs = state.is === "lost" ? state.at + waitMs - performance.now() : 0;
      if (restMs > 0) await whenFound(restMs);
    },
    whenFound,
    async close() {
      const server = serverOf(state);
      state = { is: "closed" };
      closing.abort();
      await server?.close();
    },
  };
}

function serverOf(state: State): Exchange | undefined {
  return "server" in state ? state.server : undefined;
}

function withReason(state: Searching, reason: unknown): Searching {
  return { ...state, reason };
}

function reasonOf(state: State): unknown {
  return isSearching(state) ? state.reason : undefined;
}

function isSearching(state: State): state is Searching {
  return state.is === "lost" || state.is === "moving";
}
