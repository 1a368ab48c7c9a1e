/** Checks the data folder and the store's for access and free space, and the generated token. */
import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../../config/config.ts";
import { ConfigError } from "../../config/problem.ts";
import { fileOfStore } from "../../config/store.ts";
import { findToken } from "../../config/token.ts";
import { type Finding, formatBytes, ok, problem, warning } from "./finding.ts";
import { codeOf } from "../../core/errors.ts";

/** A missing folder is judged by where it would be created. */
export function judgeFolders({ dataDir, sessions }: Config): readonly Finding[] {
  const storeFile = fileOfStore(sessions.store);
  return Array.from(new Set([dataDir, ...(storeFile === undefined ? [] : [dirname(storeFile)])]), judgeFolder);
}

function judgeFolder(folder: string): Finding {
  try {
    const there = nearestThere(folder);
    if (!statSync(there).isDirectory()) {
      return problem(`${there} is not a folder`, "move it away, or set gateway.data_dir");
    }
    accessSync(there, constants.W_OK | constants.X_OK);
    return judgeSpace(folder, there);
  } catch (thrown) {
    const remedy = "give the gateway's user write access to it, or set gateway.data_dir";
    return problem(`${folder} cannot be written (${codeOf(thrown)})`, remedy);
  }
}

/** Less cannot hold a write-ahead log. */
const tooLittleBytes = 50_000_000;
const littleBytes = 1_000_000_000;

function judgeSpace(folder: string, there: string): Finding {
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const text = `${folder} ${folder === there ? "exists" : "will be created"}, ${formatBytes(free)} free`;
  if (free < tooLittleBytes) return problem(text, "turns cannot be stored much longer: make room");
  if (free < littleBytes) return warning(text, "make room, or shorten gateway.sessions.ttl");
  return ok(text);
}

/** The folder itself, or its nearest existing parent. */
function nearestThere(folder: string): string {
  let there = folder;
  while (statSync(there, { throwIfNoEntry: false }) === undefined && dirname(there) !== there) there = dirname(there);
  return there;
}

/** The token of a run without a file. */
export function judgeToken({ dataDir }: Config): Finding {
  try {
    const file = findToken(dataDir)?.file;
    if (file === undefined) return ok("generated at the first start");
    const mode = findOpenMode(file);
    if (mode === undefined) return ok(`${file}, readable only by its owner`);
    const text = `${file} may be read by other users (mode ${mode})`;
    return warning(text, `chmod 600 ${file}, then \`portico token rotate\``);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return problem(thrown.message);
    throw thrown;
  }
}

/** A file's mode, if it has rights for others than its owner. */
export function findOpenMode(file: string): string | undefined {
  const mode = (statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
  return process.platform === "win32" || (mode & 0o077) === 0 ? undefined : mode.toString(8);
}
