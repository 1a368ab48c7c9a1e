/** Keeps turns in this process's memory: fast, and gone with it. */
import type { SessionStore } from "../core/store.ts";
import { createArchive } from "./memory/archive.ts";
import { createConversations } from "./memory/conversations.ts";
import { createKeeping } from "./memory/keeping.ts";
import { createSearch } from "./memory/search.ts";
import { createShelf, createShelves } from "./memory/shelves.ts";

export interface MemoryStoreOptions {
  readonly now?: (() => Date) | undefined;
}

/** A store that forgets when the process ends. */
export function createMemoryStore({ now = () => new Date() }: MemoryStoreOptions = {}): SessionStore {
  const shelves = createShelves(now);
  const shelf = createShelf(shelves);
  return {
    ...createSearch(shelves, shelf),
    ...createKeeping(shelves, shelf),
    ...createConversations(shelves),
    ...createArchive(shelves),
    async claim() {
      shelves.checkOpen(); // nobody else can reach it
    },
    async check() {
      shelves.checkOpen();
    },
    async close() {
      shelves.close();
    },
  };
}
