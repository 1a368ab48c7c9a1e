/**
 * Turns that the store knows as running: in the background, or with a key that other gateways know too. They are
 * reported as failed rather than lost.
 */
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import { failedTurn } from "../frame/frame.ts";
import type { BeginTurn, Caller, Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import { nameOfRun } from "../peers.ts";
import { findContinued, placedBy } from "../place/place.ts";
import { type About, unplaced } from "../ports.ts";
import type { SessionStore } from "../store.ts";
import { toUnthreadedTurn, type TurnRecord } from "../turn-record.ts";
import type { Ask } from "../turn.ts";
import { truncationOf } from "../window/fit.ts";
import type { Begun, LiveTurn } from "./live-turn.ts";

/**
 * Resolves when the turn is durably known. One in the background was described `early`: it need not have its place by
 * then, but is in line for it.
 */
export type BeginStored = (ask: Ask<Item>, caller: Caller, live: LiveTurn, early?: About) => Promise<Begun>;

export interface BeginStoredParts {
  readonly store: SessionStore;
  readonly begin: BeginTurn;
  readonly now: () => Date;
}

export function createBeginStored({ store, begin, now }: BeginStoredParts): BeginStored {
  async function beginStored(ask: Ask<Item>, caller: Caller, live: LiveTurn, early?: About): Promise<Begun> {
    const { owner, turnId, key, memo } = caller;
    const { items: input } = ask;
    const { signal } = live;
    const background = early !== undefined;
    live.atEnd(await store.peers?.enter(nameOfRun(turnId), signal));
    const standing = Promise.withResolvers<void>();
    const createdAt = early?.createdAt ?? caller.createdAt;
    const asking = { ...caller, signal, createdAt, stands: standing.resolve };
    const beginning = begin(ask, asking, true);
    // What is sent after the acknowledgement queues behind it, on any gateway.
    if (background) await Promise.race([standing.promise, beginning]);
    const about = early ?? (await beginning).about;
    const turnRecord = { owner, about, memo, background, isReplayable: true };
    try {
      await store.begin(toUnthreadedTurn(turnRecord, input, undefined), key);
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      // The store may have kept it, and it may still wait: nobody else would end or cancel it.
      await endFailed(turnRecord, input, failure);
      live.cancel(failure);
      await beginning.then(({ events }) => events.return()).catch(() => {});
      throw thrown;
    }
    return { about, events: publish(ask, turnRecord, beginning, signal), input };
  }

  /** What a turn says, published to other gateways; if it fails before its first word, the store is told. */
  async function* publish(
    ask: Ask<Item>,
    turnRecord: TurnRecord,
    beginning: Promise<Reply>,
    signal: AbortSignal,
  ): Events {
    const { about, background } = turnRecord;
    const peers = isPublishable(ask) ? store.peers : undefined;
    const tell = (events: readonly Event[]): void => {
      // Others learn the end from the store.
      const published = events.filter(({ type }) => type !== "turn-end");
      if (published.length > 0) peers?.publish(nameOfRun(about.id), published);
    };
    let reply: Reply | undefined;
    try {
      if (background) {
        const queued = [{ type: "turn-queued" }] as const;
        tell(queued);
        yield queued;
      }
      reply = await beginning;
      Object.assign(about, reply.about);
      for await (const events of reply.events) {
        tell(events);
        // The adapter is known with the first word.
        Object.assign(about, reply.about);
        yield events;
      }
    } catch (thrown) {
      Object.assign(about, reply?.about);
      const failure = toGatewayError(signal.aborted ? signal.reason : thrown);
      const events = await endFailed(turnRecord, ask.items, failure);
      // Whoever was told that it is queued already has a stream.
      if (!background) throw failure;
      yield events;
    }
  }

  /** Ends a turn that is stored as running and failed before its first word; returns the events that say so. */
  async function endFailed(
    turnRecord: TurnRecord,
    input: readonly Item[],
    failure: GatewayError,
  ): Promise<readonly Event[]> {
    const events = failedTurn(failure, now());
    // If the store fails now and later too, the turn stays running, and is reported as interrupted.
    await store.end(toUnthreadedTurn(turnRecord, input, events[1].answer)).catch(() => false);
    return events;
  }

  return beginStored;
}

/** Several answers told at once cannot be resumed in the middle: other gateways get them when they are over. */
export function isPublishable({ settings: { choices = 1 } }: Ask): boolean {
  return choices === 1;
}

/**
 * What is known of a turn in the background before it has its place. What it continues is looked up while its caller can
 * still be told that it does not exist.
 */
export async function describeUnplaced(
  { store, now }: Pick<BeginStoredParts, "store" | "now">,
  ask: Ask<Item>,
  { turnId: id, owner, hint }: Caller,
): Promise<About> {
  const session = await findContinued(store, owner, ask);
  const truncation = truncationOf(ask, placedBy(ask, hint));
  return { ...unplaced, id, createdAt: now(), model: ask.model, session, truncation };
}
