/** Where the server listens: at an address, at every address of `localhost`, or on a unix socket. */
import { promises as dns } from "node:dns";
import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { codeOf } from "../core/errors.ts";
import type { HttpServer } from "./server.ts";
import type { HttpSettings } from "./settings.ts";

export interface Listener {
  /** Accepts connections; returns the address. */
  listen(settings: Pick<HttpSettings, "bind" | "port" | "socketMode">): Promise<string>;
  /** Accepts no more, and waits until every connection is closed. */
  close(): Promise<void>;
}

/** Connections that may wait to be accepted. */
const backlog = 4096;

export function createListener(app: HttpServer): Listener {
  /** Listeners at further addresses, which hand their connections to the one server. */
  const others: Server[] = [];

  async function listenToo(host: string): Promise<void> {
    const { port } = app.server.address() as AddressInfo;
    // As the server itself would accept them.
    const other = createServer({ allowHalfOpen: true, noDelay: true });
    other.on("connection", (socket) => app.server.emit("connection", socket));
    other.listen({ host, port, backlog });
    try {
      await once(other, "listening");
      others.push(other);
    } catch (thrown) {
      if (!isAbsent(thrown)) throw thrown;
    }
  }

  return {
    async listen({ bind, port, socketMode }) {
      if (bind.startsWith("unix:")) {
        const path = bind.slice("unix:".length);
        await removeDeadSocket(path);
        await app.listen({ path });
        chmodSync(path, socketMode); // whoever connected before still needs a token
        return bind;
      }
      const [host = bind, ...more] = await findAddresses(bind);
      const address = await app.listen({ host, port, backlog });
      for (const other of more) await listenToo(other);
      return address;
    },
    async close() {
      await Promise.all([app.close(), ...others.map((other) => new Promise((resolve) => other.close(resolve)))]);
    },
  };
}

/** The addresses to listen at: all that `localhost` has, IPv4 first, which every machine has; else the one given. */
export async function findAddresses(bind: string): Promise<readonly string[]> {
  if (bind !== "localhost") return [bind];
  const found = await dns.lookup(bind, { all: true, order: "ipv4first" });
  // A list of hosts may name one twice.
  return [...new Set(found.map(({ address }) => address))];
}

/** Whether listening failed because a further address of `localhost` is none of this machine's. */
export function isAbsent(thrown: unknown): boolean {
  return absentCodes.has(codeOf(thrown));
}

const absentCodes: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/** Clears a socket that a killed process left behind. Leaves alone anything else, or one in use: listening reports it. */
async function removeDeadSocket(path: string): Promise<void> {
  if (!isSocket(path)) return;
  const { promise: isDead, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path, () => resolve(false));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  if (await isDead) rmSync(path, { force: true });
  socket.destroy();
}

/** A plain file refuses connections too. */
function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch {
    return false;
  }
}
