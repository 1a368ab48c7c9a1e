/** A turn that goes on without its caller: what it says is kept in a log that anyone may follow from the beginning. */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Event, Events, OutputItem } from "../event.ts";
import type { About } from "../ports.ts";
import type { Reply } from "../gateway.ts";
import type { Answer } from "../turn.ts";

export interface LiveTurn {
  /** What is known of it; rejects when the turn failed before it had a place. */
  readonly placed: Promise<About>;
  readonly follow: Follow;
  readonly status: "queued" | "running";
  /** What is said so far, whole items only. */
  readonly items: readonly OutputItem[];
  /** How many characters its log holds. */
  readonly size: number;
  /** Somebody has asked for it, which is as good as following it. */
  attend(): void;
  /** Calls it off. */
  cancel(reason: GatewayError): void;
  /** Resolves when nothing more will be said, however it ended. */
  readonly ended: Promise<void>;
  /** It is over and has an answer. */
  readonly succeeded: boolean;
}

/** Every event from the first on, and those to come; ends early when the signal aborts. */
export type Follow = (signal: AbortSignal) => Events;

/** Where a turn's events come from: a stream that is pulled once and logged, or one that everyone can follow as it is. */
export type Source = Pick<Reply, "about" | "events"> | { readonly about: About; readonly follow: Follow };

export interface LogLimits {
  readonly maxEvents: number;
  readonly maxCharacters: number;
  /** How long a turn may go on that nobody follows. */
  readonly maxUnattendedMs: number;
}

/** Starts the turn at once; it is pulled to its end whether anybody follows or not, but not for ever. */
export function goLive(start: (signal: AbortSignal) => Promise<Source>, limits: LogLimits, now: () => Date): LiveTurn {
  const { maxUnattendedMs } = limits;
  const controller = new AbortController();
  const log = createLog(limits, now);
  controller.signal.addEventListener("abort", log.callOff);
  const items: OutputItem[] = [];
  let status: LiveTurn["status"] = "queued";
  let succeeded = false;
  let { follow } = log;
  const placing = Promise.withResolvers<About>();
  placing.promise.catch(() => {}); // told to whoever follows; nobody has to

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
      // Whoever says nothing is ended by its adapter's own limits, so it is enough to look when something is said.
      if (log.unattendedMs() > maxUnattendedMs) controller.abort(unattended(maxUnattendedMs));
    }
  }

  return {
    placed: placing.promise,
    // The log's own function, so that whoever remembers it does not hold the request too.
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
    attend: log.attend,
    cancel: (reason) => controller.abort(reason),
    ended: run(),
    get succeeded() {
      return succeeded;
    },
  };
}

/** Joins a turn that goes on without its caller. */
export async function join(turn: Pick<LiveTurn, "placed" | "follow">, signal: AbortSignal): Promise<Reply> {
  const about = await turn.placed;
  return { about, events: turn.follow(signal) };
}

function isAnswered({ status }: Answer): boolean {
  return status === "completed" || status === "incomplete";
}

/** Events in the order in which they came. When there are too many the oldest are forgotten. */
function createLog({ maxEvents, maxCharacters }: LogLimits, now: () => Date) {
  let events: Event[] = [];
  let forgotten = 0;
  let size = 0;
  let isOver = false;
  let isCalledOff = false;
  let failure: GatewayError | undefined;
  let news = Promise.withResolvers<void>();
  /** Up to where each has read. */
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

  /** How many events the foremost has not read yet; nothing: nobody can go on from where it is. */
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
    attend(): void {
      leftAt = +now();
    },
    size: () => size,
    /** For how long nobody has followed. */
    unattendedMs: () => (followers.size > 0 ? 0 : +now() - leftAt),
    callOff(): void {
      isCalledOff = true;
      wake();
    },
    /** Waits, while somebody follows, until what will be forgotten next was read: whoever reads slowly is waited for. */
    async room(signal: AbortSignal): Promise<void> {
      while (isFull() && !signal.aborted && (countUnread() ?? 0) > events.length / 2) await progress.promise;
    },
    add(batch: readonly Event[]): void {
      // Never of the newest batch, however large: whoever keeps up shall not be cut off. Nor of one that was called off, of which
      // only the end is still to come.
      if (isFull() && !isCalledOff) forget();
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
      // One listener for the whole stream: one for each wait makes a long answer take the square of its length.
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

/** What an event takes in memory beside its text, about. */
const eventOverhead = 64;
/** What a token's log probabilities take, with some alternatives. */
const logprobSize = 512;

function unattended(maxUnattendedMs: number): GatewayError {
  return new GatewayError(
    "interrupted",
    `Nobody followed this turn for ${maxUnattendedMs} ms, which is as long as it may go on by itself (gateway.sessions.max_unattended_ms).`,
  );
}

function expired(): GatewayError {
  return new GatewayError(
    "events_expired",
    "The beginning of this answer's stream is no longer kept, as the answer is too long. Retrieve it as a whole, or send a request with a key again once its answer is complete.",
  );
}
