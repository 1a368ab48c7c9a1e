/** Stores turns in one SQLite file: on disk when a commit resolves, one sync for all commits during the last one. */
import type { DatabaseSync } from "node:sqlite";
import type { SessionStore } from "../core/store.ts";
import { createArchive } from "./sqlite/archive.ts";
import { createFileCheck } from "./sqlite/check.ts";
import { createCheckpoints } from "./sqlite/checkpoints.ts";
import { createConversations } from "./sqlite/conversations.ts";
import { cannotOpen, findFile, openDatabase, rememberFile } from "./sqlite/database.ts";
import { createDeletion } from "./sqlite/deletion.ts";
import { createAccess } from "./sqlite/access.ts";
import { createImport } from "./sqlite/import.ts";
import { createTurnWriter } from "./sqlite/writer.ts";
import { lockFile } from "./sqlite/lock.ts";
import { createPrune } from "./sqlite/prune.ts";
import { createRemoval } from "./sqlite/removal.ts";
import { createSearch, createCommitLookup } from "./sqlite/search.ts";
import { createSync } from "./sqlite/sync.ts";

export interface SqliteStoreOptions {
  /** An absolute path, or `:memory:`. */
  readonly file: string;
  readonly now?: (() => Date) | undefined;
  /** How many characters of turns are cached; each turn counts as a thousand more than its items have. */
  readonly maxRecentSize?: number | undefined;
  /** Told what works less well for a while; by default a process warning. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** A store in a file, which is created if missing and migrated if its schema is older. */
export function createSqliteStore(options: SqliteStoreOptions): SessionStore {
  const database = openDatabase(options.file);
  try {
    return createStoreOf(database, options);
  } catch (thrown) {
    database.close();
    throw cannotOpen(options.file, thrown);
  }
}

function createStoreOf(database: DatabaseSync, options: SqliteStoreOptions): SessionStore {
  const { now = () => new Date(), maxRecentSize, warn = warnProcess } = options;
  const checkFile = rememberFile(options.file);
  const file = findFile(options.file);
  const sync = createSync(database, file, warn);
  const checkpoints = createCheckpoints(database, file, warn, sync && { requireSynced: sync.requireSynced });
  const access = createAccess(database, checkpoints, sync, checkFile, now, maxRecentSize);
  const lookup = createCommitLookup(access);
  const removal = createRemoval(access);
  let unlock: (() => void) | undefined;
  return {
    ...createSearch(access, lookup),
    ...createTurnWriter(access, lookup, removal),
    ...createDeletion(access, removal),
    prune: createPrune(access, removal),
    ...createConversations(access, removal),
    ...createArchive(access),
    importRecords: createImport(access, removal),
    async claim() {
      unlock ??= lockFile(file);
    },
    check: createFileCheck(access, checkFile),
    async close() {
      await access.group.close();
      access.tryUndo();
      // What that wrote may not be on disk yet, or may never be.
      await sync?.whenOnDisk(false).catch(() => {});
      await checkpoints.close();
      sync?.close();
      if (database.isOpen) database.close();
      // A closed store does not serve its cache either.
      access.recent.clear();
      unlock?.();
    },
  };
}

function warnProcess(message: string): void {
  process.emitWarning(message, "PorticoWarning");
}
