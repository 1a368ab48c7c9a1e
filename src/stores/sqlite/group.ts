/** Runs the writes of one event-loop tick in one transaction, and tells of them once they are on the disk. */
import type { DatabaseSync } from "node:sqlite";
import type { Outcome } from "../check.ts";
import { storeClosed } from "../refusals.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { primaryCodeOf } from "../codes.ts";
import type { Sync } from "./sync.ts";
import { cannotKeep } from "./trouble.ts";

export interface Group {
  /**
   * Resolves to what the work returned, once it is on the disk. Work may run twice, when a neighbour was wrong; `whenKept` runs
   * once, in the order of the works, when they can be read.
   */
  add<T>(work: () => T, whenKept?: (result: T) => void): Promise<T>;
  /** What came of the tries to write something. */
  readonly outcome: Outcome;
  /** Runs what waits, and takes no more. Resolves when everyone is told. */
  close(): Promise<void>;
}

/** Works are run in their order, each seeing what those before it wrote; `prepare` runs once before them, when nobody else can write. */
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
    if (group.length > 0) keepTogether(group);
  }

  function keepTogether(group: readonly Waiting[]): void {
    let current: Waiting | undefined;
    try {
      const before = countChanges.get()?.["count"];
      begin.run();
      prepare();
      const works = group.map((entry) => (current = entry).run());
      current = undefined;
      commit.run();
      checkpoints.noteWrite();
      for (const { noteKept } of works) noteKept();
      // Where nothing was changed nothing was written, which works on a full disk too.
      const isWritten = countChanges.get()?.["count"] !== before;
      telling = tellOnDisk(group, works, isWritten);
    } catch (thrown) {
      const isUndone = undo();
      if (isUndone && current !== undefined && isOfTheEntry(thrown)) keepWithout(group, current, thrown);
      else refuse(group, thrown);
    }
  }

  async function tellOnDisk(group: readonly Waiting[], works: readonly Done[], isWritten: boolean): Promise<void> {
    try {
      await whenOnDisk(isWritten);
    } catch (thrown) {
      return refuse(group, thrown);
    }
    if (isWritten) outcome.keptAt = now();
    for (const { tell } of works) tell();
  }

  function refuse(group: readonly Waiting[], thrown: unknown): void {
    const error = cannotKeep(thrown);
    outcome.failure = { at: now(), error };
    for (const { reject } of group) reject(error);
  }

  /** A full disk has rolled back by itself; a busy one never began. False: the file fails here too, and the transaction is over. */
  function undo(): boolean {
    try {
      if (database.isTransaction) database.exec("ROLLBACK");
      return true;
    } catch {
      return false;
    }
  }

  /** One work that is wrong in itself must not cost its neighbours their turns. */
  function keepWithout(group: readonly Waiting[], wrong: Waiting, thrown: unknown): void {
    wrong.reject(thrown);
    const others = group.filter((entry) => entry !== wrong);
    if (others.length > 0) keepTogether(others);
  }

  return {
    add(work, whenKept) {
      if (closed) return Promise.reject(storeClosed());
      return new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(flushInTime);
        const run = () => {
          const result = work();
          return { noteKept: () => whenKept?.(result), tell: () => resolve(result) };
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

/** Work that was done, and what is to be said of it. */
interface Done {
  /** It can be read. */
  readonly noteKept: () => void;
  /** It is on the disk. */
  readonly tell: () => void;
}

/** Whether the work itself is wrong, so that its neighbours may stay: SQLite's TOOBIG, CONSTRAINT and MISMATCH. */
function isOfTheEntry(thrown: unknown): boolean {
  const code = primaryCodeOf(thrown);
  return code === undefined || code === 18 || code === 19 || code === 20;
}
