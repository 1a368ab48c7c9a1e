/** One turn at a time per key, in order of arrival, with a bound on those who wait. */
import { GatewayError } from "../errors.ts";
import type { Peers } from "../peers.ts";
import type { PlaceSearch } from "./place.ts";

export interface Queue {
  /**
   * Waits for its turn; `stands` is called as soon as it is in line, even as the first. Those of other gateways in the
   * line of the key `behind` go first. The returned function must be called once, when the turn is over.
   */
  enter(key: string, signal: AbortSignal, stands?: () => void, behind?: string): Promise<() => void>;
  /** Nobody here holds it or waits for it. */
  isIdle(key: string): boolean;
  /** How many wait now. */
  waiting(): number;
}

/** `maxWaiting` is read whenever somebody has to wait: it may change. It counts those waiting in this gateway. */
export function createQueue(maxWaiting: () => number, peers?: Pick<Peers, "enter">): Queue {
  const queueUp = peers === undefined ? createLines() : createSharedLines(peers);
  /** How many in this gateway hold a key or wait for it. */
  const present = new Map<string, number>();
  let waiting = 0;

  function leave(key: string): void {
    const left = (present.get(key) ?? 0) - 1;
    if (left > 0) present.set(key, left);
    else present.delete(key);
  }

  return {
    isIdle: (key) => !present.has(key),
    waiting: () => waiting,
    async enter(key, signal, stands, behind) {
      signal.throwIfAborted();
      const before = present.get(key) ?? 0;
      if (before > 0) checkRoom(before - 1, maxWaiting());
      present.set(key, before + 1);
      waiting += 1;
      try {
        const leaveLine = await queueUp(key, signal, stands, behind);
        let left = false;
        return () => {
          if (left) return;
          left = true;
          leaveLine();
          leave(key);
        };
      } catch (thrown) {
        leave(key);
        throw thrown;
      } finally {
        waiting -= 1;
      }
    },
  };
}

/** Waits in a line, until the place is left. True: nobody else was in it, so that nothing has changed meanwhile. */
export async function enterLine(search: PlaceSearch, key: string, behind?: string): Promise<boolean> {
  const { store, queue } = search.parts;
  const { signal, stands } = search.requester;
  // Who waits on other gateways is not known here.
  const isFree = store.peers === undefined && queue.isIdle(key);
  search.whenLeft.push(await queue.enter(key, signal, stands, behind));
  return isFree;
}

/** Leaves the lines in reverse order of entry. */
export function leaveAll(whenLeft: (() => void)[]): void {
  for (const leave of whenLeft.splice(0).toReversed()) leave();
}

function checkRoom(waiting: number, most: number): void {
  if (waiting < most) return;
  throw new GatewayError(
    "session_busy",
    `This session already has ${most} requests waiting. Wait for their answers, or use another session.`,
    { retryAfterSeconds: 1 },
  );
}

/** Gateways share one line: whoever waited in a local one first could be overtaken on another gateway. */
function createSharedLines(peers: Pick<Peers, "enter">): Peers["enter"] {
  const enterHere = createLines();
  return async (key, signal, stands, behind) => {
    const leaveShared = await peers.enter(key, signal, stands, behind);
    try {
      // Peers may lose their promises; turns of one gateway then still wait for each other.
      const leaveHere = await enterHere(key, signal);
      return () => [leaveHere, leaveShared].forEach((leave) => leave());
    } catch (thrown) {
      leaveShared();
      throw thrown;
    }
  };
}

/** The lines of one gateway. */
function createLines(): Peers["enter"] {
  /** Who waits behind the running turn of a key. No entry: nothing runs. */
  const lines = new Map<string, (() => void)[]>();
  return async (key, signal, stands) => {
    const line = lines.get(key);
    const turn = line && waitIn(line, signal);
    if (line === undefined) lines.set(key, []);
    stands?.();
    await turn;
    return () => {
      const next = lines.get(key)?.shift();
      if (next === undefined) lines.delete(key);
      else next();
    };
  };
}

function waitIn(line: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = () => {
      signal.removeEventListener("abort", abandon);
      resolve();
    };
    const abandon = () => {
      line.splice(line.indexOf(go), 1);
      reject(signal.reason);
    };
    line.push(go);
    signal.addEventListener("abort", abandon, { once: true });
  });
}
