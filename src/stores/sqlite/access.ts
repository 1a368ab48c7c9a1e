/** What all parts of the SQLite store share: the open file, its writes, its secrets and its cache. */
import { randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { type KeyedHash, createKeyedHash } from "../hash.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { type Group, createGroup } from "./group.ts";
import { type Recent, createRecent } from "../recent.ts";
import { type Prepare, createPrepare } from "./statement.ts";
import type { Sync } from "./sync.ts";
import { cannotRead } from "./trouble.ts";

export interface Access {
  readonly database: DatabaseSync;
  /** It has no file, so nothing of it goes into a temporary one. */
  readonly inMemory: boolean;
  readonly prepare: Prepare;
  readonly checkpoints: Checkpoints;
  readonly group: Group;
  readonly recent: Recent;
  readonly now: () => Date;
  readonly hashHint: KeyedHash;
  readonly hashKey: KeyedHash;
  /** Runs `work` soon, before anything else is read or written: it undoes what failed to reach the disk. */
  undoLater(work: () => void): void;
  /** Undoes it, if that is possible now. */
  tryUndo(): void;
  /** Reads. Throws `store_unavailable` on failure. */
  read<T>(look: () => T): T;
  /** Forgets what another process may have changed. Call it before relying on anything cached. */
  refresh(): void;
  /** The same for searches, which a commit judges again: once per event-loop round. The next sees later changes. */
  refreshOncePerRound(): void;
  readHintKey(): Uint8Array;
  /** Hashes hints with the key that is in the file now. */
  rekey(): void;
  /** The store's own; created if missing. */
  readSealKey(): Uint8Array;
}

export function createAccess(
  database: DatabaseSync,
  checkpoints: Checkpoints,
  sync: Pick<Sync, "whenOnDisk" | "requireSynced"> | undefined,
  checkFile: () => void,
  now: () => Date,
  maxRecentSize?: number,
): Access {
  const prepare = createPrepare(database);
  const version = prepare("PRAGMA data_version", "arrays");
  const readMeta = prepare("SELECT value FROM meta WHERE key = ?");
  const addMeta = prepare("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)");
  const recent = createRecent(maxRecentSize);

  const readHintKey = () => readSecretAt("hint_key");
  const readVersion = () => (version.get() as unknown as [number])[0];
  function readSecretAt(key: string): Uint8Array {
    const find = () => readMeta.get(key) as { value: Uint8Array } | undefined;
    if (find() === undefined) addMeta.run(key, randomBytes(32));
    return find()?.value ?? new Uint8Array();
  }

  let seenVersion = readVersion();
  let hashHint = createKeyedHash(readHintKey());
  const rekey = () => {
    hashHint = createKeyedHash(readHintKey());
  };
  function refresh(): void {
    const current = readVersion();
    if (current === seenVersion) return;
    seenVersion = current;
    recent.clear();
    rekey();
  }
  const pendingUndo: (() => void)[] = [];
  /** Newest first: it may follow the others. */
  function undoPending(): void {
    if (pendingUndo.length === 0) return;
    const isOwn = !database.isTransaction;
    if (isOwn) database.exec("BEGIN IMMEDIATE");
    try {
      for (const work of pendingUndo.toReversed()) work();
      if (isOwn) database.exec("COMMIT");
    } catch (thrown) {
      if (isOwn && database.isTransaction) database.exec("ROLLBACK");
      throw thrown;
    }
    recent.clear();
    // Another's transaction may still be rolled back.
    if (!isOwn) return;
    pendingUndo.length = 0;
    void sync?.whenOnDisk(true).catch(() => {});
  }
  /** At once if possible: the next process reads the log as it is, on disk or not. */
  function tryUndo(): void {
    try {
      if (database.isOpen) undoPending();
    } catch {
      // It runs first once the log is trusted again.
    }
  }
  function beforeWriting(): void {
    checkFile();
    sync?.requireSynced();
    undoPending();
    refresh();
  }
  return {
    database,
    inMemory: database.location() === null,
    prepare,
    checkpoints,
    group: createGroup(database, checkpoints, sync?.whenOnDisk, beforeWriting, now),
    recent,
    now,
    hashHint: (owner, hint) => hashHint(owner, hint),
    hashKey: createKeyedHash(readSecretAt("idempotency_key")),
    undoLater(work) {
      // Others may be about to fail, too.
      if (pendingUndo.push(work) === 1) setImmediate(tryUndo);
    },
    tryUndo,
    read(look) {
      try {
        sync?.requireSynced();
        undoPending();
        return look();
      } catch (thrown) {
        throw cannotRead(thrown);
      }
    },
    refresh,
    refreshOncePerRound: onceForAll(refresh),
    readHintKey,
    rekey,
    readSealKey: () => readSecretAt("secret:seal"),
  };
}

/** Looks once for all calls in one round of the event loop; after a failure, the next call looks again. */
export function onceForAll(look: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    look();
    isDone = true;
    setImmediate(() => (isDone = false));
  };
}
