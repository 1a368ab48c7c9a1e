/** Loads Node's own SQLite, or says which Node is needed if this one is too old. */
import type * as sqlite from "node:sqlite";

// A static import would fail before this could be said.
if (Number.parseInt(process.versions.node, 10) < 24) {
  throw new Error(`Portico needs Node 24 or newer, and this is Node ${process.versions.node}.`);
}

export const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
export type DatabaseSync = sqlite.DatabaseSync;
