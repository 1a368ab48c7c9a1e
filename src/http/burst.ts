/** Lets requests wait for each other while many clients connect: the event loop accepts one connection per round. */
import type { EventEmitter } from "node:events";

/** The longest wait: enough to be worth it, and short for clients that are already connected and wait too. */
const mostRounds = 16;
const mostMs = 5;

interface Clock {
  readonly soon: (look: () => void) => unknown;
  readonly now: () => number;
}

/**
 * Returns what calls back once the sockets were polled, or later while each round brings another connection. Otherwise
 * each round would do all the work of one request, and the next client would wait for that before it is accepted.
 */
export function createBurstWait(
  server: Pick<EventEmitter, "on">,
  { soon, now }: Clock = { soon: setImmediate, now: () => performance.now() },
): (go: () => void) => void {
  let isGrowing = false;
  server.on("connection", () => (isGrowing = true));
  return (go) => {
    const since = now();
    let rounds = 0;
    const look = () => {
      // A round may be long: others are answered in it.
      if (!isGrowing || ++rounds === mostRounds || now() - since > mostMs) return go();
      isGrowing = false;
      soon(look);
    };
    soon(look);
  };
}
