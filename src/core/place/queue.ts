/** One turn at a time for each key, in the order of arrival, with a bound on those who wait. */
import { GatewayError } from "../errors.ts";

export interface Queue {
  /** Waits for its turn. The function it gives must be called once, when the turn is over. */
  enter(key: string, signal: AbortSignal): Promise<() => void>;
  /** Nobody would have to wait now. */
  isFree(key: string): boolean;
}

/** `maxWaiting` is asked whenever somebody has to wait: it may change. */
export function createQueue(maxWaiting: () => number): Queue {
  /** Who waits behind the running turn of a key. No entry: nothing runs. */
  const lines = new Map<string, (() => void)[]>();

  function leave(key: string): void {
    const next = lines.get(key)?.shift();
    if (next === undefined) lines.delete(key);
    else next();
  }

  return {
    isFree: (key) => !lines.has(key),
    async enter(key, signal) {
      signal.throwIfAborted();
      const line = lines.get(key);
      if (line === undefined) {
        lines.set(key, []);
      } else {
        const most = maxWaiting();
        if (line.length >= most) {
          throw new GatewayError(
            "session_busy",
            `This session already has ${most} requests waiting. Wait for their answers, or use another session.`,
            { retryAfterSeconds: 1 },
          );
        }
        await waitIn(line, signal);
      }
      let left = false;
      return () => {
        if (!left) leave(key);
        left = true;
      };
    },
  };
}

function waitIn(line: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = () => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = () => {
      line.splice(line.indexOf(go), 1);
      reject(signal.reason);
    };
    line.push(go);
    signal.addEventListener("abort", giveUp, { once: true });
  });
}
