/** Waits until replicas have what was written. */
import { messageOf } from "../../core/errors.ts";
import type { Client } from "./client.ts";
import { isLost } from "./trouble.ts";

/** Throws NOREPLICAS when they have it not in time, or that is not told: a server that has just become a replica does not know. */
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
    const count = Number(await client.sendCommand(["WAIT", String(replicas), String(withinMs)]).catch(refuse));
    if (count >= replicas) return;
    throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have it after ${withinMs} ms`);
  }

  return (client) => {
    if (asking?.client !== client) asking = { client, done: ask(client) };
    return asking.done;
  };
}

/** What was lost with the connection is looked for on the next one. */
function refuse(thrown: unknown): never {
  if (isLost(thrown)) throw thrown;
  throw new Error(`NOREPLICAS ${messageOf(thrown)}`, { cause: thrown });
}
