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
  let waiting: Waiting<Entry>[] = [];
  let closed = false;

  function flush(): void {
    const group = waiting;
    waiting = [];
    if (group.length > 0) keepTogether(group);
  }

  /** What is told must wait until all is durable. */
  function keepTogether(group: readonly Waiting<Entry>[]): void {
    let current: Waiting<Entry> | undefined;
    try {
      begin.run();
      const kept = group.map((entry) => keep((current = entry).entry));
      current = undefined;
      commit.run();
      for (const [index, { resolve }] of group.entries()) resolve(kept[index] ?? false);
    } catch (thrown) {
      // A full disk has rolled back by itself; a busy one never began.
      if (database.isTransaction) database.exec("ROLLBACK");
      if (current !== undefined && isOfTheEntry(thrown)) return keepWithout(group, current, thrown);
      const error = unavailable("The session store cannot keep this turn now. Send it again in a moment.", thrown);
      for (const { reject } of group) reject(error);
    }
  }

  /** One entry that is wrong in itself must not cost its neighbours their turns. */
  function keepWithout(group: readonly Waiting<Entry>[], wrong: Waiting<Entry>, thrown: unknown): void {
    wrong.reject(thrown);
    const others = group.filter((entry) => entry !== wrong);
    if (others.length > 0) keepTogether(others);
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
