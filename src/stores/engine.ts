/** SQLite as Node brings it, and what a program is told on a Node that is too old. */
import type * as sqlite from "node:sqlite";

// To import it would fail there before anything could be said.
if (Number.parseInt(process.versions.node, 10) < 24) {
  throw new Error(`Portico needs Node 24 or newer, and this is Node ${process.versions.node}.`);
}

export const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
export type DatabaseSync = sqlite.DatabaseSync;
