/** Temporary files in memory: thousands of databases are created and removed, and none waits for a disk. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endAtExit } from "./scope.ts";

/** Only Linux has it. */
const memory = "/dev/shm";
/** Several times what the tests need at once. */
const enoughBytes = 1024 ** 3;

/** A folder that is removed when this process exits; undefined where memory is not to be used, or runs no programs. */
export function makeFolderInMemory(): string | undefined {
  const folder = makeFolder();
  if (folder === undefined) return undefined;
  endAtExit(() => rmSync(folder, { recursive: true, force: true }));
  // Tests also run programs as another user.
  chmodSync(folder, 0o755);
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  return spawnSync(program).status === 0 ? folder : undefined;
}

/** Undefined where there is no such place, where it has no room, and where it cannot be written. */
function makeFolder(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= enoughBytes ? mkdtempSync(join(memory, "portico-")) : undefined;
  } catch {
    return undefined;
  }
}
