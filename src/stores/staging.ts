/** Gathers an archive in a temporary file before any of it is taken in: it may be larger than memory and come slowly. */
import { DatabaseSync } from "node:sqlite";
import type { ArchiveRecord } from "../core/store.ts";

export interface Staging {
  add(record: ArchiveRecord): void;
  /** In the order in which they came. */
  read(): Iterable<StagedRow>;
  close(): void;
}

export interface StagedRow {
  readonly type: ArchiveRecord["type"];
  /** JSON of what the store made of the record. */
  readonly record: string;
}

export function createStaging(toStaged: (record: ArchiveRecord) => readonly unknown[]): Staging {
  // A database without a name lives in a temporary file that goes with it.
  const database = new DatabaseSync("");
  database.exec("CREATE TABLE staged (type TEXT, record TEXT) STRICT");
  const add = database.prepare("INSERT INTO staged VALUES (?, ?)");
  const read = database.prepare("SELECT type, record FROM staged ORDER BY rowid");
  return {
    add: (record) => void add.run(record.type, JSON.stringify(toStaged(record))),
    read: () => read.iterate() as Iterable<unknown> as Iterable<StagedRow>,
    close: () => database.close(),
  };
}
