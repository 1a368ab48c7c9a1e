/** Where the server listens: at an address, at every address of `localhost`, or on a unix socket. */
import { promises as dns } from "node:dns";
import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type ListenOptions, type Server } from "node:net";
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
  const servers = [server];
  server.maxConnections = maxConnections;

  /** A further address, whose connections are the one server's. */
  async function listenToo(host: string): Promise<void> {
    const { port } = server.address() as AddressInfo;
    const other = createServer({ allowHalfOpen: true, noDelay: true });
    other.maxConnections = maxConnections;
    other.on("connection", (socket) => server.emit("connection", socket));
    try {
      await begin(other, { host, port });
      servers.push(other);
    } catch (thrown) {
      // A list of hosts may name one that this machine does not have.
      if (!absent.has((thrown as NodeJS.ErrnoException).code)) throw thrown;
    }
  }

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
      const [host = bind, ...others] = await findAddresses(bind);
      await begin(server, { host, port });
      for (const other of others) await listenToo(other);
      return toUrl(server.address() as AddressInfo);
    },
    close: async () => {
      await Promise.all(servers.map((each) => new Promise((resolve) => each.close(resolve))));
    },
  };
}

const absent: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

async function begin(server: Server, where: ListenOptions): Promise<void> {
  server.listen({ backlog, ...where });
  await once(server, "listening");
}

/** All addresses of `localhost`, IPv4 first, which every machine has. */
async function findAddresses(bind: string): Promise<readonly string[]> {
  if (bind !== "localhost") return [bind];
  const found = await dns.lookup(bind, { all: true, order: "ipv4first" });
  return [...new Set(found.map(({ address }) => address))];
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
