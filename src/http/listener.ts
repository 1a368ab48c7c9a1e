/** Where the server listens: at an address, at both of `localhost`, or on a unix socket. */
import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type ListenOptions, type Server } from "node:net";
import type { HttpSettings } from "./settings.ts";

/** Connections that may wait to be accepted. */
const backlog = 4096;

export function createListener(server: Server, maxConnections: number) {
  // Else the parent of several processes would offer one beyond to each of them, again and again.
  const bounds = { maxConnections, dropMaxConnection: true };
  Object.assign(server, bounds);
  /** Takes the connections of the second address of `localhost`. */
  const second = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => server.emit("connection", socket));
  Object.assign(second, bounds);

  return {
    /** Resolves with the address. */
    async listen({ bind, port, socketMode }: Pick<HttpSettings, "bind" | "port" | "socketMode">): Promise<string> {
      if (bind.startsWith("unix:")) {
        const path = bind.slice("unix:".length);
        await removeDeadSocket(path);
        await begin(server, { path });
        // Whoever connected before still needs a token.
        chmodSync(path, socketMode);
        return bind;
      }
      await begin(server, { host: bind === "localhost" ? "127.0.0.1" : bind, port });
      const address = server.address() as AddressInfo;
      // Some clients look the name up, and try only one of its addresses.
      if (bind === "localhost") await begin(second, { host: "::1", port: address.port }).catch(ignoreAbsent);
      return toUrl(address);
    },
    /** Accepts no connection; resolves when all are closed. */
    async close(): Promise<void> {
      await Promise.all([server, second].map((each) => new Promise((resolve) => each.close(resolve))));
    },
  };
}

async function begin(server: Server, where: ListenOptions): Promise<void> {
  server.listen({ backlog, ...where });
  await once(server, "listening");
}

/** Not every machine has IPv6. */
function ignoreAbsent(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== "EADDRNOTAVAIL" && thrown.code !== "EAFNOSUPPORT") throw thrown;
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
