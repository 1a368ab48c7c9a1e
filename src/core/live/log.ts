/** What a turn has said so far, for anyone to follow from its beginning. When it is too much, the oldest is dropped. */
import { GatewayError } from "../errors.ts";
import type { Event, Events, OutputItem } from "../event.ts";
import { batchFrom } from "../frame/batches.ts";
import type { Answer } from "../turn.ts";

/** Every event from the first on, past and future; ends early when the signal aborts. */
export type Follow = (signal: AbortSignal) => Events;

export interface LogLimits {
  readonly maxEvents: number;
  readonly maxCharacters: number;
}

export type Log = ReturnType<typeof createLog>;

export function createLog({ maxEvents, maxCharacters }: LogLimits, elapsedMs: () => number) {
  let events: Event[] = [];
  /** How many were dropped. */
  let forgotten = 0;
  let size = 0;
  let state: "open" | "cancelled" | "over" = "open";
  let failure: GatewayError | undefined;
  /** How far each has read. */
  const followers = new Set<{ at: number }>();
  let leftAt = elapsedMs();
  const news = createNotice();
  const progress = createNotice();

  function isFull(): boolean {
    return events.length > maxEvents || size > maxCharacters;
  }

  /** Even the foremost reader has not yet read all that will be dropped next. */
  function isAhead(): boolean {
    if (state !== "open" || !isFull()) return false;
    let foremost = -1;
    for (const { at } of followers) foremost = Math.max(foremost, at);
    return foremost >= forgotten && forgotten + events.length - foremost > events.length / 2;
  }

  function forget(): void {
    // Half of them at once, so that a long answer does not copy its log with every word.
    const dropped = events.slice(0, Math.ceil(events.length / 2));
    for (const event of dropped) size -= sizeOf(event);
    forgotten += dropped.length;
    events = events.slice(dropped.length);
  }

  async function* follow(signal: AbortSignal): Events {
    const follower = { at: 0 };
    // One listener for the whole stream: one per wait would make a long answer take quadratic time.
    signal.addEventListener("abort", news.tell);
    followers.add(follower);
    try {
      for (;;) {
        signal.throwIfAborted();
        if (follower.at < forgotten) throw expired();
        const batch = batchFrom(events, follower.at - forgotten);
        if (batch.length > 0) {
          follower.at += batch.length;
          progress.tell();
          yield batch;
        } else if (state !== "over") await news.next();
        else if (failure !== undefined) throw failure;
        else return;
      }
    } finally {
      signal.removeEventListener("abort", news.tell);
      followers.delete(follower);
      leftAt = elapsedMs();
      progress.tell();
    }
  }

  return {
    follow,
    add(batch: readonly Event[]): void {
      // Never from the newest batch, however large: whoever keeps up must not be cut off.
      if (isFull() && state === "open") forget();
      for (const event of batch) {
        events.push(event);
        size += sizeOf(event);
      }
      news.tell();
    },
    /** Waits for slow readers, but not for those who have left or are too far behind to continue. */
    async room(): Promise<void> {
      while (isAhead()) await progress.next();
    },
    /** Only the end is still to come: nothing is dropped any more, and nobody waited for. */
    cancel(): void {
      if (state === "open") state = "cancelled";
      progress.tell();
    },
    /** Nothing more will be said; followers get the failure, if any, after all the rest. */
    end(thrown: GatewayError | undefined): void {
      state = "over";
      failure = thrown;
      news.tell();
    },
    /** Somebody asked for the turn, which counts as following it. */
    touch(): void {
      leftAt = elapsedMs();
    },
    /** How long nobody has followed. */
    unattendedMs: () => (followers.size > 0 ? 0 : elapsedMs() - leftAt),
    /** How many characters it holds. */
    size: () => size,
  };
}

/** Lets many wait for the next time that something happens. */
function createNotice() {
  let waiting = Promise.withResolvers<void>();
  return {
    next: () => waiting.promise,
    tell(): void {
      waiting.resolve();
      waiting = Promise.withResolvers();
    },
  };
}

function sizeOf(event: Event): number {
  switch (event.type) {
    case "item-start":
      return eventOverhead + JSON.stringify(event.item).length;
    case "item-delta": {
      const { text, logprobs = [], annotation, extra } = event;
      const added = annotation ?? extra;
      const addedSize = added === undefined ? 0 : JSON.stringify(added).length;
      return eventOverhead + text.length + logprobs.length * logprobSize + addedSize;
    }
    case "item-end":
      return eventOverhead + sizeOfEnd(event.item);
    case "turn-queued":
    case "turn-start":
      return eventOverhead;
    case "turn-end":
      return eventOverhead + sizeOfAnswer(event.answer);
  }
}

/** The item as it began and its deltas are counted already. */
function sizeOfEnd(item: OutputItem): number {
  if (item.type !== "reasoning" && item.type !== "message") return 0;
  const sealedSize = item.type === "reasoning" ? (item.encrypted?.length ?? 0) : 0;
  return sealedSize + (item.extra === undefined ? 0 : JSON.stringify(item.extra).length);
}

/** What only the end tells: fields for the caller alone, which may be images. Its items are counted already. */
function sizeOfAnswer({ extra, others = [], notes }: Answer): number {
  return JSON.stringify([extra, notes.extra, ...others.map((choice) => choice.extra)]).length;
}

/** Approximate memory of an event besides its text. */
const eventOverhead = 64;
/** The same for a token's log probabilities and alternatives. */
const logprobSize = 512;

function expired(): GatewayError {
  return new GatewayError(
    "events_expired",
    "The beginning of this answer's stream is no longer available, because the answer is too long. Retrieve the whole answer, or repeat a request with an idempotency key once its answer is complete.",
  );
}
