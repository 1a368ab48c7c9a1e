/** One connection to one server: left if the server is silent for too long. Writes can wait until replicas have them. */
import { setImmediate as nextRound } from "node:timers/promises";
import { messageOf } from "../../core/errors.ts";
import type { Client } from "./client.ts";
import { type Deadline, createDeadline } from "./deadline.ts";
import type { Reply } from "./script.ts";
import { isLost, noAnswer } from "./trouble.ts";

export interface Exchange {
  /**
   * What is durable is answered only when enough replicas have it. Throws NOREPLICAS if they lack it in time, or if that
   * is unknown: a server that became a replica cannot tell.
   */
  send(command: readonly string[], isDurable: boolean): Promise<Reply>;
  /** Waits for what is pending. */
  close(): Promise<void>;
  destroy(): void;
}

export interface ExchangeOptions {
  /** How long the server may be silent before the connection is given up. */
  readonly timeoutMs: number;
  /** How many replicas must have what was written, and how long they may take to copy it. */
  readonly replicas: number;
  readonly copyingMs: number;
}

/** A hanging server keeps its connections open, so this one is destroyed if nothing is answered; `onSilence` tells. */
export function createExchange(
  client: Client,
  { timeoutMs, replicas, copyingMs }: ExchangeOptions,
  onSilence: (reason: Error) => void,
): Exchange {
  let pending = 0;
  // One for all that is pending: a timer for each would cost too much.
  let deadline: Deadline | undefined;
  let copying: Promise<void> | undefined;

  function judge(): void {
    deadline = undefined;
    if (pending === 0) return;
    onSilence(noAnswer(timeoutMs));
    client.destroy();
  }

  /**
   * Asks once for all that is written in one round of the event loop: until Redis has answered, it holds back whatever
   * follows on the same connection.
   */
  async function confirm(): Promise<void> {
    await nextRound();
    copying = undefined;
    const count = Number(await client.sendCommand(["WAIT", String(replicas), String(copyingMs)]).catch(notCopied));
    if (count < replicas) throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have it after ${copyingMs} ms`);
  }

  return {
    async send(command, isDurable) {
      deadline ??= createDeadline(timeoutMs, judge);
      if (pending === 0) deadline.renew();
      pending += 1;
      const copied = isDurable && replicas > 0 ? (copying ??= confirm()) : undefined;
      // The command's own reply may have failed already.
      copied?.catch(() => {});
      try {
        const reply = (await client.sendCommand(command)) as unknown as Reply;
        if (copied !== undefined) await copied;
        return reply;
      } finally {
        pending -= 1;
        deadline?.renew();
      }
    },
    async close() {
      // What was just written is confirmed by replicas only then.
      if (copying !== undefined) await nextRound();
      if (client.isReady) await client.close();
      deadline?.stop();
    },
    destroy: () => client.destroy(),
  };
}

/** What was lost with the connection is checked on the next one. */
function notCopied(thrown: unknown): never {
  throw isLost(thrown) ? thrown : new Error(`NOREPLICAS ${messageOf(thrown)}`, { cause: thrown });
}
