/** Checks the data folder and the store's for access and free space, and the generated token. */
import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../../config/config.ts";
import { ConfigError } from "../../config/problem.ts";
import { fileOfStore } from "../../config/store.ts";
import { findToken } from "../../config/token.ts";
import { type Finding, formatBytes, ok, problemWith, warning } from "./finding.ts";
import { codeOf } from "../../core/errors.ts";

/** A missing folder is judged by where it would be created. */
export function judgeFolders({ dataDir, sessions, file }: Config): readonly Finding[] {
  const storeFile = fileOfStore(sessions.store);
  const folders = new Set([dataDir, ...(storeFile === undefined ? [] : [dirname(storeFile)])]);
  return [...[...folders].map(judgeFolder), ...(file === undefined ? [judgeToken(dataDir)] : [])];
}

function judgeFolder(folder: string): Finding {
  const about = "data folder";
  try {
    const there = nearestThere(folder);
    if (!statSync(there).isDirectory()) {
      return problemWith(about, `${there} is not a folder; move it away, or set gateway.data_dir`);
    }
    accessSync(there, constants.W_OK | constants.X_OK);
    return judgeSpace(folder, there);
  } catch (thrown) {
    const remedy = "give the gateway's user write access to it, or set gateway.data_dir";
    return problemWith(about, `${folder} cannot be written (${codeOf(thrown)}); ${remedy}`);
  }
}

/** Less cannot hold a write-ahead log. */
const tooLittleBytes = 50_000_000;
const littleBytes = 1_000_000_000;

function judgeSpace(folder: string, there: string): Finding {
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const text = `${folder} ${folder === there ? "exists" : "will be created"}, ${formatBytes(free)} free`;
  if (free < tooLittleBytes)
    return problemWith("data folder", `${text}; turns cannot be stored much longer: make room`);
  if (free < littleBytes) return warning("data folder", `${text}; make room, or shorten gateway.sessions.ttl`);
  return ok("data folder", text);
}

/** The folder itself, or its nearest existing parent. */
function nearestThere(folder: string): string {
  let there = folder;
  while (statSync(there, { throwIfNoEntry: false }) === undefined && dirname(there) !== there) there = dirname(there);
  return there;
}

function judgeToken(dataDir: string): Finding {
  const about = "token";
  try {
    const storedToken = findToken(dataDir);
    if (storedToken === undefined) return ok(about, "generated at the first start");
    const mode = statSync(storedToken.file).mode & 0o777;
    if (process.platform === "win32" || (mode & 0o077) === 0)
      return ok(about, `${storedToken.file}, readable only by its owner`);
    const remedy = `chmod 600 ${storedToken.file}, then \`portico token rotate\``;
    return warning(about, `${storedToken.file} may be read by other users (mode ${mode.toString(8)}); ${remedy}`);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return problemWith(about, thrown.message);
    throw thrown;
  }
}
