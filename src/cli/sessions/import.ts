/** `portico sessions import`: imports an archive, all of it or nothing. */
import { accessSync, constants, createReadStream, statSync } from "node:fs";
import { codeOf } from "../../core/errors.ts";
import { type Command, CommandError } from "../command.ts";
import { configOption } from "../settings.ts";
import { toPath } from "../terminal.ts";
import { withStore } from "./open.ts";
import { count } from "./text.ts";

export const importSessions: Command = {
  summary: "Import what was exported.",
  usage: "sessions import [FILE] [--config FILE]",
  options: configOption,
  maxPositionals: 1,
  notes: [
    "Reads standard input if FILE is absent or `-`.",
    "Existing sessions and turns stay as they are. If a line is invalid, nothing is imported.",
    "If another session has a session's hint by now, it is imported without the hint: delete the other one and import again.",
    "Reasoning and compactions that clients of the archive's gateway hold in sealed form are accepted by a gateway running on the store within ten seconds.",
  ],
  async run(given, terminal) {
    const [name = "-"] = given.positionals;
    const file = name === "-" ? undefined : toPath(name, terminal);
    // Before a store is made for it.
    if (file !== undefined) checkFile(file);
    return withStore(given, terminal, "make", async ({ store }) => {
      const { readArchive } = await import("../../archive/read.ts");
      const bytes = file === undefined ? terminal.input : readFile(file);
      const { sessions, turns, hintsTaken } = await store.importRecords(readArchive(bytes));
      terminal.print(`Imported ${count(sessions, "session")} and ${count(turns, "turn")}.`);
      if (hintsTaken > 0) terminal.complain(describeTaken(hintsTaken));
      return 0;
    });
  },
};

/** A named pipe will do: `import <(zcat backup.jsonl.gz)`. */
function checkFile(file: string): void {
  try {
    accessSync(file, constants.R_OK);
    if (!statSync(file).isDirectory()) return;
  } catch (thrown) {
    throw unreadable(file, codeOf(thrown));
  }
  throw unreadable(file, "EISDIR");
}

async function* readFile(file: string): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* createReadStream(file);
  } catch (thrown) {
    throw unreadable(file, codeOf(thrown));
  }
}

function unreadable(file: string, code: string): CommandError {
  return new CommandError(`${file} cannot be read (${code}); name an archive that this user may read.`);
}

function describeTaken(sessions: number): string {
  const remedy = "To restore them, delete those sessions and import the archive again.";
  return `${count(sessions, "session")} can be found only by id, because others have the hints by now. ${remedy}`;
}
