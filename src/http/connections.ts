/** Watches what is answered on each connection: cuts one whose requests never end and, when the gateway closes, the idle. */
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

export type Connections = ReturnType<typeof watchConnections>;

interface Use {
  isTrusted: boolean;
  /** How many requests are being answered on it. */
  answering: number;
  /** How much its client had sent when the last answer was sent. */
  answeredBytes: number;
}

/** Of one connection; Node parses all that has come on one before it looks at the next. */
const maxUnanswered = 100;

export function watchConnections(server: Server, isDraining: () => boolean) {
  const uses = new Map<Socket, Use>();
  server.on("connection", (socket) => {
    uses.set(socket, { isTrusted: false, answering: 0, answeredBytes: 0 });
    socket.once("close", () => uses.delete(socket));
  });
  // It has left HTTP.
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
  return {
    begin({ socket }: IncomingMessage): void {
      const use = uses.get(socket);
      if (use === undefined) return;
      use.answering += 1;
      if (use.answering > maxUnanswered) socket.destroy();
    },
    end({ socket }: IncomingMessage): void {
      const use = uses.get(socket);
      if (use === undefined) return;
      use.answering -= 1;
      use.answeredBytes = socket.bytesRead;
      if (isDraining()) setImmediate(() => server.closeIdleConnections());
    },
    /** It has shown a good token: it may stay after its answer. */
    trust(socket: Socket): void {
      const use = uses.get(socket);
      if (use !== undefined) use.isTrusted = true;
    },
    isTrusted: (socket: Socket): boolean => uses.get(socket)?.isTrusted === true,
    /** Cuts those on which nothing is answered: opened in advance, kept in reserve, forgotten, with half a head on them. */
    cutSilent: (): void => cutIf(() => true),
  };
}
