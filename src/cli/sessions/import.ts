/** `portico sessions import`: takes in what was exported, all of it or nothing. */
import { createReadStream, statSync } from "node:fs";
import { type Command, CommandError } from "../command.ts";
import { configOption } from "../settings.ts";
import { toPath } from "../terminal.ts";
import { withStore } from "./open.ts";

export const importSessions: Command = {
  summary: "Take in what was exported.",
  usage: "sessions import [FILE] [--config FILE]",
  options: configOption,
  maxPositionals: 1,
  notes: [
    "Reads the standard input when FILE is absent or `-`.",
    "A session or turn that is there already stays as it is. If a line is wrong, nothing is taken in.",
    "A session whose hint another session has by now comes without it: delete that one and import again.",
    "A gateway that runs on the store opens what clients carry from there within ten seconds.",
  ],
  async run(given, terminal, house) {
    const [name = "-"] = given.positionals;
    const file = name === "-" ? undefined : toPath(name, terminal);
    const kind = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    // A pipe with a name will do: `import <(zcat backup.jsonl.gz)`.
    if (file !== undefined && (kind === undefined || kind.isDirectory())) {
      throw new CommandError(`${file} is not a file that could be read.`);
    }
    return withStore(
      given,
      terminal,
      house,
      async ({ store }) => {
        const { readArchive } = await import("../../archive/read.ts");
        const bytes = file === undefined ? terminal.input : createReadStream(file);
        const { sessions, turns, hintsTaken } = await store.importRecords(readArchive(bytes));
        terminal.print(`Took in ${sessions} sessions and ${turns} turns.`);
        if (hintsTaken > 0) terminal.complain(describeTaken(hintsTaken));
        return 0;
      },
      "make",
    );
  },
};

function describeTaken(count: number): string {
  const remedy = "Delete those and import the archive again, and they have their hints.";
  return `${count} sessions are found by their ids alone, because others have their hints by now. ${remedy}`;
}
