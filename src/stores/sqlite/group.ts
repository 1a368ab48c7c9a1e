/** Keeps the entries of one event-loop tick in one transaction, so that they share one fsync. */
import type { DatabaseSync } from "node:sqlite";
import { GatewayError } from "../../core/errors.ts";

export interface Group<Entry> {
  /** Resolves to what `keep` said, once it is durable. */
  add(entry: Entry): Promise<boolean>;
  /** Keeps what waits, and takes no more. */
  close(): void;
}

/** `keep` is called for the entries in their order, each seeing what those before it wrote. */
export function createGroup<Entry>(database: DatabaseSync, keep: (entry: Entry) => boolean): Group<Entry> {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const savepoint = database.prepare("SAVEPOINT entry");
  const release = database.prepare("RELEASE entry");
  const undo = database.prepare("ROLLBACK TO entry");
  let waiting: Waiting<Entry>[] = [];
  let closed = false;

  function flush(): void {
    const group = waiting;
    waiting = [];
    if (group.length === 0) return;
    try {
      begin.run();
      const settlements = group.map(keepOne);
      commit.run();
      for (const settle of settlements) settle();
    } catch (thrown) {
      // A full disk has rolled back by itself; a busy one never began.
      if (database.isTransaction) database.exec("ROLLBACK");
      const error = unavailable("The session store cannot keep this turn now. Send it again in a moment.", thrown);
      for (const { reject } of group) reject(error);
    }
  }

  /** Returns how to tell the outcome, which must wait until all is durable. */
  function keepOne({ entry, resolve, reject }: Waiting<Entry>): () => void {
    savepoint.run();
    try {
      const kept = keep(entry);
      release.run();
      return () => resolve(kept);
    } catch (thrown) {
      if (!isOfTheEntry(thrown) || !database.isTransaction) throw thrown;
      undo.run();
      release.run();
      return () => reject(thrown);
    }
  }

  return {
    add(entry) {
      if (closed) return Promise.reject(unavailable("The session store is closed.", undefined));
      return new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(flush);
        waiting.push({ entry, resolve, reject });
      });
    },
    close() {
      closed = true;
      flush();
    },
  };
}

interface Waiting<Entry> {
  readonly entry: Entry;
  readonly resolve: (kept: boolean) => void;
  readonly reject: (thrown: unknown) => void;
}

/** Whether the entry itself is wrong, so that its neighbours may stay: SQLite's TOOBIG, CONSTRAINT and MISMATCH. */
function isOfTheEntry(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return true;
  const primaryCode = thrown.errcode & 0xff;
  return primaryCode === 18 || primaryCode === 19 || primaryCode === 20;
}

function unavailable(message: string, cause: unknown): GatewayError {
  return new GatewayError("store_unavailable", message, { retryAfterSeconds: 1, cause });
}
