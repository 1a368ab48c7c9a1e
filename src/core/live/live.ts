/** A turn that continues without its caller: its events go to a log that anyone may follow from the beginning. */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Event, Events, OutputItem } from "../event.ts";
import type { About } from "../ports.ts";
import type { Reply } from "../gateway.ts";
import type { Answer } from "../turn.ts";

export interface LiveTurn {
  /** What is known of it; rejects if the turn failed before it had a place. */
  readonly placed: Promise<About>;
  readonly follow: Follow;
  readonly status: "queued" | "running";
  /** What was said so far: whole items. */
  readonly items: readonly OutputItem[];
  /** How many characters its log holds. */
  readonly size: number;
  /** Somebody asked for it, which counts as following it. */
  touch(): void;
  cancel(reason: GatewayError): void;
  /** Resolves when nothing more will be said, however it ended. */
  readonly ended: Promise<void>;
  /** It is over and has an answer. */
  readonly succeeded: boolean;
}

/** Every event from the first on, past and future; ends early when the signal aborts. */
export type Follow = (signal: AbortSignal) => Events;

/** Where a turn's events come from: a stream that is pulled once and logged, or one that anyone can follow directly. */
export type Source = Pick<Reply, "about" | "events"> | { readonly about: About; readonly follow: Follow };

export interface LogLimits {
  readonly maxEvents: number;
  readonly maxCharacters: number;
  /** How long a turn may run without a follower. */
  readonly maxUnattendedMs: number;
}

/** Starts the turn at once; it is pulled to its end whether anybody follows or not, but not for ever. */
export function startLive(
  start: (signal: AbortSignal) => Promise<Source>,
  limits: LogLimits,
  now: () => Date,
): LiveTurn {
  const { maxUnattendedMs } = limits;
  const controller = new AbortController();
  const log = createLog(limits, now);
  controller.signal.addEventListener("abort", log.cancel);
  const items: OutputItem[] = [];
  let status: LiveTurn["status"] = "queued";
  let succeeded = false;
  let { follow } = log;
  const placing = Promise.withResolvers<About>();
  placing.promise.catch(() => {}); // followers get it; there may be none

  async function run(): Promise<void> {
    try {
      const source = await start(controller.signal);
      if ("follow" in source) ({ follow } = source);
      placing.resolve(source.about);
      if ("events" in source) await pull(source.events);
      log.end(undefined);
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      placing.reject(failure);
      log.end(failure);
    }
  }

  async function pull(events: Events): Promise<void> {
    for await (const batch of events) {
      for (const event of batch) {
        if (event.type === "turn-start") status = "running";
        if (event.type === "item-end") items.push(event.item);
        if (event.type === "turn-end") succeeded = isAnswered(event.answer);
      }
      log.add(batch);
      await log.room(controller.signal);
      // A silent adapter is ended by its own limits, so it is enough to check when something is said.
      if (log.unattendedMs() > maxUnattendedMs) controller.abort(unattended(maxUnattendedMs));
    }
  }

  return {
    placed: placing.promise,
    // The log's own function, so that whoever keeps it does not retain the request too.
    get follow() {
      return follow;
    },
    get status() {
      return status;
    },
    items,
    get size() {
      return log.size();
    },
    touch: log.touch,
    cancel: (reason) => controller.abort(reason),
    ended: run(),
    get succeeded() {
      return succeeded;
    },
  };
}

/** Joins a live turn for a caller. */
export async function join(turn: Pick<LiveTurn, "placed" | "follow">, signal: AbortSignal): Promise<Reply> {
  const about = await turn.placed;
  return { about, events: turn.follow(signal) };
}

function isAnswered({ status }: Answer): boolean {
  return status === "completed" || status === "incomplete";
}

