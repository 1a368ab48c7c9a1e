/** Where the server listens: at an address, or on a unix socket. */
import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type ListenOptions, type Server } from "node:net";
import type { HttpSettings } from "./settings.ts";

export interface Listener {
  /** Resolves with the address. */
  listen(where: Pick<HttpSettings, "bind" | "port" | "socketMode">): Promise<string>;
  /** Accepts no connection; resolves when all are closed. */
  close(): Promise<void>;
}

/** Connections that may wait to be accepted. */
const backlog = 4096;

export function createListener(server: Server, maxConnections: number): Listener {
  server.maxConnections = maxConnections;
  return {
    async listen({ bind, port, socketMode }) {
      if (bind.startsWith("unix:")) {
        const path = bind.slice("unix:".length);
        await removeDeadSocket(path);
        await begin(server, { path });
        // Whoever connected before still needs a token.
        chmodSync(path, socketMode);
        return bind;
      }
      // Every machine has its IPv4 address; which one a look-up names first is chance.
      await begin(server, { host: bind === "localhost" ? "127.0.0.1" : bind, port });
      return toUrl(server.address() as AddressInfo);
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

async function begin(server: Server, where: ListenOptions): Promise<void> {
  server.listen({ backlog, ...where });
  await once(server, "listening");
}

/** Clears what a killed process left behind. Anything else, or one in use, stays: listening reports it. */
async function removeDeadSocket(path: string): Promise<void> {
  // A plain file refuses connections too.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return;
  const { promise: isDead, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path, () => resolve(false));
  socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
  if (await isDead) rmSync(path, { force: true });
  socket.destroy();
}

/** What a client can be pointed at. */
function toUrl({ address, family, port }: AddressInfo): string {
  const host = address === "0.0.0.0" ? "127.0.0.1" : address;
  return `http://${family === "IPv6" ? `[${host}]` : host}:${port}`;
}
