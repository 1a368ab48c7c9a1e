/** The story of a turn: find its place, take its turn, ask the adapter, tell what it says, remember it. */
import { type Chain, createChain, type Marks } from "./chain.ts";
import { assembleContext } from "./context.ts";
import { GatewayError, toGatewayError } from "./errors.ts";
import type { Event } from "./event.ts";
import { frame } from "./frame.ts";
import { findPlace, type Place } from "./place.ts";
import type { About, Adapter, Commit, SessionStore, StoredTurn } from "./ports.ts";
import { createQueue } from "./queue.ts";
import type { Answer, Ask, Turn } from "./turn.ts";

export interface Gateway {
  /**
   * Resolves when the turn has its place. The first batch of events comes with the adapter's first word: what fails before
   * is thrown, what fails later is told by the one `turn-end`. Whoever asks must pull to the end or call `return()`.
   */
  answer(ask: Ask, caller: Caller): Promise<Reply>;
}

export interface Caller {
  /** The name of the turn to come, so that even one that fails early can be told by name. */
  readonly turnId: string;
  readonly owner: string;
  /** What the request says about its session. */
  readonly hint: string | undefined;
  /** Aborts when the caller is gone or the turn is called off; its reason is a GatewayError. */
  readonly signal: AbortSignal;
}

export interface Reply {
  readonly about: About;
  readonly events: AsyncGenerator<readonly Event[], void, void>;
}

export interface GatewayParts {
  readonly adapter: Adapter;
  readonly store: SessionStore;
  /** The name under which the adapter knows a model. */
  readonly resolveModel: (asked: string) => string;
  readonly limits: { readonly maxItems: number; readonly maxQueuedPerThread: number };
  readonly now: () => Date;
  readonly newSessionId: () => string;
  /** A hash, short and without collisions. */
  readonly digest: (text: string) => string;
}

export function createGateway(parts: GatewayParts): Gateway {
  const { adapter, store, resolveModel, limits, now, newSessionId } = parts;
  const chain = createChain(parts.digest);
  const placing = { store, chain, queue: createQueue(limits.maxQueuedPerThread), newSessionId };

  return {
    async answer(ask, caller) {
      checkSize(ask, limits.maxItems);
      const { turnId: id, owner, signal } = caller;
      const whenLeft: (() => void)[] = [];
      const leave = () => {
        for (const each of whenLeft.splice(0).toReversed()) each();
      };
      try {
        const place = await findPlace(placing, ask, caller, whenLeft);
        const items = assembleContext(place, ask);
        const kept = ask.keep === "yes" || (ask.keep === "in-session" && place.by !== "nothing");
        const about: About = {
          id,
          createdAt: now(),
          model: ask.model,
          session: kept ? place.move?.id : place.session?.id,
          history: place.history,
          contextItems: items.length,
        };
        const turn: Turn = { id, model: resolveModel(ask.model), items, settings: ask.settings, stream: ask.stream };
        const events = frame(id, adapter.stream(turn, signal), {
          async settle(answer) {
            signal.throwIfAborted();
            if (kept && !(await store.commit(toCommit(chain, owner, place, about, answer)))) throw sessionMoved();
          },
          // When the turn was called off, why it was says more than what broke because of it.
          explain: (thrown) => toGatewayError(signal.aborted ? signal.reason : thrown),
          leave,
        });
        return { about, events: leaveOnReturn(events, leave) };
      } catch (thrown) {
        leave();
        throw thrown;
      }
    },
  };
}

/** What the caller showed of the time before becomes a turn of its own, so that a later request can branch off behind it. */
function toCommit(chain: Chain, owner: string, place: Place, about: About, answer: Answer): Commit {
  const { path, base, input, move } = place;
  const common = { owner, session: move?.id, createdAt: about.createdAt, model: about.model };
  const toTurn = (
    id: string,
    before: readonly StoredTurn[],
    said: Pick<StoredTurn, "input" | "output" | "status" | "usage">,
  ): StoredTurn => ({
    ...common,
    id,
    parent: before.at(-1)?.id,
    ...said,
    ...(move === undefined ? unmarked : chain.mark(move.id, before, said.input, said.output)),
  });
  const status = answer.status === "incomplete" ? "incomplete" : "completed";
  const said = { input, output: answer.items, status, usage: answer.usage } as const;
  if (base.length === 0 || move === undefined) return { turns: [toTurn(about.id, path, said)], session: move };
  const shown = toTurn(`${about.id}_shown`, path, { input: base, output: [], status: "shown", usage: undefined });
  return { turns: [shown, toTurn(about.id, [...path, shown], said)], session: move };
}

/** Outside sessions nobody looks for a turn by what was said. */
const unmarked: Marks = { digest: undefined, exchange: undefined };

function sessionMoved(): GatewayError {
  return new GatewayError(
    "session_busy",
    "The session changed while this turn ran, so the turn was not kept. Send it again.",
    { retryAfterSeconds: 1 },
  );
}

/** A generator that was never pulled runs none of its own `finally`. */
function leaveOnReturn<Events extends AsyncGenerator<unknown, void, void>>(events: Events, leave: () => void): Events {
  const end = events.return.bind(events);
  events.return = (value) => {
    leave();
    return end(value);
  };
  return events;
}

function checkSize(ask: Ask, maxItems: number): void {
  if (ask.items.length <= maxItems) return;
  throw new GatewayError(
    "too_many_messages",
    `'${ask.itemsParam}' comes to ${ask.items.length} messages, calls and outputs; at most ${maxItems} are allowed (gateway.http.limits.max_messages).`,
    { param: ask.itemsParam },
  );
}
