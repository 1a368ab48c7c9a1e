/** The story of a turn: find its place, take its turn, ask the adapter, tell what it says, remember it. */
import { assembleContext } from "./context.ts";
import { GatewayError, toGatewayError } from "./errors.ts";
import type { Event } from "./event.ts";
import { frame } from "./frame.ts";
import { findPlace } from "./place.ts";
import type { About, Adapter, SessionStore } from "./ports.ts";
import { createQueue } from "./queue.ts";
import type { Answer, Ask, Turn } from "./turn.ts";

export interface Gateway {
  /**
   * Resolves when the turn has its place. The first batch of events comes with the adapter's first word: what fails before
   * is thrown, what fails later is told by the one `turn-end`. Whoever asks must pull at least once, and to the end or `return()`.
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
}

export function createGateway(parts: GatewayParts): Gateway {
  const { adapter, store, resolveModel, limits, now, newSessionId } = parts;
  const queue = createQueue(limits.maxQueuedPerThread);

  return {
    async answer(ask, caller) {
      checkSize(ask, limits.maxItems);
      const { turnId: id, owner, hint, signal } = caller;
      const alone = ask.previousId !== undefined || hint === undefined;
      const leave = alone ? nothing : await queue.enter(`${owner}\n${hint}`, signal);
      try {
        const place = await findPlace(store, ask, owner, hint, newSessionId);
        const items = assembleContext(place, ask);
        const createdAt = now();
        const kept = ask.keep === "yes" || (ask.keep === "in-session" && place.by !== "nothing");
        const about: About = {
          id,
          createdAt,
          model: ask.model,
          session: place.move?.id,
          history: place.history,
          contextItems: items.length,
        };
        const turn: Turn = { id, model: resolveModel(ask.model), items, settings: ask.settings, stream: ask.stream };

        const settle = async (answer: Answer): Promise<void> => {
          signal.throwIfAborted();
          if (!kept) return;
          const committed = await store.commit({
            turn: {
              id,
              owner,
              session: place.move?.id,
              parent: place.path.at(-1)?.id,
              createdAt,
              model: ask.model,
              input: ask.items,
              output: answer.items,
              status: answer.status === "incomplete" ? "incomplete" : "completed",
              usage: answer.usage,
            },
            session: place.move,
          });
          if (!committed) {
            throw new GatewayError(
              "session_busy",
              "The session changed while this turn ran, so the turn was not kept. Send it again.",
              { retryAfterSeconds: 1 },
            );
          }
        };
        // When the turn was called off, why it was says more than what broke because of it.
        const explain = (thrown: unknown) => toGatewayError(signal.aborted ? signal.reason : thrown);
        return { about, events: frame(id, adapter.stream(turn, signal), { settle, explain, leave }) };
      } catch (thrown) {
        leave();
        throw thrown;
      }
    },
  };
}

function checkSize(ask: Ask, maxItems: number): void {
  if (ask.items.length <= maxItems) return;
  throw new GatewayError(
    "too_many_messages",
    `'${ask.itemsParam}' has ${ask.items.length} entries; at most ${maxItems} are allowed (gateway.http.limits.max_messages).`,
    { param: ask.itemsParam },
  );
}

function nothing(): void {}
