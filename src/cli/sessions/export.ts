/** `portico sessions export`: everything, or some sessions, as JSON Lines. */
import { createWriteStream, rmSync } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { GatewayError } from "../../core/errors.ts";
import type { ArchiveRecord } from "../../core/store.ts";
import { exportWanted } from "../../core/wanted.ts";
import { isLasting } from "../../stores/sqlite/trouble.ts";
import { type Command, CommandError } from "../command.ts";
import { explainWriting } from "../failure.ts";
import { configOption } from "../settings.ts";
import { toPath } from "../terminal.ts";
import { nameCause, withStore } from "./open.ts";
import { hintOptions, readWanted, wantedNotes } from "./wanted.ts";

const usage = "sessions export [ID | --user NAME | --hint HINT] [--owner NAME] [--out FILE] [--config FILE]";

export const exportSessions: Command = {
  summary: "Write everything, or some sessions, as JSON Lines.",
  usage,
  options: {
    ...hintOptions,
    out: { value: "FILE", summary: "A new file, readable only by you, instead of standard output." },
    ...configOption,
  },
  maxPositionals: 1,
  notes: [
    ...wantedNotes,
    "An archive holds what was said, and the store's keys, with which hints are recognised and sealed reasoning is opened: keep it as secret as the store.",
    "`portico sessions import` imports it, here or on another machine.",
    "From a damaged store, what can be read before the damage is written, without the end line of a complete archive.",
  ],
  async run(given, terminal) {
    const { out, user, hint, owner } = given.options;
    const isAll = given.positionals.length === 0 && (user ?? hint ?? owner) === undefined;
    const find = isAll ? undefined : readWanted(given, usage);
    return withStore(given, terminal, "fail", async ({ store, file: storeFile }) => {
      const records = find === undefined ? store.exportRecords() : exportWanted(store, await find(store));
      const file = out === undefined ? undefined : toPath(out, terminal);
      const writing = file === undefined ? writeAll(records, terminal.output, false) : writeFile(records, file);
      const { failure, hasRecords } = await writing;
      if (failure !== undefined) {
        throw hasRecords ? cutShort(nameCause(failure, storeFile), file ?? "What was written") : failure;
      }
      if (file !== undefined) terminal.print(`Wrote ${file}, readable only by you.`);
      return 0;
    });
  },
};

/** How far an export got. */
interface Written {
  /** Why the store could be read no further, if that is permanent. */
  readonly failure?: GatewayError | undefined;
  /** Something follows the store's own line. */
  readonly hasRecords: boolean;
}

/** Deletes an incomplete archive, unless it is all that can ever be read of the store. */
async function writeFile(records: AsyncIterable<ArchiveRecord>, file: string): Promise<Written> {
  const stream = createWriteStream(file, { flags: "wx", mode: 0o600 });
  let isMade = false;
  stream.once("open", () => (isMade = true));
  try {
    const written = await writeAll(records, stream, true);
    if (written.failure !== undefined && !written.hasRecords) rmSync(file, { force: true });
    return written;
  } catch (thrown) {
    if (isMade) rmSync(file, { force: true });
    throw isFileError(thrown) ? new CommandError(explainWriting(thrown, file)) : thrown;
  }
}

async function writeAll(
  records: AsyncIterable<ArchiveRecord>,
  target: NodeJS.WritableStream,
  end: boolean,
): Promise<Written> {
  const { writeArchive } = await import("../../archive/write.ts");
  let failure: GatewayError | undefined;
  let lines = 0;
  async function* write(): AsyncGenerator<string> {
    try {
      for await (const line of writeArchive(records)) {
        yield line;
        lines += 1;
      }
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || !isLasting(thrown.cause)) throw thrown;
      failure = thrown;
    }
  }
  await pipeline(Readable.from(write()), target, { end });
  return { failure, hasRecords: lines > 1 };
}

function cutShort({ code, message, cause }: GatewayError, what: string): GatewayError {
  const rest = `${what} contains what could be read before that, without an end line, so that it is not mistaken for a complete archive.`;
  const remedy = `To import that much anyway, add the line {"type":"end"} to it.`;
  return new GatewayError(code, `${message}\n${rest} ${remedy}`, { cause });
}

function isFileError(thrown: unknown): thrown is NodeJS.ErrnoException {
  return thrown instanceof Error && "syscall" in thrown;
}
