/** Moves what is stored to another store: written line by line, and taken in only when every line is known to be right. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Imported } from "../core/store.ts";
import type { Access } from "./access.ts";
import type { ExportedSession } from "./export.ts";
import type { FoundSession } from "./reads.ts";

/** How many turns are asked for at once; how much of them comes is decided where they are read. */
const stepTurns = 200;

/** Everything, or these sessions. What is deleted before its line is written is not in it. */
export async function* exportLines(
  { read }: Access,
  wanted: readonly FoundSession[] | undefined,
): AsyncGenerator<string, void, void> {
  yield await read("archiveHead", undefined);
  if (wanted === undefined) yield* exportAll();
  for (const { name } of wanted ?? []) {
    const session = await read("sessionToExport", { name });
    if (session !== undefined) yield* exportSession(session);
  }
  yield `${JSON.stringify({ type: "end" })}\n`;

  async function* exportAll(): AsyncGenerator<string, void, void> {
    for (let after: number | undefined = -1; after !== undefined;) {
      const sessions: readonly ExportedSession[] = await read("sessionsToExport", { after });
      for (const session of sessions) yield* exportSession(session);
      after = sessions.at(-1)?.id;
    }
  }

  async function* exportSession({ line, turns }: ExportedSession): AsyncGenerator<string, void, void> {
    yield line;
    for (let at = 0; at < turns.length;) {
      const { text, taken } = await read("turnLines", { turns: turns.slice(at, at + stepTurns) });
      if (text !== "") yield text;
      at += taken;
    }
  }
}

/** An archive may be larger than memory, and its sender slow: it waits in a file of its own until all of it is there. */
export async function importLines({ write, secrets }: Access, bytes: AsyncIterable<Uint8Array>): Promise<Imported> {
  // Compiling the forms takes a while, and few gateways ever import.
  const { checkArchive } = await import("./archive.ts");
  const folder = await mkdtemp(join(tmpdir(), "portico-import-"));
  try {
    const path = join(folder, "archive");
    await writeFile(path, bytes, { mode: 0o600 });
    await checkArchive(path);
    const imported = await write("importLines", { path });
    secrets.renew();
    return imported;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
