/** What gateways on one Redis publish to each other: names that one holds at a time, and events under them. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import type { Event } from "../../core/event.ts";
import type { Peers } from "../../core/peers.ts";
import type { Connection } from "./connection.ts";
import { createRetries } from "./retries.ts";
import type { Access } from "./access.ts";
import type { LeaseTimes } from "./lease.ts";
import { toList, toTexts } from "./script.ts";
import { scripts } from "./scripts.ts";
import { codeOf } from "./trouble.ts";

export interface RedisPeers extends Peers {
  /** Whether this gateway holds a name, even if Redis lost it. */
  isOurs(name: string): boolean;
  /** Renews its names, and releases what could not be released before. */
  renewNames(): void;
  /** Listens to the others from now on. */
  open(): Promise<void>;
  /** Releases every name. */
  close(): Promise<void>;
}

/**
 * Names contain words of callers, which are private, so they are hashed with the key that all gateways share. `leaseMs`
 * is how long one stays with a gateway that is gone.
 */
export function createPeers(
  { key: keyOf, withKeys, hashKey, resetAt }: Pick<Access, "key" | "withKeys" | "hashKey" | "resetAt">,
  { run, send, subscribe }: Connection,
  { leaseMs, renewMs }: LeaseTimes,
): RedisPeers {
  /** Names held here, each by a unique token. */
  const held = new Map<string, string>();
  const published = new Map<string, PublishedCount>();
  /** What is to be released. */
  const releases = createRetries();
  /** Those who wait here for each name, in order of arrival. */
  const waiting = new Map<string, Map<string, () => void>>();
  const listeners = new Set<(turnId: string) => void>();

  /** After an outage of Redis, gateways return one by one: another's names may be missing until it renews them. */
  const isRecovering = () => performance.now() - resetAt() < renewMs;

  /** What cannot be renewed now is retried in time; a lost name was only a promise. */
  async function hold(): Promise<void> {
    if (held.size === 0) return;
    const names = [...held];
    try {
      await run(scripts.hold, [String(leaseMs), ...names.flatMap(([token, name]) => [name, token])]);
    } finally {
      // One that was released meanwhile may have been retaken.
      for (const [token, name] of names) if (!held.has(token)) void release(name, token);
    }
  }

  async function acquire(
    token: string,
    name: string,
    key: string,
    behind: string,
    { signal, stands }: Waiter,
  ): Promise<void> {
    const line = waiting.get(name) ?? new Map<string, () => void>();
    waiting.set(name, line);
    const args = [name, token, String(leaseMs), String(goneMs), key, behind];
    let seenAt = -Infinity;
    try {
      for (;;) {
        signal.throwIfAborted();
        const news = Promise.withResolvers<void>();
        line.set(token, news.resolve);
        try {
          const isIn = (await run(scripts.enter, args)) === 1;
          stands();
          if (isIn) return;
          seenAt = performance.now();
        } catch (thrown) {
          // Redis may be away for a moment, and keeps the place so long.
          if (!(thrown instanceof GatewayError) || performance.now() - seenAt > goneMs) throw thrown;
        }
        await Promise.race([news.promise, wait(pollMs, undefined, { signal, ref: false })]);
      }
    } finally {
      line.delete(token);
      if (line.size === 0) waiting.delete(name);
    }
  }

  /** The others here wait behind it. */
  function wakeFirst(name: string): void {
    waiting.get(name)?.values().next().value?.();
  }

  /** A name that cannot be released now is released when Redis is back, or when it expires. */
  function release(name: string, token: string): Promise<void> {
    return releases.add(token, async () => {
      await run(scripts.leave, [name, token]);
      // What Redis publishes may be lost, and those who wait here need not depend on it.
      wakeFirst(name);
    });
  }

  const enter: Peers["enter"] = async (words, signal, stands = ignore, behind) => {
    try {
      return await enterLine(words, behind, { signal, stands });
    } catch (thrown) {
      if (behind === undefined || codeOf(thrown) !== "BEHIND") throw thrown;
    }
    const leaveFirst = await enter(behind, signal, stands);
    try {
      const leave = await enter(words, signal, stands);
      return () => [leave, leaveFirst].forEach((each) => each());
    } catch (thrown) {
      leaveFirst();
      throw thrown;
    }
  };

  async function enterLine(words: string, behind: string | undefined, waiter: Waiter): Promise<() => void> {
    const { signal } = waiter;
    const token = randomUUID();
    let name = "";
    try {
      await withKeys((hash, key) => {
        name = hash("", words);
        return acquire(token, name, key, behind === undefined ? "" : hash("", behind), waiter);
      });
      signal.throwIfAborted();
    } catch (thrown) {
      void release(name, token);
      throw signal.aborted ? signal.reason : thrown;
    }
    held.set(token, name);
    return () => {
      if (!held.delete(token)) return;
      published.delete(words);
      void release(name, token);
    };
  }

  async function readMessages(words: string, from: number, to = from + maxBatches - 1): Promise<Received> {
    const range = [from, to].map(String);
    const received = await withKeys((hash, key) => run(scripts.readMessages, [hash("", words), ...range, key]));
    const [isTaken, said] = toList(received);
    return { isTaken: isTaken === 1, said: toTexts(said).map((text) => JSON.parse(text)) };
  }

  /** The same while Redis may be away: events continue, and are found when it is back. */
  async function readMessagesWithRetries(words: string, from: number, signal: AbortSignal): Promise<Received> {
    for (let misses = 0; ; misses += 1) {
      signal.throwIfAborted();
      try {
        return await readMessages(words, from);
      } catch (thrown) {
        if (!(thrown instanceof GatewayError) || misses === maxMisses) throw thrown;
      }
      // A caller that leaves gets its own reason in the next round.
      await wait(listenMs, undefined, { signal }).catch(ignore);
    }
  }

  return {
    renewNames() {
      releases.retryAll();
      hold().catch(ignore);
    },
    async open() {
      await subscribe(keyOf("freed"), wakeFirst);
      await subscribe(keyOf("called-off"), (turnId) => {
        for (const listener of listeners) listener(turnId);
      });
    },
    enter,
    isOurs: (words) => [...held.values()].includes(hashKey("", words)),
    async isTaken(words) {
      for (;;) {
        // The events may be megabytes, and are not needed here.
        const { isTaken } = await readMessages(words, 1, 0);
        // Its holder may not be back yet to retake it.
        if (isTaken || !isRecovering()) return isTaken;
        await wait(listenMs);
      }
    },
    publish(words, events) {
      const name = hashKey("", words);
      const before = published.get(words) ?? { events: 0, characters: 0 };
      const text = JSON.stringify([before.events, events] satisfies PublishedBatch);
      const now = { events: before.events + events.length, characters: before.characters + text.length };
      published.set(words, now);
      if (now.characters <= maxPublishedCharacters)
        run(scripts.publish, [name, text, String(leaseMs * 2)]).catch(ignore);
    },
    async *subscribe(words, signal) {
      let [received, place] = [0, 0];
      for (;;) {
        const { isTaken, said } = await readMessagesWithRetries(words, place, signal);
        for (const [before, events] of said) {
          if (before !== received) continue;
          received += events.length;
          yield events;
        }
        place += said.length;
        if (!isTaken && said.length === 0 && !isRecovering()) return;
        if (said.length === 0) await wait(listenMs, undefined, { signal }).catch(ignore);
      }
    },
    async cancel(words, turnId) {
      await send(["PUBLISH", keyOf("called-off"), turnId]);
      const signal = AbortSignal.timeout(cancelMs);
      const leave = await enter(words, signal).catch((thrown: unknown) => {
        if (!signal.aborted) throw thrown;
      });
      leave?.();
    },
    onCancel: (listener) => void listeners.add(listener),
    async close() {
      const names = [...held];
      held.clear();
      await Promise.all(names.map(([token, name]) => release(name, token)));
    },
  };
}

interface Waiter {
  readonly signal: AbortSignal;
  readonly stands: () => void;
}

/** Events, after the number of those told before them. */
type PublishedBatch = readonly [before: number, events: readonly Event[]];

interface Received {
  readonly isTaken: boolean;
  readonly said: readonly PublishedBatch[];
}

interface PublishedCount {
  readonly events: number;
  readonly characters: number;
}

function ignore(): void {}

/** Waiters are notified, but a message can be lost. */
const pollMs = 1_000;
/** After how long without a poll a waiter counts as gone. */
const goneMs = 4_000;
const cancelMs = 5_000;
/** How often a listener polls for events. */
const listenMs = 50;
/** How many polls may fail in a row: about as long as a commit waits for Redis. */
const maxMisses = 100;
const maxBatches = 200;
/** Of a longer answer, others get the rest when it is over. */
const maxPublishedCharacters = 4 * 1024 * 1024;
