/** Writes a store's contents as JSON Lines, for backups and for moving it. */
import type { ArchiveRecord } from "../core/store.ts";

/** The version of the format. Readers of a later version read earlier ones. */
export const version = 1;

/** One line per record, with its newline. The last shows that nothing was cut off. */
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
