/**
 * Counts what is held for callers that follow an answer made for an earlier request: each may read nothing and ask
 * again, any number of times.
 */
import type { Event } from "../core/event.ts";
import { lengthOfText } from "../core/frame/batches.ts";
import { lengthOfItems } from "../core/frame/pieces.ts";
import { unlessAborted } from "../core/unless-aborted.ts";
import { drained } from "./client.ts";
import type { Hold, Holdings } from "./held.ts";
import type { HttpReply } from "./reply.ts";
import { isCounted, maxUncounted } from "./unread.ts";

export interface Follower {
  /** Before events are told: takes room for their text, or waits for it, longer than for a caller that stops reading. */
  room(events: readonly Event[]): Promise<void> | undefined;
  /** After that: only what its caller has not taken counts, and what is kept for the end. */
  sent(): void;
  release(): void;
}

/**
 * A stored answer, whose `size` in characters is known, is refused now or never. The stream of a running one waits for
 * room, and is cut if there is none in time. The signal aborts when the caller leaves.
 */
export function holdFollower(held: Holdings, reply: HttpReply, signal: AbortSignal, size?: number): Follower {
  const hold = held.hold(reply.request.token.owner);
  return size === undefined ? followRunning(held, hold, reply, signal) : followStored(held, hold, reply, size);
}

function followStored(held: Holdings, hold: Hold, reply: HttpReply, size: number): Follower {
  // The answer, and its items again as text for the end, which repeats them.
  const keptBytes = 2 * size;
  // The end of an item repeats it three times.
  const mostBytes = keptBytes + 3 * size;
  const toBytes = () => toCounted(reply, Math.max(mostBytes, keptBytes + reply.raw.writableLength));
  if (!take(held, hold, toBytes())) hold.check(toBytes());
  return {
    room: () => undefined,
    sent: () => hold.add(toBytes() - hold.bytes),
    release: hold.release,
  };
}

/** The answer itself is kept anyway, for the turn. */
function followRunning(held: Holdings, hold: Hold, reply: HttpReply, signal: AbortSignal): Follower {
  const { raw: response, request } = reply;
  /** The items that have ended, as text for the end, which repeats them. */
  let endedBytes = 0;
  /** Those that end with the events to be told. */
  let endingBytes = 0;
  const toBytes = (newBytes: number) => toCounted(reply, endedBytes + response.writableLength + newBytes);

  async function wait(newBytes: number): Promise<void> {
    const { stalledClientTimeoutMs } = request.terms.limits;
    // What it has not read could keep others waiting that keep it waiting.
    if (response.writableNeedDrain) await drained(response, stalledClientTimeoutMs);
    hold.add(toBytes(0) - hold.bytes);
    // Whoever stops reading is cut before: Node looks twice whether anything has moved.
    const limitMs = Math.min(3 * stalledClientTimeoutMs, maxTimerMs);
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    while (!take(held, hold, toBytes(newBytes))) {
      await unlessAborted(held.released(), limit).catch(() => {});
      signal.throwIfAborted();
      if (limit.aborted) hold.check(toBytes(newBytes));
    }
  }

  return {
    room(events) {
      const ending = events.flatMap((event) => (event.type === "item-end" ? [event.item] : []));
      endingBytes = lengthOfItems(ending, Buffer.byteLength);
      const newBytes = lengthOfText(events, Buffer.byteLength) + endingBytes;
      // However much it keeps, it does not wait for every word.
      if (!isCounted(reply, response.writableLength + newBytes)) return undefined;
      return take(held, hold, toBytes(newBytes)) ? undefined : wait(newBytes);
    },
    sent() {
      endedBytes += endingBytes;
      endingBytes = 0;
      hold.add(toBytes(0) - hold.bytes);
    },
    release: hold.release,
  };
}

const maxTimerMs = 2 ** 31 - 1;

function toCounted(reply: HttpReply, bytes: number): number {
  return isCounted(reply, bytes) ? bytes : 0;
}

/** Sets the size of a hold, if there is room; there is while nothing else is held. Says whether it did. */
function take(held: Holdings, hold: Hold, bytes: number): boolean {
  if (held.bytes - hold.bytes > maxUncounted) return hold.take(bytes);
  hold.add(bytes - hold.bytes);
  return true;
}
