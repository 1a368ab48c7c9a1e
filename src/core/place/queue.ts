/** One turn at a time for each key, in the order of arrival, with a bound on those who wait. */
import { GatewayError } from "../errors.ts";
import type { Neighbours } from "../neighbours.ts";

export interface Queue {
  /** Waits for its turn. The function it gives must be called once, when the turn is over. */
  enter(key: string, signal: AbortSignal): Promise<() => void>;
  /** Nobody would have to wait now. */
  isFree(key: string): boolean;
}

/** `maxWaiting` is asked whenever somebody has to wait: it may change. It counts those who wait in this gateway. */
export function createQueue(maxWaiting: () => number, neighbours?: Pick<Neighbours, "enter">): Queue {
  /** Who waits behind the running turn of a key. No entry: nothing runs. */
  const lines = new Map<string, (() => void)[]>();

  function leave(key: string): void {
    const next = lines.get(key)?.shift();
    if (next === undefined) lines.delete(key);
    else next();
  }

  async function enterHere(key: string, signal: AbortSignal): Promise<() => void> {
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
  }

  if (neighbours === undefined) return { isFree: (key) => !lines.has(key), enter: enterHere };
  return {
    // Who waits elsewhere is not known here.
    isFree: () => false,
    async enter(key, signal) {
      const leaveHere = await enterHere(key, signal);
      try {
        const leaveAll = await neighbours.enter(key, signal);
        return () => {
          leaveAll();
          leaveHere();
        };
      } catch (thrown) {
        leaveHere();
        throw thrown;
      }
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
