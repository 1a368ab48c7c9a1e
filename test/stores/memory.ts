/** A store of plain maps: other stores are compared with it, and tests of the core need no more. */
import type { SessionStore } from "../../src/core/store.ts";
import { createArchive } from "./memory/archive.ts";
import { createConversations } from "./memory/conversations.ts";
import { createTurnWriter } from "./memory/writer.ts";
import { createSearch } from "./memory/search.ts";
import { createCommitLookup, createTables } from "./memory/tables.ts";

export interface MemoryStoreOptions {
  readonly now?: (() => Date) | undefined;
}

/** A store that forgets when the process ends. */
export function createMemoryStore({ now = () => new Date() }: MemoryStoreOptions = {}): SessionStore {
  const tables = createTables(now);
  const lookup = createCommitLookup(tables);
  return {
    ...createSearch(tables, lookup),
    ...createTurnWriter(tables, lookup),
    ...createConversations(tables),
    ...createArchive(tables),
    async claim() {
      tables.checkOpen(); // nobody else can reach it
    },
    async check() {
      tables.checkOpen();
    },
    async close() {
      tables.close();
    },
  };
}
