/** Whether anything can be kept: one failed write refuses turns before a model is asked, one that succeeds lets them in again. */
import type { GatewayError } from "../core/errors.ts";
import { createGrouped } from "./grouped.ts";
import type { Call, Outcome, Thread } from "./threads.ts";
import { cannotWrite, isLasting, isSyncFailure, toFailure, unavailable } from "./trouble.ts";
import type { Writes } from "./writes.ts";

export interface Health {
  write(call: Call<Writes>): Promise<unknown>;
  emptyLog(): Promise<void>;
  /** Throws why nothing can be kept now. */
  checkKeeping(): void;
  /** The same, by a write if none has succeeded lately. */
  check(): Promise<void>;
  /** Nothing may be written any more: nobody knows what is on the disk. */
  readonly isLost: boolean;
  close(): Promise<void>;
}

const probeMs = 1_000;
/** As large as a turn, for a small write may still fit on a full disk. */
const probeBytes = 65_536;

/** `lose` is told once, when the store can never be trusted again before a restart. */
export function createHealth(writer: Thread<Writes>, lose: (message: string) => void): Health {
  const calls = createGrouped(run);
  let trouble: GatewayError | undefined;
  let isLost = false;
  let isClosing = false;
  let savedAt = Number.NEGATIVE_INFINITY;
  let probe: NodeJS.Timeout | undefined;

  async function run(group: readonly Call<Writes>[]): Promise<readonly unknown[]> {
    if (isLost) return group.map(() => trouble);
    return (await send(group)).map(note);
  }

  async function send(request: readonly Call<Writes>[] | "empty-log"): Promise<readonly Outcome[]> {
    try {
      return await writer.send(request);
    } catch (thrown) {
      if (!isClosing) fail(`The thread that writes the session store has ended: ${toFailure(thrown).message}`);
      throw trouble ?? unavailable("The session store is closed.", thrown);
    }
  }

  function note(outcome: Outcome): unknown {
    if ("result" in outcome) {
      savedAt = performance.now();
      if (!isLost) trouble = undefined;
      return outcome.result;
    }
    const { failure } = outcome;
    const error = cannotWrite(failure);
    if (isSyncFailure(failure)) fail(`${syncFailed} (${failure.message})`);
    else if (isLasting(failure)) suffer(error);
    return isLost ? trouble : error;
  }

  function suffer(error: GatewayError): void {
    trouble = error;
    if (probe !== undefined || isClosing) return;
    probe = setTimeout(tryAgain, probeMs).unref();
  }

  async function tryAgain(): Promise<void> {
    probe = undefined;
    // If it fails, the next one is due already.
    await calls.send(["probe", { bytes: probeBytes }]).catch(() => {});
  }

  function fail(message: string): void {
    if (isLost) return;
    isLost = true;
    trouble = unavailable("The session store cannot save anything any more. The gateway stops; its log has the cause.");
    lose(message);
  }

  function checkKeeping(): void {
    if (trouble !== undefined) throw trouble;
  }

  return {
    write: calls.send,
    async emptyLog() {
      const [outcome] = isLost ? [] : await send("empty-log");
      const result = outcome === undefined ? trouble : note(outcome);
      if (result instanceof Error) throw result;
    },
    checkKeeping,
    async check() {
      checkKeeping();
      if (performance.now() - savedAt > probeMs) await calls.send(["probe", { bytes: 1 }]);
    },
    get isLost() {
      return isLost;
    },
    async close() {
      isClosing = true;
      clearTimeout(probe);
      await calls.idle();
    },
  };
}

const syncFailed =
  "The disk failed to sync the session store, so nobody can tell what is on it. The gateway stops: check the disk, then start it again.";
