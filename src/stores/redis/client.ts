/** Clients of single servers: each has one place, and the name, the password and the TLS that hold for all of them. */
import type * as Redis from "@redis/client";
import type { Address, Place } from "./address.ts";

export type Client = ReturnType<typeof makeModel>;

export type MakeClient = (place: Place, reconnect?: Reconnect) => Client;

/** How long to wait before the next attempt; without it a client that has lost its server is over. */
type Reconnect = (attempts: number) => number;

/** Loads the library, which nobody needs before. */
export async function loadClients(address: Address): Promise<MakeClient> {
  // The library makes a class for each new set of options, which takes 20 ms: all are copies of one.
  const model = makeModel(await import("@redis/client"), address);
  model.destroy();
  const tls = address.tls && { tls: true as const };
  return ({ host, port }, reconnect) => {
    const left = new AbortController();
    const { signal } = left;
    // Its own patience would also count while the event loop stands still.
    const patience = { connectTimeout: 0, reconnectStrategy: reconnect ?? (false as const) };
    const client = model.duplicate({ socket: { host, port, signal, ...patience, ...tls } });
    // What is left while it connects would go on until the system has enough.
    client.on("end", () => left.abort());
    // Without anyone who hears them they would end the process; whoever asks something is told as well.
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
    // Its own deadline is over when a command was sent, and costs each a timer.
    commandOptions: { timeout: 0 },
  });
}

/** So much longer from one attempt to the next, up to a half second. */
export function toPauseMs(attempts: number): number {
  return Math.min(firstPauseMs * 2 ** Math.min(attempts, 9), maxPauseMs);
}

const firstPauseMs = 20;
const maxPauseMs = 500;
