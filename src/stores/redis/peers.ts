/** What gateways on one Redis publish to each other: names that one holds at a time, and events under them. */
import { setTimeout as wait } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import type { Event } from "../../core/event.ts";
import type { Peers } from "../../core/peers.ts";
import type { Access } from "./access.ts";
import type { Connection } from "./connection.ts";
import type { Lease, LeaseTimes } from "./lease.ts";
import { type Names, createNames } from "./names.ts";
import { toList, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";
import { createUses } from "./uses.ts";

export interface RedisPeers extends Peers, Pick<Names, "isOurs" | "renew"> {
  /** Listens to the others from now on. */
  open(): Promise<void>;
  /** Releases every name. */
  close(): Promise<void>;
}

export function createPeers(
  access: Access,
  connection: Connection,
  lease: Lease,
  { leaseMs, renewMs }: LeaseTimes,
): RedisPeers {
  /** How much was published under each name. */
  const published = new Map<string, { readonly events: number; readonly characters: number }>();
  const uses = createUses(connection, lease);
  const { enter, isOurs, renew, wakeFirst, releaseAll } = createNames(access, connection, leaseMs, (words) => {
    published.delete(words);
  });
  const listeners = new Set<(turnId: string) => void>();
  const calledOff = access.key("called-off");

  /** After an outage of Redis, gateways return one by one: another's names may be missing until it renews them. */
  const isRecovering = () => performance.now() - access.resetAt() < renewMs;

  async function read(words: string, from: number, to: number): Promise<Received> {
    const range = [from, to].map(String);
    const received = await access.withKeys((hash, key) =>
      connection.run(scripts.readMessages, [hash("", words), ...range, key]),
    );
    const [isTaken, said] = toList(received);
    return { isTaken: isTaken === 1, said: toTexts(said).map((text) => JSON.parse(text)) };
  }

  /** While Redis may be away: events continue, and are found when it is back. */
  async function readWithRetries(words: string, from: number, signal: AbortSignal): Promise<Received> {
    for (let misses = 0; ; misses += 1) {
      signal.throwIfAborted();
      try {
        return await read(words, from, from + maxBatches - 1);
      } catch (thrown) {
        if (!(thrown instanceof GatewayError) || misses === maxMisses) throw thrown;
      }
      await pause(signal);
    }
  }

  return {
    enter,
    isOurs,
    shareUse: uses.shareUse,
    renew() {
      renew();
      uses.renew();
    },
    publish(words, events) {
      const before = published.get(words) ?? { events: 0, characters: 0 };
      const text = JSON.stringify([before.events, events] satisfies PublishedBatch);
      const now = { events: before.events + events.length, characters: before.characters + text.length };
      published.set(words, now);
      if (now.characters > maxPublishedCharacters) return;
      connection.run(scripts.publish, [access.hashKey("", words), text, String(leaseMs * 2)]).catch(() => {});
    },
    async *subscribe(words, signal) {
      let [received, place] = [0, 0];
      for (;;) {
        const { isTaken, said } = await readWithRetries(words, place, signal);
        for (const [before, events] of said) {
          if (before !== received) continue;
          received += events.length;
          yield events;
        }
        place += said.length;
        if (said.length > 0) continue;
        if (!isTaken && !isRecovering()) return;
        await pause(signal);
      }
    },
    async isTaken(words) {
      for (;;) {
        // The events may be megabytes, and are not needed here.
        const { isTaken } = await read(words, 1, 0);
        // Its holder may not be back yet to retake it.
        if (isTaken || !isRecovering()) return isTaken;
        await wait(listenMs);
      }
    },
    async cancel(words, turnId) {
      await connection.send(["PUBLISH", calledOff, turnId]);
      const signal = AbortSignal.timeout(cancelMs);
      const leave = await enter(words, signal).catch((thrown: unknown) => {
        if (!signal.aborted) throw thrown;
      });
      leave?.();
    },
    onCancel: (listener) => void listeners.add(listener),
    open: () =>
      connection.listen({
        [access.key("freed")]: wakeFirst,
        [calledOff]: (turnId) => listeners.forEach((listener) => listener(turnId)),
      }),
    close() {
      uses.close();
      return releaseAll();
    },
  };
}

/** A caller that leaves gets its own reason with the next poll. */
async function pause(signal: AbortSignal): Promise<void> {
  await wait(listenMs, undefined, { signal }).catch(() => {});
}

/** Events, after the number of those told before them. */
type PublishedBatch = readonly [before: number, events: readonly Event[]];

interface Received {
  readonly isTaken: boolean;
  readonly said: readonly PublishedBatch[];
}

const cancelMs = 5_000;
/** How often a listener polls for events. */
const listenMs = 50;
/** How many polls may fail in a row: about as long as a commit waits for Redis. */
const maxMisses = 100;
const maxBatches = 200;
/** Of a longer answer, others get the rest when it is over. */
const maxPublishedCharacters = 4 * 1024 * 1024;