/** Events in order of arrival. When there are too many, the oldest are dropped. */
function createLog({ maxEvents, maxCharacters }: LogLimits, now: () => Date) {
  let events: Event[] = [];
  let forgotten = 0;
  let size = 0;
  let isOver = false;
  let isCancelled = false;
  let failure: GatewayError | undefined;
  let news = Promise.withResolvers<void>();
  /** How far each has read. */
  const followers = new Set<{ at: number }>();
  let progress = Promise.withResolvers<void>();
  let leftAt = +now();

  function announce(): void {
    news.resolve();
    news = Promise.withResolvers();
  }

  function wake(): void {
    progress.resolve();
    progress = Promise.withResolvers();
  }

  function isFull(): boolean {
    return events.length > maxEvents || size > maxCharacters;
  }

  /** How many events the foremost has not read yet; undefined: nobody can continue from there. */
  function countUnread(): number | undefined {
    let foremost = -1;
    for (const { at } of followers) foremost = Math.max(foremost, at);
    return foremost < forgotten ? undefined : forgotten + events.length - foremost;
  }

  function forget(): void {
    // Half of them at once, so that a long answer does not copy its log with every word.
    const dropped = events.slice(0, Math.ceil(events.length / 2));
    for (const event of dropped) size -= sizeOf(event);
    forgotten += dropped.length;
    events = events.slice(dropped.length);
  }

  return {
    touch(): void {
      leftAt = +now();
    },
    size: () => size,
    /** How long nobody has followed. */
    unattendedMs: () => (followers.size > 0 ? 0 : +now() - leftAt),
    cancel(): void {
      isCancelled = true;
      wake();
    },
    /** Waits, while somebody follows, until what will be dropped next has been read: slow readers are waited for. */
    async room(signal: AbortSignal): Promise<void> {
      while (isFull() && !signal.aborted && (countUnread() ?? 0) > events.length / 2) await progress.promise;
    },
    add(batch: readonly Event[]): void {
      // Never from the newest batch, however large: whoever keeps up must not be cut off. Nor from a cancelled turn, of
      // which only the end is still to come.
      if (isFull() && !isCancelled) forget();
      for (const event of batch) {
        events.push(event);
        size += sizeOf(event);
      }
      announce();
    },
    end(thrown: GatewayError | undefined): void {
      isOver = true;
      failure = thrown;
      announce();
    },
    async *follow(signal: AbortSignal): Events {
      const follower = { at: 0 };
      // One listener for the whole stream: one per wait would make a long answer take quadratic time.
      signal.addEventListener("abort", announce);
      followers.add(follower);
      try {
        for (;;) {
          signal.throwIfAborted();
          if (follower.at < forgotten) throw expired();
          const batch = events.slice(follower.at - forgotten);
          if (batch.length > 0) {
            follower.at += batch.length;
            wake();
            yield batch;
          } else if (failure !== undefined) throw failure;
          else if (isOver) return;
          else await news.promise;
        }
      } finally {
        signal.removeEventListener("abort", announce);
        followers.delete(follower);
        leftAt = +now();
        wake();
      }
    },
  };
}

function sizeOf(event: Event): number {
  if (event.type === "item-end" && event.item.type === "other") {
    return JSON.stringify(event.item.extra.fields).length + eventOverhead;
  }
  if (event.type !== "item-delta") return eventOverhead;
  return event.text.length + (event.logprobs?.length ?? 0) * logprobSize + eventOverhead;
}

/** Approximate memory of an event besides its text. */
const eventOverhead = 64;
/** The same for a token's log probabilities and alternatives. */
const logprobSize = 512;

function unattended(maxUnattendedMs: number): GatewayError {
  return new GatewayError(
    "interrupted",
    `Nobody followed this turn for ${maxUnattendedMs} ms, the longest that a turn may run unattended (gateway.sessions.max_unattended_ms).`,
  );
}

function expired(): GatewayError {
  return new GatewayError(
    "events_expired",
    "The beginning of this answer's stream is no longer available, because the answer is too long. Retrieve the whole answer, or repeat a request with an idempotency key once its answer is complete.",
  );
}
