/** Turns from outside HTTP: a channel's messages run in the sessions that all clients share. */
import { setTimeout as wait } from "node:timers/promises";
import type { Hint } from "./config/config.ts";
import { cancelledError, drainingError, type GatewayError, toGatewayError } from "./core/errors.ts";
import type { Event } from "./core/event.ts";
import type { Caller, Gateway, Reply } from "./core/gateway.ts";
import { leaveOnReturn } from "./core/leaving.ts";
import { toOutcome } from "./core/live/live-turn.ts";
import type { Requester } from "./core/place/place.ts";
import type { About } from "./core/ports.ts";
import type { EndedTurn } from "./core/observer.ts";
import { unlessAborted } from "./core/unless-aborted.ts";
import { readHint } from "./http/hint.ts";
import { type Message, readMessage } from "./message.ts";
import { unnamedOwner } from "./parts.ts";

/**
 * An answer in pieces. It can be read once, as pieces or as one text; a reader that stops, or does not start within a
 * minute, cancels the turn.
 */
export interface Talk extends AsyncIterable<string> {
  readonly about: About;
  /** The whole answer at its end. */
  text(): Promise<string>;
}

export interface ChannelParts {
  readonly gateway: Pick<Gateway, "answer">;
  readonly hints: () => readonly Hint[];
  /** For messages without one. */
  readonly model: () => Promise<string>;
  readonly newTurnId: () => string;
  /** Called for every turn that ends, read or not. */
  readonly ended: (turn: EndedTurn) => void;
}

export interface Channel {
  /** Resolves when the turn has its place. Fails at once, or while the answer is read. */
  talk(message: Message): Promise<Talk>;
  /** The caller to pass to the gateway for a turn in the named session. */
  caller(of?: Pick<Message, "session" | "owner" | "signal">): Caller;
  /** Lets running turns finish until `overdue` resolves, then cancels them; no new ones start. */
  close(overdue: Promise<void>): Promise<void>;
}

/** How long a cancelled turn may take to tell its reader why; a reader cannot be made to listen. */
const cancelGraceMs = 1_000;

export function createChannel(parts: ChannelParts): Channel {
  const running = new Set<RunningTurn>();
  let isClosing = false;
  const name = (owner = unnamedOwner): Named => ({ turnId: parts.newTurnId(), owner });
  const hintAt = (session: string | undefined) => toHint(toNaming(parts.hints()), session);

  async function talk(message: Message): Promise<Talk> {
    if (isClosing) throw drainingError();
    const { owner, signal, ...said } = readMessage(message);
    const named = name(owner);
    const turn = startTurn(signal);
    void follow(turn, named);
    try {
      return await answer(said, named, turn);
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      turn.end({ about: undefined, failure });
      throw failure;
    }
  }

  async function follow(turn: RunningTurn, named: Named): Promise<void> {
    const since = performance.now();
    running.add(turn);
    const end = await turn.ended;
    running.delete(turn);
    parts.ended({ ...named, ...end, ms: performance.now() - since });
  }

  async function answer(said: Message, named: Named, turn: RunningTurn): Promise<Talk> {
    const { content, session, instructions } = said;
    // Awaited in either case, so that turns with a known model keep their order of arrival.
    const model = await (said.model ?? unlessAborted(parts.model(), turn.signal));
    const reply = await parts.gateway.answer(
      {
        model,
        items: [{ type: "message", role: "user", content }],
        itemsParam: "message.content",
        settings: { tools: [], ...(instructions !== undefined && { instructions }) },
        stream: true,
        keep: "in-session",
      },
      { ...named, ...hintAt(session), neverShows: true, signal: turn.signal },
    );
    const readOnce = once(readReply(reply, turn));
    return {
      about: reply.about,
      [Symbol.asyncIterator]: readOnce,
      text: async () => (await Array.fromAsync(readOnce())).join(""),
    };
  }

  return {
    talk,
    caller({ session, owner, signal = never } = {}) {
      return { ...name(owner), ...hintAt(session), signal };
    },
    async close(overdue) {
      isClosing = true;
      const ended = Promise.all(Array.from(running, (turn) => turn.ended));
      await Promise.race([ended, overdue]);
      for (const turn of running) turn.cancel(drainingError());
      const over = new AbortController();
      await Promise.race([ended, wait(cancelGraceMs, undefined, { signal: over.signal }).catch(() => {})]);
      over.abort();
    },
  };
}

