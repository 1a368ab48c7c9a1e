/** Creates clients of single servers: each has its own address; user, password and TLS are the same for all. */
import type * as Redis from "@redis/client";
import type { Address, Place } from "./address.ts";

export type Client = ReturnType<typeof makeModel>;

/** A client that loses its server is finished, unless it `reconnects`. */
export type MakeClient = (place: Place, reconnects?: boolean) => Client;

/** Loads the library, which is not needed before. */
export async function loadClients(address: Address): Promise<MakeClient> {
  // The library creates a class per set of options, which takes 20 ms: so all are copies of one.
  const model = makeModel(await import("@redis/client"), address);
  model.destroy();
  const tls = address.tls && { tls: true as const };
  return ({ host, port }, reconnects = false) => {
    const left = new AbortController();
    const { signal } = left;
    // Its own timeout would also run while the event loop is blocked.
    const timeouts = { connectTimeout: 0, reconnectStrategy: reconnects && toPauseMs };
    const client = model.duplicate({ socket: { host, port, signal, ...timeouts, ...tls } });
    // Left while connecting, it would continue until the system gives up.
    client.on("end", () => left.abort());
    // Without a listener, errors would end the process; whoever sends a command gets them as well.
    client.on("error", () => {});
    return client;
  };
}

function makeModel({ createClient }: typeof Redis, { username, password, database }: Address) {
  return createClient({
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    database,
    RESP: 2,
    disableOfflineQueue: true,
    maintNotifications: "disabled",
    // Its own timeout ends when a command is sent, and costs each a timer.
    commandOptions: { timeout: 0 },
  });
}

/** Doubles from one attempt to the next, up to half a second. */
export function toPauseMs(attempts: number): number {
  return Math.min(firstPauseMs * 2 ** attempts, maxPauseMs);
}

const firstPauseMs = 20;
const maxPauseMs = 500;
