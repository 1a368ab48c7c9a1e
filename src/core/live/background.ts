/**
 * Background turns: queued and known to the store before they are acknowledged, and reported as failed rather than
 * lost.
 */
import { toGatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import type { BeginTurn, Caller, Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import { beginLone, endFailed, type Keepsake } from "../keep.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { Live, Lives } from "./lives.ts";
import { findContinued, placedBy } from "../place/place.ts";
import { type About, unplaced } from "../ports.ts";
import type { SessionStore } from "../store.ts";
import type { Ask } from "../turn.ts";
import { truncationOf } from "../window/fit.ts";

export interface BackgroundParts {
  readonly store: SessionStore;
  readonly lives: Lives;
  readonly elsewhere: Elsewhere;
  readonly begin: BeginTurn;
  readonly now: () => Date;
}

/** Resolves when the turn is durably known; what it says can be followed, or retrieved later. */
export type InBackground = (ask: Ask<Item>, caller: Caller) => Promise<Live>;

export function createBackground({ store, lives, elsewhere, begin, now }: BackgroundParts): InBackground {
  return async (ask, caller) => {
    const { owner, turnId, key, memo } = caller;
    // What it continues is looked up now, while its caller can still be told that it does not exist.
    const session = await findContinued(store, owner, ask);
    const truncation = truncationOf(ask, placedBy(ask, caller.hint));
    const about: Writable<About> = { ...unplaced, id: turnId, createdAt: now(), model: ask.model, session, truncation };
    const keepsake: Keepsake = { owner, about, memo, background: true, isRetold: true };

    async function* tell(beginning: Promise<Reply>, signal: AbortSignal): Events {
      const queued: readonly Event[] = [{ type: "turn-queued" }];
      elsewhere.tell(turnId, queued);
      yield queued;
      let reply: Reply | undefined;
      try {
        reply = await beginning;
        Object.assign(about, reply.about);
        for await (const events of reply.events) {
          elsewhere.tell(turnId, events);
          about.adapter = reply.about.adapter;
          yield events;
        }
      } catch (thrown) {
        about.adapter = reply?.about.adapter;
        const failure = toGatewayError(signal.aborted ? signal.reason : thrown);
        yield await endFailed(store, keepsake, ask.items, failure, now());
      }
    }

    const life = { owner, turnId, input: () => ask.items, memo, background: true, fingerprint: key?.fingerprint };
    /** What releases its slot, and its name among the gateways. */
    const leaving: ((() => void) | undefined)[] = [];
    // Nothing may be stored of a turn without room: nobody would ever end it.
    const live = lives.start(life, undefined, async (signal) => {
      leaving.push(caller.stay?.());
      leaving.push(await elsewhere.announce(turnId, signal));
      const standing = Promise.withResolvers<void>();
      const asking = { ...caller, signal, createdAt: about.createdAt, stands: standing.resolve };
      const beginning = begin(ask, asking, "in background");
      // What is sent after the acknowledgement queues behind it, on any gateway.
      await Promise.race([standing.promise, beginning]);
      try {
        await beginLone(store, keepsake, ask.items, key, now);
      } catch (thrown) {
        // It may still wait, and nobody else would cancel it.
        live.turn.cancel(toGatewayError(thrown));
        await beginning.then(({ events }) => events.return()).catch(() => {});
        throw thrown;
      }
      return { about, events: tell(beginning, signal) };
    });
    void live.turn.ended.then(() => leaving.forEach((leave) => leave?.()));
    await live.turn.placed;
    return live;
  };
}

type Writable<Known> = { -readonly [Key in keyof Known]: Known[Key] };
