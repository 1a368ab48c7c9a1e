/** Turns beside HTTP: what a channel brings goes through the sessions that every client shares. */
import { setTimeout as wait } from "node:timers/promises";
import type { Hint } from "./config/config.ts";
import type { GatewayError } from "./core/errors.ts";
import type { Event } from "./core/event.ts";
import { wasCancelled } from "./core/live/recall.ts";
import type { Gateway, Reply } from "./core/gateway.ts";
import type { Content } from "./core/item.ts";
import { leaveOnReturn } from "./core/leaving.ts";
import type { Seeker } from "./core/place/place.ts";
import type { About } from "./core/ports.ts";
import { readHint } from "./http/hint.ts";
import { drainingError } from "./http/turns.ts";
import { unnamedOwner } from "./parts.ts";

/** What somebody says in a channel. */
export interface Message {
  /** Text, or parts with images and files. */
  readonly content: Content;
  /** The conversation's name, which clients over HTTP send as X-Session-Id; without one nothing is remembered. */
  readonly session?: string | undefined;
  /** Whose it is; without one the owner of the tokens that have no name. */
  readonly owner?: string | undefined;
  /** Without one that which is configured, or the first that the adapters list. */
  readonly model?: string | undefined;
  /** What the model is told for this turn, before all else. */
  readonly instructions?: string | undefined;
  /** Calls the turn off. */
  readonly signal?: AbortSignal | undefined;
}

/** What is answered, piece by piece. It is heard once; whoever stops listening, or has not begun to within a minute, calls it off. */
export interface Talk extends AsyncIterable<string> {
  readonly about: About;
  /** All of it, when it is over. */
  text(): Promise<string>;
}

export interface ChannelParts {
  readonly gateway: Pick<Gateway, "answer">;
  readonly hints: () => readonly Hint[];
  /** For messages that name none. */
  readonly model: () => Promise<string>;
  readonly newTurnId: () => string;
}

export interface Channel {
  /** Resolves when the turn has its place. Throws what went wrong, at once or while it is heard. */
  talk(message: Message): Promise<Talk>;
  /** Lets the turns that run end until `overdue` resolves, then calls them off; none begins any more. */
  close(overdue: Promise<void>): Promise<void>;
}

/** What a turn that was called off may still take to tell its hearer why; nobody makes a hearer listen. */
const partingMs = 1_000;

export function createChannel(parts: ChannelParts): Channel {
  const callers = new Set<Caller>();
  let isClosing = false;

  async function talk(message: Message): Promise<Talk> {
    if (isClosing) throw drainingError();
    const caller = watchCaller(message.signal);
    callers.add(caller);
    void caller.over.then(() => callers.delete(caller));
    try {
      return await answer(message, caller);
    } catch (thrown) {
      // Whoever is refused has no more to hear.
      caller.forget();
      throw thrown;
    }
  }

  async function answer(
    { content, session, owner = unnamedOwner, model: named, instructions }: Message,
    caller: Caller,
  ): Promise<Talk> {
    // Waited for in either case, so that turns whose models are known keep the order in which they come.
    const model = await (named ?? Promise.race([parts.model(), whenLeft(caller)]));
    const reply = await parts.gateway.answer(
      {
        model,
        items: [{ type: "message", role: "user", content }],
        itemsParam: "content",
        settings: { tools: [], ...(instructions !== undefined && { instructions }) },
        stream: true,
        keep: "in-session",
      },
      {
        turnId: parts.newTurnId(),
        owner,
        ...toHint(toNaming(parts.hints()), session),
        neverShows: true,
        signal: caller.signal,
      },
    );
    const pieces = hear(reply, caller);
    return {
      about: reply.about,
      [Symbol.asyncIterator]: () => pieces,
      text: async () => (await Array.fromAsync(pieces)).join(""),
    };
  }

  return {
    talk,
    async close(overdue) {
      isClosing = true;
      const ended = Promise.all([...callers].map(({ over }) => over));
      await Promise.race([ended, overdue]);
      for (const caller of callers) caller.leave(drainingError());
      const over = new AbortController();
      await Promise.race([ended, wait(partingMs, undefined, { signal: over.signal }).catch(() => {})]);
      over.abort();
    },
  };
}

/** Whoever asked, and may call it off with a signal of its own, whose reason is no error of ours. */
interface Caller {
  readonly signal: AbortSignal;
  leave(reason?: GatewayError): void;
  /** What it may do now is of no interest any more. */
  forget(): void;
  /** It was forgotten. */
  readonly over: Promise<void>;
}

function watchCaller(signal: AbortSignal | undefined): Caller {
  const controller = new AbortController();
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const leave = (reason = wasCancelled()) => controller.abort(reason);
  const cancel = () => leave();
  signal?.addEventListener("abort", cancel);
  if (signal?.aborted === true) leave();
  function forget(): void {
    signal?.removeEventListener("abort", cancel);
    resolve();
  }
  return { signal: controller.signal, leave, forget, over };
}

/** Rejects with why it has left. */
function whenLeft({ signal }: Caller): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

function hear({ events }: Reply, caller: Caller): AsyncGenerator<string, void, void> {
  const { signal } = caller;
  let isHeard = false;
  // Where nobody pulls, nothing runs that would see the signal; but the session waits for the turn.
  const callOff = () => {
    caller.forget();
    void events.return();
  };
  signal.addEventListener("abort", callOff);
  const overdue = setTimeout(() => caller.leave(), unheardMs).unref();
  if (signal.aborted) callOff();

  async function* tell(): AsyncGenerator<string, void, void> {
    isHeard = true;
    clearTimeout(overdue);
    try {
      signal.throwIfAborted();
      for await (const batch of events) {
        yield* saidIn(batch);
        if (batch.at(-1)?.type === "turn-end") return;
      }
      signal.throwIfAborted();
    } finally {
      caller.forget();
    }
  }
  return leaveOnReturn(tell(), () => {
    if (!isHeard) caller.leave();
  });
}

const unheardMs = 60_000;

function* saidIn(batch: readonly Event[]): Generator<string, void, void> {
  const text = batch.map((event) => (event.type === "item-delta" && isSaid(event.kind) ? event.text : "")).join("");
  if (text !== "") yield text;
  const last = batch.at(-1);
  if (last?.type !== "turn-end") return;
  const { status, error } = last.answer;
  if (status === "failed" || status === "cancelled") throw error ?? wasCancelled();
}

function isSaid(kind: string): boolean {
  return kind === "text" || kind === "refusal";
}

/** The header that every client knows, if it counts here, or else what counts first; nothing: no request can name a session. */
export function toNaming(hints: readonly Hint[]): Hint | undefined {
  return hints.find((hint) => hint.type === "header" && hint.name === "x-session-id") ?? hints[0];
}

/** The same hint that a request over HTTP would carry. */
export function toHint(naming: Hint | undefined, session: string | undefined): Pick<Seeker, "hint" | "hintsAtTalk"> {
  if (naming === undefined) return readHint([], {}, undefined);
  return readHint([naming], naming.type === "header" ? { [naming.name]: session } : {}, session);
}
