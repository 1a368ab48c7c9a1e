/** Names that one gateway on a Redis holds at a time: those who wait for one have it in the order in which they came. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import type { Peers } from "../../core/peers.ts";
import type { Access } from "./access.ts";
import type { Connection } from "./connection.ts";
import { createRetries } from "./retries.ts";
import * as scripts from "./scripts.ts";
import { codeOf } from "./trouble.ts";

export interface Names {
  readonly enter: Peers["enter"];
  /** Whether this gateway holds a name, even if Redis lost it. */
  isOurs(words: string): boolean;
  /** Renews all that are held, and releases what could not be released before. */
  renew(): void;
  /** Tells the first who waits here for a name, given as its hash, to ask for it. */
  wakeFirst(name: string): void;
  releaseAll(): Promise<void>;
}

/**
 * Names contain words of callers, which are private, so they are hashed with the key that all gateways share. `leaseMs`
 * is how long one stays with a gateway that is gone; `onLeave` is told the words of each that is released.
 */
export function createNames(
  { withKeys, hashKey }: Pick<Access, "withKeys" | "hashKey">,
  { run }: Connection,
  leaseMs: number,
  onLeave: (words: string) => void,
): Names {
  /** Names held here, each by a unique token. */
  const held = new Map<string, string>();
  const releases = createRetries();
  const lines = createLines();

  const enter: Names["enter"] = async (words, signal, stands = ignore, behind) => {
    try {
      return await enterLine(words, behind, signal, stands);
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

  async function enterLine(
    words: string,
    behind: string | undefined,
    signal: AbortSignal,
    stands: () => void,
  ): Promise<() => void> {
    const token = randomUUID();
    let name = "";
    try {
      await withKeys((hash, key) => {
        name = hash("", words);
        const args = [name, token, String(leaseMs), String(goneMs), key, behind === undefined ? "" : hash("", behind)];
        return lines.wait(name, token, signal, async () => {
          const isIn = (await run(scripts.enter, args)) === 1;
          stands();
          return isIn;
        });
      });
      signal.throwIfAborted();
    } catch (thrown) {
      void release(name, token);
      throw signal.aborted ? signal.reason : thrown;
    }
    held.set(token, name);
    return () => {
      if (!held.delete(token)) return;
      onLeave(words);
      void release(name, token);
    };
  }

  /** A name that cannot be released now is released when Redis is back, or when it expires. */
  function release(name: string, token: string): Promise<void> {
    return releases.add(token, async () => {
      await run(scripts.leave, [name, token]);
      // What Redis publishes may be lost, and those who wait here need not depend on it.
      lines.wakeFirst(name);
    });
  }

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

  return {
    enter,
    isOurs: (words) => [...held.values()].includes(hashKey("", words)),
    renew() {
      releases.retryAll();
      hold().catch(ignore);
    },
    wakeFirst: lines.wakeFirst,
    async releaseAll() {
      const names = [...held];
      held.clear();
      await Promise.all(names.map(([token, name]) => release(name, token)));
    },
  };
}

/** Those who wait here, each in the line of a name. */
interface Lines {
  /** Asks until it is in: when woken, and now and then. */
  wait(name: string, token: string, signal: AbortSignal, ask: () => Promise<boolean>): Promise<void>;
  /** The others here wait behind the first. */
  wakeFirst(name: string): void;
}

function createLines(): Lines {
  /** What wakes those in line, in order of arrival. */
  const lines = new Map<string, Map<string, () => void>>();
  return {
    async wait(name, token, signal, ask) {
      const line = lines.get(name) ?? new Map<string, () => void>();
      lines.set(name, line);
      let seenAt = -Infinity;
      try {
        for (;;) {
          signal.throwIfAborted();
          const news = Promise.withResolvers<void>();
          line.set(token, news.resolve);
          try {
            if (await ask()) return;
            seenAt = performance.now();
          } catch (thrown) {
            // Redis may be away for a moment, and keeps the place so long.
            if (!(thrown instanceof GatewayError) || performance.now() - seenAt > goneMs) throw thrown;
          }
          await Promise.race([news.promise, wait(pollMs, undefined, { signal, ref: false })]);
        }
      } finally {
        line.delete(token);
        if (line.size === 0) lines.delete(name);
      }
    },
    wakeFirst: (name) => lines.get(name)?.values().next().value?.(),
  };
}

function ignore(): void {}

/** Waiters are notified, but a message can be lost. */
const pollMs = 1_000;
/** After how long without a poll a waiter counts as gone. */
const goneMs = 4_000;
