/** The lines before the tips: whoever continues one waits until the turn before has ended, in whatever process it runs. */
import { GatewayError } from "./errors.ts";

/** A place in a line, from the moment in which it is asked for until it is left. */
export interface Line {
  /** Resolves when the turns before have ended; rejects with the signal's reason. Undefined: there were none. */
  readonly before: Promise<void> | undefined;
  /** Gives the place up, whether its turn has come or not. */
  leave(): void;
}

export interface Lines {
  /** Throws `session_busy` if it would have to wait and `most` turns wait already. */
  enter(session: string, about: string, most: number, signal: AbortSignal): Line;
  /** What whoever is at the front said about itself; undefined: nobody is there. */
  front(session: string): string | undefined;
  /** Whoever looked up the session does not continue it. */
  skip(session: string): void;
  readonly waiting: number;
}

/** Which process has which lines, where there are several. To find a session that may be continued takes its line if it is free. */
export interface Claims {
  /** Whether this process has it; from now on somebody stands in it. */
  enter(session: string): boolean;
  /** What the process said that has it. */
  front(session: string): string | undefined;
  /** Resolves when this process has it. Rejects with the signal's reason. */
  wait(session: string, about: string, signal: AbortSignal): Promise<void>;
  /** Another process that wants it gets it; whether it stays here. */
  offer(session: string): Promise<boolean>;
  /** Nobody here stands in it. */
  release(session: string): void;
}

interface Waiting {
  readonly about: string;
  readonly signal: AbortSignal;
  go(): void;
}

interface Queue {
  about: string;
  readonly others: Set<Waiting>;
}

export function createLines(claims?: Claims): Lines {
  const queues = new Map<string, Queue>();
  let waiting = 0;

  /** The next one's turn, as soon as the line is this process's. `isOurs` absent: it is. */
  async function serve(session: string, queue: Queue, isOurs: Promise<boolean> | undefined): Promise<void> {
    for (let has = isOurs === undefined || (await isOurs); ;) {
      const next = queue.others.values().next().value;
      if (next === undefined) {
        queues.delete(session);
        if (has) claims?.release(session);
        return;
      }
      if (has || claims === undefined) {
        next.go();
        return;
      }
      // Whoever leaves meanwhile is no longer the next.
      has = await claims.wait(session, next.about, next.signal).then(
        () => true,
        () => false,
      );
      if (!has) queue.others.delete(next);
    }
  }

  function passOn(session: string, queue: Queue): void {
    void serve(session, queue, queue.others.size === 0 ? undefined : claims?.offer(session));
  }

  /** A place that waits until those before it have left. */
  function standBehind(session: string, queue: Queue, about: string, signal: AbortSignal): Line {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // A turn that leaves early never reads it.
    promise.catch(() => {});
    const gone = new AbortController();
    const leaveEarly = (): void => gone.abort(signal.reason);
    let isFirst = false;
    const stopWaiting = (): void => {
      queue.others.delete(waiter);
      waiting -= 1;
      signal.removeEventListener("abort", leaveEarly);
    };
    const waiter: Waiting = {
      about,
      signal: gone.signal,
      go() {
        stopWaiting();
        isFirst = true;
        queue.about = about;
        resolve();
      },
    };
    gone.signal.addEventListener("abort", () => {
      stopWaiting();
      reject(gone.signal.reason);
    });
    signal.addEventListener("abort", leaveEarly);
    waiting += 1;
    queue.others.add(waiter);
    return {
      before: promise,
      leave: once(() => {
        if (isFirst) passOn(session, queue);
        else gone.abort();
      }),
    };
  }

  return {
    enter(session, about, most, signal) {
      const known = queues.get(session);
      // A signal that is already aborted fires no event.
      if (signal.aborted && known === undefined) claims?.release(session);
      signal.throwIfAborted();
      const isFree = known === undefined && (claims === undefined || claims.enter(session));
      const queue = known ?? { about, others: new Set() };
      // Another process may have ended its turn already: the first one here always waits for the queue.
      if (known !== undefined && queue.others.size >= most) throw busy(most);
      queues.set(session, queue);
      if (isFree) return { before: undefined, leave: once(() => passOn(session, queue)) };
      const place = standBehind(session, queue, about, signal);
      if (known === undefined) void serve(session, queue, Promise.resolve(false));
      return place;
    },
    front: (session) => queues.get(session)?.about ?? claims?.front(session),
    skip(session) {
      if (!queues.has(session)) claims?.release(session);
    },
    get waiting() {
      return waiting;
    },
  };
}

function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) run();
    isDone = true;
  };
}

function busy(most: number): GatewayError {
  return new GatewayError(
    "session_busy",
    most === 0
      ? "A turn of this conversation is running. Send the next one when it is answered."
      : `${most} turns of this conversation are waiting already. Send the next one when they are answered.`,
    { retryAfterSeconds: 1 },
  );
}
