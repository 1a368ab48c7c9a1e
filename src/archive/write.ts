/** What a store holds as JSON Lines, for backups and for moving it elsewhere. */
import type { ArchiveRecord } from "../core/store.ts";

/** The version of the lines. A reader of a later version reads earlier ones. */
export const version = 1;

/** One line a record, with its newline. The last one tells that nothing was cut off. */
export async function* writeArchive(records: AsyncIterable<ArchiveRecord>): AsyncGenerator<string, void, void> {
  for await (const record of records) yield `${JSON.stringify(toLine(record))}\n`;
  yield `${JSON.stringify({ type: "end" })}\n`;
}

function toLine(record: ArchiveRecord): object {
  switch (record.type) {
    case "store":
      return { type: "portico", version, hintKey: record.hintKey, sealKeys: record.sealKeys };
    case "session":
      return record;
    case "turn":
      return { type: "turn", ...record.turn };
  }
}
