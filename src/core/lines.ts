/** The lines before the tips: whoever continues one waits until the turn before has ended. */
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
  readonly waiting: number;
}

interface Queue {
  about: string;
  readonly others: Map<object, () => void>;
}

export function createLines(): Lines {
  const queues = new Map<string, Queue>();
  let waiting = 0;

  function toLine(session: string, queue: Queue, hasWaited: boolean): Line {
    let isLeft = false;
    return {
      hasWaited,
      leave() {
        if (isLeft) return;
        isLeft = true;
        const next = queue.others.values().next();
        if (next.done === true) queues.delete(session);
        else next.value();
      },
    };
  }

  return {
    enter(session, about, most, signal) {
      // Whoever has left already is told of by no event.
      signal.throwIfAborted();
      const queue = queues.get(session);
      if (queue === undefined) {
        const made = { about, others: new Map() };
        queues.set(session, made);
        return toLine(session, made, false);
      }
      if (queue.others.size >= most) {
        throw new GatewayError(
          "session_busy",
          `${most} turns of this conversation are waiting already. Send the next one when they are answered.`,
          { retryAfterSeconds: 1 },
        );
      }
      return new Promise((resolve, reject) => {
        const place = {};
        const end = (): void => {
          queue.others.delete(place);
          waiting -= 1;
          signal.removeEventListener("abort", leave);
        };
        const leave = (): void => {
          end();
          reject(signal.reason);
        };
        waiting += 1;
        queue.others.set(place, () => {
          end();
          queue.about = about;
          resolve(toLine(session, queue, true));
        });
        signal.addEventListener("abort", leave, { once: true });
      });
    },
    front: (session) => queues.get(session)?.about,
    get waiting() {
      return waiting;
    },
  };
}
