/** Stages an archive in a temporary file before any of it is imported: it may exceed memory and arrive slowly. */
import type { ArchiveRecord } from "../core/store.ts";
import { brokenArchive } from "./refusals.ts";
import { createTemporary } from "./temporary.ts";

export interface Staging {
  /** Refuses a first record that is not the store's, and a later one that is. */
  add(record: ArchiveRecord): void;
  /** In order of arrival. */
  read(): Iterable<StagedRow>;
  close(): void;
}

export interface StagedRow {
  readonly type: ArchiveRecord["type"];
  /** JSON of what the store made of the record. */
  readonly record: string;
}

export function createStaging(toStaged: (record: ArchiveRecord) => readonly unknown[], inMemory = false): Staging {
  const what = "Nothing was imported: the archive cannot be buffered";
  const { database, use } = createTemporary(what, "import it again.", inMemory);
  database.exec("CREATE TABLE staged (type TEXT, record TEXT) STRICT");
  const add = database.prepare("INSERT INTO staged VALUES (?, ?)");
  const read = database.prepare("SELECT type, record FROM staged ORDER BY rowid");
  let isFirst = true;
  return {
    add(record) {
      if (isFirst !== (record.type === "store")) {
        throw brokenArchive("its first record, and only that one, must hold its key");
      }
      isFirst = false;
      use(() => add.run(record.type, JSON.stringify(toStaged(record))));
    },
    // Reading the first rows may move the last added ones from memory to the file, which can fail.
    *read() {
      const rows = read.iterate() as Iterator<unknown> as Iterator<StagedRow>;
      for (let row = use(() => rows.next()); row.done !== true; row = use(() => rows.next())) yield row.value;
    },
    close: () => database.close(),
  };
}