/** A future turn and its owner. */
type Named = Pick<Caller, "turnId" | "owner">;

/** For callers that never cancel. */
const never = new AbortController().signal;

/** A turn that has not ended yet. */
interface RunningTurn {
  readonly signal: AbortSignal;
  cancel(reason?: GatewayError): void;
  end(end: End): void;
  /** Resolves when it has ended. */
  readonly ended: Promise<End>;
}

type End = Pick<EndedTurn, "about" | "usage" | "failure">;

/** Its caller may cancel it with a signal, whose reason is not one of our errors. */
function startTurn(signal: AbortSignal | undefined): RunningTurn {
  const controller = new AbortController();
  const { promise: ended, resolve } = Promise.withResolvers<End>();
  const cancel = (reason = cancelledError()) => controller.abort(reason);
  const leave = () => cancel();
  signal?.addEventListener("abort", leave);
  if (signal?.aborted === true) cancel();
  function end(how: End): void {
    signal?.removeEventListener("abort", leave);
    resolve(how);
  }
  return { signal: controller.signal, cancel, end, ended };
}

function readReply({ about, events }: Reply, turn: RunningTurn): AsyncGenerator<string, void, void> {
  const { signal } = turn;
  let isStarted = false;
  // If nobody pulls, nothing runs that would see the signal, yet the session waits for the turn.
  const stop = () => {
    turn.end({ about, failure: toGatewayError(signal.reason) });
    void events.return();
  };
  signal.addEventListener("abort", stop);
  const overdue = setTimeout(() => turn.cancel(), unreadMs).unref();
  if (signal.aborted) stop();

  async function* streamText(): AsyncGenerator<string, void, void> {
    isStarted = true;
    clearTimeout(overdue);
    let end: End = { about, failure: cancelledError() };
    try {
      signal.throwIfAborted();
      for await (const batch of events) {
        const last = batch.at(-1);
        if (last?.type === "turn-end") end = { about, ...toOutcome(last) };
        const text = textIn(batch);
        if (text !== "") yield text;
        if (last?.type !== "turn-end") continue;
        if (end.failure !== undefined) throw end.failure;
        return;
      }
      signal.throwIfAborted();
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      end = { ...end, failure };
      throw failure;
    } finally {
      turn.end(end);
    }
  }
  return leaveOnReturn(streamText(), () => {
    if (!isStarted) turn.cancel();
  });
}

const unreadMs = 60_000;

/** A second reader would get nothing, and think it the answer. */
function once<Value>(value: Value): () => Value {
  let isTaken = false;
  return () => {
    if (isTaken)
      throw new TypeError("An answer can be read only once, as pieces or as one text. Keep what you have read.");
    isTaken = true;
    return value;
  };
}

function textIn(batch: readonly Event[]): string {
  const said = batch.filter((event) => event.type === "item-delta");
  return said.map(({ kind, text }) => (kind === "text" || kind === "refusal" ? text : "")).join("");
}

/** `X-Session-Id` if it is among the hints, else the first hint; undefined if no request can name a session. */
export function toNaming(hints: readonly Hint[]): Hint | undefined {
  return hints.find((hint) => hint.type === "header" && hint.name === "x-session-id") ?? hints[0];
}

/** The same hint that a request over HTTP would carry. */
export function toHint(naming: Hint | undefined, session: string | undefined): Pick<Requester, "hint" | "hintsAtTalk"> {
  if (naming === undefined) return readHint([], {}, undefined);
  return readHint([naming], naming.type === "header" ? { [naming.name]: session } : {}, session);
}
