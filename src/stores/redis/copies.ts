/** Waits until replicas have what was written. */
import { messageOf } from "../../core/errors.ts";
import type { Client } from "./client.ts";
import { isLost } from "./trouble.ts";

/** Throws NOREPLICAS if they lack it in time, or if that is unknown: a server that became a replica cannot tell. */
export type Confirm = (client: Client) => Promise<void>;

/**
 * Asks once for all that is written in one round of the event loop: until Redis has answered, it holds back whatever
 * follows on the same connection.
 */
export function createConfirm(replicas: number, withinMs: number): Confirm {
  let asking: { readonly client: Client; readonly done: Promise<void> } | undefined;

  async function ask(client: Client): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (asking?.client === client) asking = undefined;
    const count = Number(await client.sendCommand(["WAIT", String(replicas), String(withinMs)]).catch(refuse));
    if (count >= replicas) return;
    throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have it after ${withinMs} ms`);
  }

  return (client) => {
    if (asking?.client !== client) asking = { client, done: ask(client) };
    return asking.done;
  };
}

/** What was lost with the connection is checked on the next one. */
function refuse(thrown: unknown): never {
  if (isLost(thrown)) throw thrown;
  throw new Error(`NOREPLICAS ${messageOf(thrown)}`, { cause: thrown });
}
