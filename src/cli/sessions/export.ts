/** `portico sessions export`: everything, or some sessions, as JSON Lines. */
import { createWriteStream, rmSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ArchiveRecord } from "../../core/store.ts";
import { exportWanted } from "../../core/wanted.ts";
import type { Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";
import { hintOptions, readWish, wantedNotes } from "./wanted.ts";

const usage = "sessions export [ID | --user NAME | --hint HINT] [--owner NAME] [--out FILE] [--config FILE]";

export const exportSessions: Command = {
  summary: "Write everything, or some sessions, as JSON Lines.",
  usage,
  options: {
    ...hintOptions,
    out: { value: "FILE", summary: "A new file, readable by you alone, in place of the standard output." },
    ...configOption,
  },
  maxPositionals: 1,
  notes: [
    ...wantedNotes,
    "An archive holds what was said, the key by which hints are recognised, and those that open what clients carry:",
    "keep it as secret as the store.",
    "`portico sessions import` takes it in again, here or on another machine.",
  ],
  async run(given, terminal, house) {
    const { out, user, hint, owner } = given.options;
    const isAll = given.positionals.length === 0 && (user ?? hint ?? owner) === undefined;
    const find = isAll ? undefined : readWish(given, usage);
    return withStore(given, terminal, house, async ({ store }) => {
      const records = find === undefined ? store.exportRecords() : exportWanted(store, await find(store));
      if (out === undefined) {
        await writeAll(records, process.stdout, false);
        return 0;
      }
      const file = resolve(terminal.folder, out);
      try {
        await writeFile(records, file);
      } catch (thrown) {
        if (!isFileError(thrown)) throw thrown;
        terminal.complain(explain(thrown, file));
        return 1;
      }
      terminal.print(`Wrote ${file}, readable by you alone.`);
      return 0;
    });
  },
};

/** What could not be written to its end is no archive, and goes. */
async function writeFile(records: AsyncIterable<ArchiveRecord>, file: string): Promise<void> {
  const stream = createWriteStream(file, { flags: "wx", mode: 0o600 });
  try {
    await writeAll(records, stream, true);
  } catch (thrown) {
    if (!isFileError(thrown) || thrown.code !== "EEXIST") rmSync(file, { force: true });
    throw thrown;
  }
}

async function writeAll(
  records: AsyncIterable<ArchiveRecord>,
  target: NodeJS.WritableStream,
  end: boolean,
): Promise<void> {
  const { writeArchive } = await import("../../archive/write.ts");
  await pipeline(Readable.from(writeArchive(records)), target, { end });
}

function isFileError(thrown: unknown): thrown is NodeJS.ErrnoException {
  return thrown instanceof Error && "syscall" in thrown;
}

function explain({ code, message }: NodeJS.ErrnoException, file: string): string {
  if (code === "EEXIST") return `${file} exists and was left as it is; name another file.`;
  if (code === "ENOENT") return `${file} cannot be written, because its folder does not exist.`;
  return `${file} cannot be written: ${message}`;
}
