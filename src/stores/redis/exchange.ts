/** One connection to one server: it is left if the server is silent for too long, and writes can wait for copies. */
import { setImmediate as nextRound } from "node:timers/promises";
import type { Client } from "./client.ts";
import { type CopyOptions, createConfirm } from "./copies.ts";
import { type Deadline, createDeadline } from "./deadline.ts";
import type { Reply } from "./script.ts";
import { noAnswer } from "./trouble.ts";

export interface Exchange {
  /** What is durable is answered only when as many replicas have it as the operator wants. */
  send(command: readonly string[], isDurable: boolean): Promise<Reply>;
  /** Waits for what is pending. */
  close(): Promise<void>;
  destroy(): void;
}

export interface ExchangeOptions extends CopyOptions {
  /** How long the server may be silent. */
  readonly timeoutMs: number;
}

/** A hanging server keeps its connections open, so this one is destroyed if it answers nothing; `onSilence` tells. */
export function createExchange(client: Client, options: ExchangeOptions, onSilence: (reason: Error) => void): Exchange {
  const { timeoutMs } = options;
  const confirm = options.replicas === 0 ? undefined : createConfirm(client, options);
  let pending = 0;
  // One for all that is pending: a timer for each command would cost more than the command.
  let deadline: Deadline | undefined;

  function judge(): void {
    deadline = undefined;
    if (pending === 0) return;
    onSilence(noAnswer(timeoutMs));
    client.destroy();
  }

  return {
    async send(command, isDurable) {
      deadline ??= createDeadline(timeoutMs, judge);
      if (pending === 0) deadline.renew();
      pending += 1;
      const copied = isDurable ? confirm?.() : undefined;
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
      if (confirm !== undefined) await nextRound();
      if (client.isReady) await client.close();
      deadline?.stop();
    },
    destroy: () => client.destroy(),
  };
}
