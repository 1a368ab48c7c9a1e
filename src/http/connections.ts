/** Watches what is answered on each connection: cuts one on which requests never end and, at the end, those in silence. */
import type { Server } from "node:http";
import type { Socket } from "node:net";

interface Use {
  /** How many requests are being answered on it. */
  answering: number;
  /** How much its client had sent when the last answer was sent. */
  answeredBytes: number;
}

interface Watching {
  /** How many requests of one connection may be in progress; read for each, since it may change. */
  readonly maxUnanswered: () => number;
  /** From then on a connection that is kept alive after its answer would delay closing. */
  readonly isDraining: () => boolean;
}

/**
 * From now on, and until the server is closed. Returns what cuts connections on which no request is being answered:
 * opened in advance, kept in reserve, forgotten, or with half a request on them. Closing would wait for them until the
 * end, since Node then checks no time-outs.
 */
export function watchConnections(server: Server, { maxUnanswered, isDraining }: Watching): () => void {
  const uses = new Map<Socket, Use>();
  server.on("connection", (socket) => {
    uses.set(socket, { answering: 0, answeredBytes: 0 });
    socket.once("close", () => uses.delete(socket));
  });
  server.on("request", ({ socket }, response) => {
    const use = uses.get(socket);
    if (use === undefined) return;
    use.answering += 1;
    // Everybody waits while Node parses requests, and it parses all that has arrived on a connection before the next one.
    if (use.answering > maxUnanswered()) socket.destroy();
    response.once("close", () => {
      use.answering -= 1;
      use.answeredBytes = socket.bytesRead;
      if (isDraining()) setImmediate(() => server.closeIdleConnections());
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
  return () => cutIf(() => true);
}
