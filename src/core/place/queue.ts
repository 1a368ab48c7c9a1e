/** One turn at a time for each key, in the order of arrival, with a bound on those who wait. */
import { GatewayError } from "../errors.ts";
import type { Neighbours } from "../neighbours.ts";

export interface Queue {
  /** Waits for its turn. The function it gives must be called once, when the turn is over. */
  enter(key: string, signal: AbortSignal): Promise<() => void>;
  /** Nobody would have to wait now. */
  isFree(key: string): boolean;
  /** Nobody in this gateway has it, or waits for it. */
  isIdle(key: string): boolean;
  /** How many wait now. */
  waiting(): number;
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

  function waitingHere(): number {
    let count = 0;
    for (const line of lines.values()) count += line.length;
    return count;
  }

  const isIdle = (key: string): boolean => !lines.has(key);
  if (neighbours === undefined) return { isFree: isIdle, isIdle, enter: enterHere, waiting: waitingHere };
  let waitingForOthers = 0;
  return {
    // Who waits elsewhere is not known here.
    isFree: () => false,
    isIdle,
    waiting: () => waitingHere() + waitingForOthers,
    async enter(key, signal) {
      const leaveHere = await enterHere(key, signal);
      waitingForOthers++;
      try {
        const leaveAmongAll = await neighbours.enter(key, signal);
        return () => {
          leaveAmongAll();
          leaveHere();
        };
      } catch (thrown) {
        leaveHere();
        throw thrown;
      } finally {
        waitingForOthers--;
      }
    },
  };
}

/** Leaves the last line that was entered first. */
export function leaveAll(whenLeft: (() => void)[]): void {
  for (const leave of whenLeft.splice(0).toReversed()) leave();
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
