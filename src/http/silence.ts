/** Connections on which nothing was asked yet: opened in advance, kept in reserve, or forgotten. */
import type { Server } from "node:http";
import type { Socket } from "node:net";

export interface Silence {
  /** Ends them: closing waits for every connection that has not been answered, and these never will be. */
  cut(): void;
}

/** Watches a listener from now on. */
export function watchSilence(server: Server): Silence {
  const silent = new Set<Socket>();
  server.on("connection", (socket) => {
    silent.add(socket);
    socket.once("close", () => silent.delete(socket));
  });
  server.on("request", ({ socket }) => silent.delete(socket));
  server.on("upgrade", ({ socket }) => silent.delete(socket));
  return {
    cut() {
      for (const socket of silent) socket.destroy();
    },
  };
}
