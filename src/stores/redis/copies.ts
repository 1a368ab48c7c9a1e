/** Waits until replicas have what was written. */
import type { Client } from "./client.ts";

/** Throws NOREPLICAS when they have it not in time. */
export type Confirm = (client: Client) => Promise<void>;

/**
 * Asks once for all that is written in one turn of the event loop: Redis holds back whatever comes behind the question on the same
 * connection until it has answered.
 */
export function createConfirm(replicas: number, withinMs: number): Confirm {
  let asking: { readonly client: Client; readonly done: Promise<void> } | undefined;

  async function ask(client: Client): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (asking?.client === client) asking = undefined;
    const count = Number(await client.sendCommand(["WAIT", String(replicas), String(withinMs)]));
    if (count >= replicas) return;
    throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have it after ${withinMs} ms`);
  }

  return (client) => {
    if (asking?.client !== client) asking = { client, done: ask(client) };
    return asking.done;
  };
}
