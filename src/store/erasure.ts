/** Deleted text leaves a SQLite file when its log is emptied, which another program that reads the file prevents. */
import { setTimeout as wait } from "node:timers/promises";

export interface Erasure {
  /** Resolves when the log is empty, or after some attempts, which then go on in the background. */
  finish(): Promise<void>;
  /** Whether deleted text may still be in the files. */
  isUnfinished(): boolean;
  stop(): void;
}

/** A read of our own lasts less than a tick, and may just have been in the way. */
const attempts = 10;
const pauseMs = 20;
const everyMs = 1_000;

/** `emptyLog` is false while another program reads the file. */
export function createErasure(emptyLog: () => Promise<boolean>): Erasure {
  let isUnfinished = false;
  let isStopped = false;
  let next: NodeJS.Timeout | undefined;

  async function tryOnce(): Promise<boolean> {
    if (!(await emptyLog())) return false;
    isUnfinished = false;
    clearTimeout(next);
    next = undefined;
    return true;
  }

  async function trySoon(): Promise<boolean> {
    for (let attempt = 1; attempt < attempts; attempt += 1) {
      if (await tryOnce()) return true;
      await wait(pauseMs);
    }
    return tryOnce();
  }

  function goOn(): void {
    if (isStopped) return;
    isUnfinished = true;
    next ??= setTimeout(tryAgain, everyMs).unref();
  }

  function tryAgain(): void {
    next = undefined;
    tryOnce().then((isDone) => isDone || goOn(), goOn);
  }

  return {
    async finish() {
      let isDone = false;
      try {
        isDone = await trySoon();
      } finally {
        if (!isDone) goOn();
      }
    },
    isUnfinished: () => isUnfinished,
    stop() {
      isStopped = true;
      clearTimeout(next);
    },
  };
}
