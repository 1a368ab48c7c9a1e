/** A turn that goes on without its caller: what it says is kept in a log that anyone may follow from the beginning. */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Event, OutputItem } from "../event.ts";
import type { About } from "../ports.ts";
import type { Reply } from "../gateway.ts";

export interface LiveTurn {
  /** What is known of it; rejects when the turn failed before it had a place. */
  readonly placed: Promise<About>;
  /** Every event from the first on, and those to come; ends early when the signal aborts. */
  follow(signal: AbortSignal): AsyncGenerator<readonly Event[], void, void>;
  readonly status: "queued" | "running";
  /** What is said so far, whole items only. */
  readonly items: readonly OutputItem[];
  /** How many characters its log holds. */
  readonly size: number;
  /** Calls it off. */
  cancel(reason: GatewayError): void;
  /** Resolves when nothing more will be said, however it ended. */
  readonly ended: Promise<void>;
  /** It is over and has an answer. */
  readonly succeeded: boolean;
}

export interface LogLimits {
  readonly maxEvents: number;
  readonly maxCharacters: number;
}

/** Starts the turn at once; it is pulled to its end whether anybody follows or not. */
export function goLive(start: (signal: AbortSignal) => Promise<Reply>, limits: LogLimits): LiveTurn {
  const controller = new AbortController();
  const log = createLog(limits);
  const items: OutputItem[] = [];
  let status: LiveTurn["status"] = "queued";
  let succeeded = false;
  const placing = Promise.withResolvers<About>();
  placing.promise.catch(() => {}); // told to whoever follows; nobody has to

  async function run(): Promise<void> {
    try {
      const { about, events } = await start(controller.signal);
      placing.resolve(about);
      for await (const batch of events) {
        for (const event of batch) {
          if (event.type === "turn-start") status = "running";
          if (event.type === "item-end") items.push(event.item);
          if (event.type === "turn-end") succeeded = event.answer.error === undefined;
        }
        log.add(batch);
      }
      log.end(undefined);
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      placing.reject(failure);
      log.end(failure);
    }
  }

  return {
    placed: placing.promise,
    follow: log.follow,
    get status() {
      return status;
    },
    items,
    get size() {
      return log.size();
    },
    cancel: (reason) => controller.abort(reason),
    ended: run(),
    get succeeded() {
      return succeeded;
    },
  };
}

/** Events in the order in which they came. When there are too many the oldest are forgotten. */
function createLog({ maxEvents, maxCharacters }: LogLimits) {
  let events: Event[] = [];
  let forgotten = 0;
  let size = 0;
  let isOver = false;
  let failure: GatewayError | undefined;
  let news = Promise.withResolvers<void>();

  function announce(): void {
    news.resolve();
    news = Promise.withResolvers();
  }

  function forget(): void {
    // Half of them at once, so that a long answer does not copy its log with every word.
    const dropped = events.slice(0, Math.ceil(events.length / 2));
    for (const event of dropped) size -= sizeOf(event);
    forgotten += dropped.length;
    events = events.slice(dropped.length);
  }

  return {
    size: () => size,
    add(batch: readonly Event[]): void {
      for (const event of batch) {
        events.push(event);
        size += sizeOf(event);
      }
      if (events.length > maxEvents || size > maxCharacters) forget();
      announce();
    },
    end(thrown: GatewayError | undefined): void {
      isOver = true;
      failure = thrown;
      announce();
    },
    async *follow(signal: AbortSignal): AsyncGenerator<readonly Event[], void, void> {
      let at = 0;
      for (;;) {
        signal.throwIfAborted();
        if (at < forgotten) throw expired();
        const batch = events.slice(at - forgotten);
        at += batch.length;
        if (batch.length > 0) yield batch;
        else if (failure !== undefined) throw failure;
        else if (isOver) return;
        else await Promise.race([news.promise, aborted(signal)]);
      }
    },
  };
}

function sizeOf(event: Event): number {
  return event.type === "item-delta" ? event.text.length + eventOverhead : eventOverhead;
}

/** What an event takes in memory beside its text, about. */
const eventOverhead = 64;

function expired(): GatewayError {
  return new GatewayError(
    "events_expired",
    "The beginning of this answer's stream is no longer kept, as the answer is too long. Retrieve it without 'stream'.",
  );
}

/** Resolves when the signal aborts. The listener goes with the signal, which lives as long as one request. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
