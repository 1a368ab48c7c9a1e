/** Closes the door: admits nobody, lets running turns end, cancels what takes too long, and cuts what remains. */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { drainingError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import type { Arrivals } from "./arrivals.ts";
import type { Listener } from "./listener.ts";
import type { Turns } from "./turns.ts";
import type { WebSockets } from "./websocket.ts";

export interface ClosingParts {
  readonly app: FastifyInstance;
  readonly listener: Listener;
  readonly gateway: Pick<Gateway, "close">;
  readonly turns: Turns;
  readonly arrivals: Arrivals;
  readonly sockets: WebSockets;
}

/** How long a cancelled turn may still take to tell its caller why. */
const cancelGraceMs = 1_000;
/** How long a request may still take to arrive meanwhile. */
const arrivingMs = 500;

/** Watches connections from now on; returns what closes them. */
export function prepareClosing(parts: ClosingParts): (drainTimeoutMs: number) => Promise<void> {
  const { app, listener, gateway, turns, arrivals, sockets } = parts;
  const silence = watchSilence(app.server);
  app.addHook("onResponse", (_request, _reply, done) => {
    // A connection kept alive after this answer would delay closing.
    if (turns.draining) setImmediate(() => app.server.closeIdleConnections());
    done();
  });

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
      setInterval(silence.cut, arrivingMs),
      setTimeout(cancelTurns, drainTimeoutMs),
      setTimeout(cut, drainTimeoutMs + cancelGraceMs),
    ];
    await listener.close();
    for (const timer of timers) clearTimeout(timer);
  };
}

/** What is known of a connection. */
interface Use {
  /** How many requests are being answered on it. */
  answering: number;
  /** How much its client had sent when the last answer was sent. */
  answeredBytes: number;
}

/**
 * Tracks connections on which no request is being answered: opened in advance, kept in reserve, forgotten, or with half
 * a request on them. Closing would wait for them until the end, since Node then checks no time-outs; so it cuts them.
 */
export function watchSilence(server: Server) {
  const uses = new Map<Socket, Use>();
  server.on("connection", (socket) => {
    uses.set(socket, { answering: 0, answeredBytes: 0 });
    socket.once("close", () => uses.delete(socket));
  });
  server.on("request", ({ socket }, response) => {
    const use = uses.get(socket);
    if (use === undefined) return;
    use.answering += 1;
    response.once("close", () => {
      use.answering -= 1;
      use.answeredBytes = socket.bytesRead;
    });
  });
  server.on("upgrade", ({ socket }) => uses.delete(socket));

  function cutIf(isOver: (socket: Socket, use: Use) => boolean): void {
    for (const [socket, use] of uses) {
      // One that is ending has its own time for that.
      if (use.answering === 0 && !socket.writableEnded && isOver(socket, use)) socket.destroy();
    }
  }

  // Node's own takes an answer for sent once all of it is written, and would cut off a client that still reads it.
  server.closeIdleConnections = () =>
    cutIf(({ bytesRead }, { answeredBytes }) => bytesRead > 0 && bytesRead === answeredBytes);
  return { cut: () => cutIf(() => true) };
}
