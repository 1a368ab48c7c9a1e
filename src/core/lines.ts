/** The lines before the tips: whoever continues one waits until the turn before has ended, in whatever process it runs. */
import { GatewayError } from "./errors.ts";

export interface Line {
  /** Somebody stood before us, so what we found has changed since. */
  readonly hasWaited: boolean;
  leave(): void;
}

export interface Lines {
  /** At once where nobody stands there; a promise means waiting. Rejects with the signal's reason. */
  enter(session: string, about: string, most: number, signal: AbortSignal): Line | Promise<Line>;
  /** What whoever is at the front said about itself; undefined: nobody is there. */
  front(session: string): string | undefined;
  /** Whoever looked up the session does not continue it. */
  pass(session: string): void;
  readonly waiting: number;
}

/** Which process has which lines, where there are several. To find a session that may be continued takes its line if it is free. */
export interface Claims {
  has(session: string): boolean;
  /** What the process said that has it. */
  front(session: string): string | undefined;
  /** Resolves when this process has it. Rejects with the signal's reason. */
  wait(session: string, about: string, signal: AbortSignal): Promise<void>;
  /** More than one stand in it here: from now on it is watched whether others want it. */
  contend(session: string): void;
  isWanted(session: string): boolean;
  /** Whoever wants it gets it. */
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

  function toLine(session: string, queue: Queue, hasWaited: boolean): Line {
    let isLeft = false;
    return {
      hasWaited,
      leave() {
        if (isLeft) return;
        isLeft = true;
        const goesAway = queue.others.size > 0 && claims?.isWanted(session) === true;
        if (goesAway) claims?.release(session);
        void serve(session, queue, !goesAway);
      },
    };
  }

  /** The next one's turn, as soon as the line is this process's. */
  async function serve(session: string, queue: Queue, isOurs: boolean): Promise<void> {
    for (let has = isOurs; ;) {
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

  return {
    enter(session, about, most, signal) {
      // Whoever has left already is told of by no event.
      signal.throwIfAborted();
      const known = queues.get(session);
      const queue = known ?? { about, others: new Set() };
      if (queue.others.size >= most) {
        throw new GatewayError(
          "session_busy",
          `${most} turns of this conversation are waiting already. Send the next one when they are answered.`,
          { retryAfterSeconds: 1 },
        );
      }
      queues.set(session, queue);
      if (known === undefined && (claims === undefined || claims.has(session))) return toLine(session, queue, false);
      if (known !== undefined) claims?.contend(session);
      return new Promise((resolve, reject) => {
        const end = (): void => {
          queue.others.delete(place);
          waiting -= 1;
          signal.removeEventListener("abort", leave);
        };
        const leave = (): void => {
          end();
          reject(signal.reason);
        };
        const place: Waiting = {
          about,
          signal,
          go() {
            end();
            queue.about = about;
            resolve(toLine(session, queue, true));
          },
        };
        waiting += 1;
        queue.others.add(place);
        signal.addEventListener("abort", leave, { once: true });
        if (known === undefined) void serve(session, queue, false);
      });
    },
    front: (session) => queues.get(session)?.about ?? claims?.front(session),
    pass(session) {
      if (!queues.has(session)) claims?.release(session);
    },
    get waiting() {
      return waiting;
    },
  };
}
