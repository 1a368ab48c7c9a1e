/** `portico sessions import`: imports an archive, all of it or nothing. */
import { createReadStream, statSync } from "node:fs";
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
    "A gateway running on the store can open what clients carry from the archive within ten seconds.",
  ],
  async run(given, terminal) {
    const [name = "-"] = given.positionals;
    const file = name === "-" ? undefined : toPath(name, terminal);
    const kind = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    // A named pipe will do: `import <(zcat backup.jsonl.gz)`.
    if (file !== undefined && (kind === undefined || kind.isDirectory())) {
      throw new CommandError(`${file} is not a readable file.`);
    }
    return withStore(given, terminal, "make", async ({ store }) => {
      const { readArchive } = await import("../../archive/read.ts");
      const bytes = file === undefined ? terminal.input : createReadStream(file);
      const { sessions, turns, hintsTaken } = await store.importRecords(readArchive(bytes));
      terminal.print(`Imported ${count(sessions, "session")} and ${count(turns, "turn")}.`);
      if (hintsTaken > 0) terminal.complain(describeTaken(hintsTaken));
      return 0;
    });
  },
};

function describeTaken(sessions: number): string {
  const remedy = "To restore them, delete those sessions and import the archive again.";
  return `${count(sessions, "session")} can be found only by id, because others have the hints by now. ${remedy}`;
}
