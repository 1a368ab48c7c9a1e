/** Runs the writes of one event-loop tick in one transaction, and reports them once they are on disk. */
import type { DatabaseSync } from "node:sqlite";
import type { Outcome } from "../check.ts";
import { storeClosed } from "../refusals.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { primaryCodeOf } from "../codes.ts";
import type { Sync } from "./sync.ts";
import { cannotStore } from "./trouble.ts";

export interface Group {
  /**
   * Resolves to what the work returned, once it is on disk. Work may run again if other work of its group failed;
   * `whenStored` runs once, in the order of the works, when they can be read.
   */
  add<T>(work: () => T, whenStored?: (result: T) => void): Promise<T>;
  /** How the last writes went. */
  readonly outcome: Outcome;
  /** Runs what waits, and accepts no more. Resolves when all is settled. */
  close(): Promise<void>;
}

/** Works run in order, each seeing the writes before it; `prepare` runs once before them, when no other can write. */
export function createGroup(
  database: DatabaseSync,
  checkpoints: Pick<Checkpoints, "pause" | "noteWrite">,
  whenOnDisk: Sync["whenOnDisk"] = async () => {},
  prepare: () => void = () => {},
  now: () => Date = () => new Date(),
): Group {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const countChanges = database.prepare("SELECT total_changes() AS count");
  let waiting: Waiting[] = [];
  const outcome: Outcome = {};
  let telling: Promise<void> = Promise.resolve();
  let closed = false;

  function flushInTime(): void {
    const pause = checkpoints.pause();
    if (pause === undefined) flush();
    else void pause.then(flushInTime);
  }

  function flush(): void {
    const group = waiting;
    waiting = [];
    if (group.length > 0) storeTogether(group);
  }

  function storeTogether(group: readonly Waiting[]): void {
    let current: Waiting | undefined;
    try {
      const before = countChanges.get()?.["count"];
      begin.run();
      prepare();
      const works = group.map((entry) => (current = entry).run());
      current = undefined;
      commit.run();
      checkpoints.noteWrite();
      for (const { noteStored } of works) noteStored();
      // Without a change nothing is written, which works on a full disk too.
      const isWritten = countChanges.get()?.["count"] !== before;
      telling = notifyOnDisk(group, works, isWritten);
    } catch (thrown) {
      const isUndone = undo();
      if (isUndone && current !== undefined && isOfTheEntry(thrown)) storeWithout(group, current, thrown);
      else refuse(group, thrown);
    }
  }

  async function notifyOnDisk(group: readonly Waiting[], works: readonly Done[], isWritten: boolean): Promise<void> {
    try {
      await whenOnDisk(isWritten);
    } catch (thrown) {
      return refuse(group, thrown);
    }
    if (isWritten) outcome.storedAt = now();
    for (const { notify } of works) notify();
  }

  function refuse(group: readonly Waiting[], thrown: unknown): void {
    const error = cannotStore(thrown);
    outcome.failure = { at: now(), error };
    for (const { reject } of group) reject(error);
  }

  /** A full disk has rolled back by itself; a busy one never began. False: this failed too; the transaction is over. */
  function undo(): boolean {
    try {
      if (database.isTransaction) database.exec("ROLLBACK");
      return true;
    } catch {
      return false;
    }
  }

  /** One faulty work must not make the rest of its group fail. */
  function storeWithout(group: readonly Waiting[], wrong: Waiting, thrown: unknown): void {
    wrong.reject(thrown);
    const others = group.filter((entry) => entry !== wrong);
    if (others.length > 0) storeTogether(others);
  }

  return {
    add(work, whenStored) {
      if (closed) return Promise.reject(storeClosed());
      return new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(flushInTime);
        const run = () => {
          const result = work();
          return { noteStored: () => whenStored?.(result), notify: () => resolve(result) };
        };
        waiting.push({ run, reject });
      });
    },
    outcome,
    async close() {
      closed = true;
      flush();
      await telling;
    },
  };
}

interface Waiting {
  readonly run: () => Done;
  readonly reject: (thrown: unknown) => void;
}

/** Finished work, and its notifications. */
interface Done {
  /** When it can be read. */
  readonly noteStored: () => void;
  /** When it is on disk. */
  readonly notify: () => void;
}

/** Whether the work itself is wrong, so the rest can be kept: SQLite's TOOBIG, CONSTRAINT and MISMATCH. */
function isOfTheEntry(thrown: unknown): boolean {
  const code = primaryCodeOf(thrown);
  return code === undefined || code === 18 || code === 19 || code === 20;
}
