/** When many connect at once: a round of the event loop takes one new connection, so those who came wait for the next ones. */
import type { EventEmitter } from "node:events";

/** So many rounds at most, and so long: enough to be worth it, and little for those who have a connection already and wait too. */
const mostRounds = 16;
const mostMs = 5;

interface Clock {
  readonly soon: (look: () => void) => unknown;
  readonly now: () => number;
}

/**
 * Gives what calls back when the sockets had their say, or later, as long as each round brings another connection. Otherwise every
 * round would do all the work of one request, and the next client would wait for that before it is even let in.
 */
export function createCrowd(
  server: Pick<EventEmitter, "on">,
  { soon, now }: Clock = { soon: setImmediate, now: () => performance.now() },
): (go: () => void) => void {
  let isGrowing = false;
  server.on("connection", () => (isGrowing = true));
  return (go) => {
    const since = now();
    let rounds = 0;
    const look = () => {
      // Rounds may be long: others are being answered in them.
      if (!isGrowing || ++rounds === mostRounds || now() - since > mostMs) return go();
      isGrowing = false;
      soon(look);
    };
    soon(look);
  };
}
