/** The writer as the store sees it: a failed write refuses turns before a model is asked, one that succeeds lets them in again. */
import type { GatewayError } from "../core/errors.ts";
import { createGrouped } from "./grouped.ts";
import { type Call, type Outcome, type Request, startThread } from "./threads.ts";
import { cannotWrite, isLasting, isSyncFailure, toFailure, unavailable } from "./trouble.ts";

export interface Writer {
  write(call: Call): Promise<unknown>;
  emptyLog(): Promise<void>;
  /** Throws why nothing can be kept now. */
  checkKeeping(): void;
  /** The same, by a write if none has succeeded lately. */
  check(): Promise<void>;
  close(): Promise<void>;
}

const probeMs = 1_000;
/** As large as a turn, for a small write may still fit on a full disk. */
const probeBytes = 65_536;

/** `lose` is told once: nothing may be written any more. */
export function openWriter(file: string, lose: (message: string) => void): Writer {
  const thread = startThread("writer", { file });
  const calls = createGrouped(async (group: readonly Call[]) => (await send(group)).map(note));
  let trouble: GatewayError | undefined;
  let isLost = false;
  let isClosing = false;
  let savedAt = Number.NEGATIVE_INFINITY;
  let probe: NodeJS.Timeout | undefined;

  async function send(request: Request): Promise<readonly Outcome[]> {
    if (isLost) throw trouble;
    try {
      return await thread.send(request);
    } catch (thrown) {
      if (isClosing) throw unavailable("The session store is closed.", thrown);
      throw fail(`The thread that writes the session store has ended: ${toFailure(thrown).message}`);
    }
  }

  function note(outcome: Outcome): unknown {
    if ("failure" in outcome) {
      if (isSyncFailure(outcome.failure)) return fail(`${syncFailed} (${outcome.failure.message})`);
      const error = cannotWrite(outcome.failure);
      if (isLasting(outcome.failure)) suffer(error);
      return error;
    }
    savedAt = performance.now();
    trouble = undefined;
    return outcome.result;
  }

  function suffer(error: GatewayError): void {
    trouble = error;
    if (!isClosing) probe ??= setTimeout(tryAgain, probeMs).unref();
  }

  async function tryAgain(): Promise<void> {
    probe = undefined;
    // If it fails, the next one is due already.
    await calls.send(["probe", { bytes: probeBytes }]).catch(() => {});
  }

  function fail(message: string): GatewayError {
    trouble = unavailable("The session store cannot save anything any more. The gateway stops; its log has the cause.");
    if (!isLost) lose(`${message} (${file})`);
    isLost = true;
    return trouble;
  }

  function checkKeeping(): void {
    if (trouble !== undefined) throw trouble;
  }

  return {
    write: calls.send,
    async emptyLog() {
      const [outcome] = await send("empty-log");
      if (outcome !== undefined && "failure" in outcome) throw note(outcome);
    },
    checkKeeping,
    async check() {
      checkKeeping();
      if (performance.now() - savedAt > probeMs) await calls.send(["probe", { bytes: 1 }]);
    },
    async close() {
      isClosing = true;
      clearTimeout(probe);
      await calls.idle();
      // To close it would write what nobody knows the fate of.
      if (isLost) await thread.kill();
      else await thread.close();
    },
  };
}

const syncFailed =
  "The disk failed to sync the session store, so nobody can tell what is on it. The gateway stops: check the disk, then start it again.";
