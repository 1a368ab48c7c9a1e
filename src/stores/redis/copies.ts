/** Waits until replicas have what was written. */
import { setImmediate as nextRound } from "node:timers/promises";
import { messageOf } from "../../core/errors.ts";
import type { Client } from "./client.ts";
import { isLost } from "./trouble.ts";

export interface CopyOptions {
  /** How many must have it. */
  readonly replicas: number;
  /** How long they may take. */
  readonly copyingMs: number;
}

/**
 * Throws NOREPLICAS if they lack it in time, or if that is unknown: a server that became a replica cannot tell. Asks
 * once for all that is written in one round of the event loop: until Redis has answered, it holds back whatever follows
 * on the same connection.
 */
export function createConfirm(client: Client, { replicas, copyingMs }: CopyOptions): () => Promise<void> {
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    await nextRound();
    asking = undefined;
    const count = Number(await client.sendCommand(["WAIT", String(replicas), String(copyingMs)]).catch(refuse));
    if (count < replicas) throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have it after ${copyingMs} ms`);
  }

  return () => (asking ??= ask());
}

/** What was lost with the connection is checked on the next one. */
function refuse(thrown: unknown): never {
  if (isLost(thrown)) throw thrown;
  throw new Error(`NOREPLICAS ${messageOf(thrown)}`, { cause: thrown });
}
