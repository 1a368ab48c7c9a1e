/** Closes the door: admits nobody, lets running turns end, cancels what takes too long, and cuts what remains. */
import { setTimeout as wait } from "node:timers/promises";
import { drainingError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Listener } from "./listener.ts";
import type { HttpServer } from "./server.ts";
import type { Turns } from "./turns.ts";
import type { WebSockets } from "./websocket.ts";

export interface ClosingParts {
  readonly app: HttpServer;
  readonly listener: Listener;
  /** Cuts connections on which no request is being answered. */
  readonly cutSilent: () => void;
  readonly gateway: Pick<Gateway, "close">;
  readonly turns: Turns;
  readonly arrivals: Arrivals;
  readonly sockets: WebSockets;
}

/** How long a cancelled turn may still take to tell its caller why. */
const cancelGraceMs = 1_000;
/** How long a request may still take to arrive meanwhile. */
const arrivingMs = 500;

/** Returns what closes the door. */
export function prepareClosing(parts: ClosingParts): (drainTimeoutMs: number) => Promise<void> {
  const { app, listener, cutSilent, gateway, turns, arrivals, sockets } = parts;

  function cancelTurns(): void {
    arrivals.abort(drainingError());
    // Live turns end first, so that whoever follows one gets its end.
    const ended = gateway.close(Promise.resolve());
    void Promise.race([ended, wait(cancelGraceMs / 2, undefined, { ref: false })]).finally(() =>
      setImmediate(turns.abort),
    );
  }

  function cut(): void {
    app.server.closeAllConnections();
    sockets.cut();
  }

  return async (drainTimeoutMs) => {
    turns.drain();
    sockets.retire();
    const timers = [
      // Until then a request may still be on its way.
      setInterval(cutSilent, arrivingMs),
      setTimeout(() => {
        // Counted from now: the sum of both times may be longer than a timer can wait.
        timers.push(setTimeout(cut, cancelGraceMs));
        cancelTurns();
      }, drainTimeoutMs),
    ];
    await listener.close();
    for (const timer of timers) clearTimeout(timer);
  };
}
