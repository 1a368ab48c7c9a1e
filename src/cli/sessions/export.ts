/** `portico sessions export`: everything, or one session, as JSON Lines. */
import { createWriteStream, rmSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SessionStore } from "../../core/store.ts";
import type { Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";

export const exportSessions: Command = {
  summary: "Write everything, or one session, as JSON Lines.",
  usage: "sessions export [ID] [--out FILE] [--config FILE]",
  options: {
    out: { value: "FILE", summary: "A new file, readable by you alone, in place of the standard output." },
    ...configOption,
  },
  maxPositionals: 1,
  notes: [
    "An archive holds what was said, the key by which hints are recognised, and those that open what clients carry:",
    "keep it as secret as the store.",
    "`portico sessions import` takes it in again, here or on another machine.",
  ],
  async run(given, terminal, house) {
    const [id] = given.positionals;
    const { out } = given.options;
    return withStore(given, terminal, house, async ({ store }) => {
      if (out === undefined) {
        await writeAll(store, id, process.stdout, false);
        return 0;
      }
      const file = resolve(terminal.folder, out);
      try {
        await writeFile(store, id, file);
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
async function writeFile(store: SessionStore, id: string | undefined, file: string): Promise<void> {
  const stream = createWriteStream(file, { flags: "wx", mode: 0o600 });
  try {
    await writeAll(store, id, stream, true);
  } catch (thrown) {
    if (!isFileError(thrown) || thrown.code !== "EEXIST") rmSync(file, { force: true });
    throw thrown;
  }
}

async function writeAll(
  store: SessionStore,
  id: string | undefined,
  target: NodeJS.WritableStream,
  end: boolean,
): Promise<void> {
  const { writeArchive } = await import("../../archive.ts");
  await pipeline(Readable.from(writeArchive(store.exportRecords(id))), target, { end });
}

function isFileError(thrown: unknown): thrown is NodeJS.ErrnoException {
  return thrown instanceof Error && "syscall" in thrown;
}

function explain({ code, message }: NodeJS.ErrnoException, file: string): string {
  if (code === "EEXIST") return `${file} exists and was left as it is; name another file.`;
  if (code === "ENOENT") return `${file} cannot be written, because its folder does not exist.`;
  return `${file} cannot be written: ${message}`;
}
