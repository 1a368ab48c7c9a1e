/** Turns from outside HTTP: a channel's messages run in the sessions that all clients share. */
import { GatewayError, toGatewayError } from "./core/errors.ts";
import type { Event } from "./core/event.ts";
import type { Gateway, Heading, Listener } from "./core/gateway.ts";
import { type Message, readMessage } from "./message.ts";
import type { RequestRecord } from "./observe/index.ts";

/** An answer in pieces, to be read once; a reader that stops, or does not begin within a minute, cancels the turn. */
export interface Talk extends AsyncIterable<string> {
  readonly about: About;
  /** The whole answer at its end. */
  text(): Promise<string>;
}

/** What is known of an answer before its first word. */
export interface About {
  readonly id: string;
  readonly model: string;
  readonly session: string | undefined;
  readonly history: Heading["told"];
  readonly contextItems: number;
}

export interface ChannelParts {
  readonly gateway: Pick<Gateway, "answer">;
  /** For messages without one. */
  readonly model: () => Promise<string>;
  /** Told of every turn when it is over, read or not. */
  readonly ended: (record: RequestRecord) => void;
}

export interface Channel {
  talk(message: Message): Promise<Talk>;
  /** Lets running turns end, cancels what takes longer, and begins no new ones. */
  close(drainMs: number): Promise<void>;
}

const unreadMs = 60_000;

export function createChannel({ gateway, model, ended }: ChannelParts): Channel {
  const running = new Map<AbortController, Promise<void>>();
  let isClosing = false;

  async function talk(message: Message): Promise<Talk> {
    if (isClosing) throw draining();
    const { owner = "default", session, content, instructions, signal, ...asked } = readMessage(message);
    const control = new AbortController();
    const leave = (): void => control.abort(cancelled());
    signal?.addEventListener("abort", leave);
    if (signal?.aborted === true) leave();
    const since = performance.now();
    const queue = createQueue();
    const named = asked.model ?? (await model());
    const begun = Promise.withResolvers<Heading>();
    begun.promise.catch(() => {});
    const listener: Listener = {
      begin: begun.resolve,
      tell: (events) => queue.put(textIn(events)),
    };
    const ask = {
      model: named,
      items: [{ type: "message", role: "user", content }],
      itemsParam: "message.content",
      settings: { tools: [], instructions },
      stream: true,
      keep: "in-session",
    } as const;
    const hint = session === undefined || session === "" ? undefined : `header:x-session-id:${session}`;

    async function run(): Promise<void> {
      let record: Partial<RequestRecord> = {};
      try {
        const caller = { owner, hint, shows: false, signal: control.signal };
        const said = await gateway.answer(ask, caller, listener);
        const { heading } = said;
        const answer = "answer" in said ? said.answer : undefined;
        record = { heading, key: heading.key, answer };
        queue.end(answer?.error);
      } catch (thrown) {
        const failure = toGatewayError(control.signal.aborted ? control.signal.reason : thrown);
        begun.reject(failure);
        queue.end(failure);
        record = { failure };
      } finally {
        signal?.removeEventListener("abort", leave);
        running.delete(control);
        ended({ kind: "talk", owner, ms: performance.now() - since, ...record });
      }
    }
    running.set(control, run());
    control.signal.addEventListener("abort", () => queue.end(toGatewayError(control.signal.reason)));

    const { key, session: known, told, contextItems } = await begun.promise;
    const unread = setTimeout(leave, unreadMs).unref();
    const readOnce = once(() => {
      clearTimeout(unread);
      return queue.read(leave);
    });
    return {
      about: { id: `resp_${key}`, model: named, session: known, history: told, contextItems },
      [Symbol.asyncIterator]: readOnce,
      text: async () => (await Array.fromAsync({ [Symbol.asyncIterator]: readOnce })).join(""),
    };
  }

  return {
    talk,
    async close(drainMs) {
      isClosing = true;
      const overdue = setTimeout(() => {
        for (const control of running.keys()) control.abort(draining());
      }, drainMs);
      await Promise.all(running.values());
      clearTimeout(overdue);
    },
  };
}

/** Pieces on their way to their reader: whoever puts one waits until it is taken. */
function createQueue() {
  const pieces: string[] = [];
  let isOver = false;
  let failure: GatewayError | undefined;
  let wake = Promise.withResolvers<void>();
  let taken = Promise.withResolvers<void>();

  function step(): void {
    wake.resolve();
    wake = Promise.withResolvers();
  }

  return {
    put(text: string): Promise<void> | undefined {
      if (text === "" || isOver) return undefined;
      pieces.push(text);
      step();
      return taken.promise;
    },
    end(error: GatewayError | undefined): void {
      if (isOver) return;
      isOver = true;
      failure = error;
      taken.resolve();
      step();
    },
    read(leave: () => void): AsyncIterator<string> & AsyncIterable<string> {
      return {
        async next() {
          for (;;) {
            const piece = pieces.shift();
            if (piece !== undefined) return { done: false, value: piece };
            if (isOver && failure !== undefined) throw failure;
            if (isOver) return { done: true, value: undefined };
            taken.resolve();
            taken = Promise.withResolvers();
            await wake.promise;
          }
        },
        async return() {
          if (!isOver) leave();
          return { done: true, value: undefined };
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    },
  };
}

/** A second reader would get nothing, and think it the answer. */
function once<Value>(make: () => Value): () => Value {
  let isTaken = false;
  return () => {
    if (isTaken)
      throw new TypeError("An answer can be read only once, as pieces or as one text. Keep what you have read.");
    isTaken = true;
    return make();
  };
}

function textIn(events: readonly Event[]): string {
  let text = "";
  for (const event of events)
    if (event.type === "item-delta" && (event.kind === "text" || event.kind === "refusal")) text += event.text;
  return text;
}

function cancelled(): GatewayError {
  return new GatewayError("cancelled", "The turn was cancelled.");
}

function draining(): GatewayError {
  return new GatewayError("draining", "The gateway is shutting down. Send the message again.", {
    retryAfterSeconds: 5,
  });
}
