/** The store of plain maps that others are compared with, and the one that `memory:` opens, which is in SQLite. */
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { describeStore } from "./contract.ts";
import { createMemoryStore } from "./memory.ts";

describeStore("a store of plain maps", (now) => createMemoryStore({ now }));
describeStore("the store that memory: opens", (now) => createSqliteStore({ file: ":memory:", now }));
