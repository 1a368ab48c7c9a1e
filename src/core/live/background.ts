/**
 * Background turns: queued and known to the store before they are acknowledged, and reported as failed rather than
 * lost.
 */
import { toGatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import type { BeginTurn, Caller, Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import { beginUnthreaded, endFailed, type TurnRecord } from "../turn-record.ts";
import type { RemoteTurns } from "./remote-turns.ts";
import type { LiveEntry, LiveTurns } from "./live-turns.ts";
import { findContinued, placedBy } from "../place/place.ts";
import { type About, unplaced } from "../ports.ts";
import type { SessionStore } from "../store.ts";
import type { Ask } from "../turn.ts";
import { truncationOf } from "../window/fit.ts";

export interface BackgroundParts {
  readonly store: SessionStore;
  readonly liveTurns: LiveTurns;
  readonly remoteTurns: RemoteTurns;
  readonly begin: BeginTurn;
  readonly now: () => Date;
}

/** Resolves when the turn is durably known; what it says can be followed, or retrieved later. */
export type InBackground = (ask: Ask<Item>, caller: Caller) => Promise<LiveEntry>;

export function createBackground({ store, liveTurns, remoteTurns, begin, now }: BackgroundParts): InBackground {
  return async (ask, caller) => {
    const { owner, turnId, key, memo } = caller;
    // What it continues is looked up now, while its caller can still be told that it does not exist.
    const session = await findContinued(store, owner, ask);
    const truncation = truncationOf(ask, placedBy(ask, caller.hint));
    const about: Writable<About> = { ...unplaced, id: turnId, createdAt: now(), model: ask.model, session, truncation };
    const turnRecord: TurnRecord = { owner, about, memo, background: true, isReplayable: true };

    async function* publishEvents(beginning: Promise<Reply>, signal: AbortSignal): Events {
      const queued: readonly Event[] = [{ type: "turn-queued" }];
      remoteTurns.publish(turnId, queued);
      yield queued;
      let reply: Reply | undefined;
      try {
        reply = await beginning;
        Object.assign(about, reply.about);
        for await (const events of reply.events) {
          remoteTurns.publish(turnId, events);
          about.adapter = reply.about.adapter;
          yield events;
        }
      } catch (thrown) {
        about.adapter = reply?.about.adapter;
        const failure = toGatewayError(signal.aborted ? signal.reason : thrown);
        yield await endFailed(store, turnRecord, ask.items, failure, now());
      }
    }

    const entry = { owner, turnId, input: () => ask.items, memo, background: true, fingerprint: key?.fingerprint };
    /** What releases its slot, and its name among the gateways. */
    const leaving: ((() => void) | undefined)[] = [];
    // Nothing may be stored of a turn without room: nobody would ever end it.
    const live = liveTurns.start(entry, undefined, async (signal) => {
      leaving.push(caller.stay?.());
      leaving.push(await remoteTurns.announce(turnId, signal));
      const standing = Promise.withResolvers<void>();
      const asking = { ...caller, signal, createdAt: about.createdAt, stands: standing.resolve };
      const beginning = begin(ask, asking, "in background");
      // What is sent after the acknowledgement queues behind it, on any gateway.
      await Promise.race([standing.promise, beginning]);
      try {
        await beginUnthreaded(store, turnRecord, ask.items, key, now);
      } catch (thrown) {
        // It may still wait, and nobody else would cancel it.
        live.turn.cancel(toGatewayError(thrown));
        await beginning.then(({ events }) => events.return()).catch(() => {});
        throw thrown;
      }
      return { about, events: publishEvents(beginning, signal) };
    });
    void live.turn.ended.then(() => leaving.forEach((leave) => leave?.()));
    await live.turn.placed;
    return live;
  };
}

type Writable<Known> = { -readonly [Key in keyof Known]: Known[Key] };
