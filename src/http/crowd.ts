/** When many connect at once: a round of the event loop takes one new connection, so those who came wait for the next ones. */
import type { EventEmitter } from "node:events";

/** So many rounds at most: enough to be worth it, and too few to be felt. */
const mostRounds = 16;

/**
 * Gives what calls back when the sockets had their say, or later, as long as each round brings another connection. Otherwise every
 * round would do all the work of one request, and the next client would wait for that before it is even let in.
 */
export function createCrowd(
  server: Pick<EventEmitter, "on">,
  soon: (look: () => void) => unknown = setImmediate,
): (go: () => void) => void {
  let isGrowing = false;
  server.on("connection", () => (isGrowing = true));
  return (go) => {
    let rounds = 0;
    const look = () => {
      if (!isGrowing || ++rounds === mostRounds) return go();
      isGrowing = false;
      soon(look);
    };
    soon(look);
  };
}
