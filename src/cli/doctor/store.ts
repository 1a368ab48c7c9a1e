/**
 * Checks that the session store can be read, and is whole; a file is opened read-only. If no gateway runs, SQLite
 * leaves an empty `-wal` and a `-shm` beside it: removing them could harm a gateway that is just starting.
 */
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileOfStore } from "../../config/store.ts";
import { applicationId, newestVersion, readVersion } from "../../stores/sqlite/schema.ts";
import { codeOf, messageOf } from "../../core/errors.ts";
import { hasJournal, primary, primaryCodeOf } from "../../stores/codes.ts";
import { type Finding, formatBytes, ok, problem, warning } from "./finding.ts";
import { findOpenMode } from "./folders.ts";

/** Larger files take longer to read than anyone would wait. */
const maxReadBytes = 500_000_000;
const busyMs = 1_000;

/** A store that does not exist yet is ok. */
export async function judgeStore(url: string): Promise<Finding> {
  if (url === "memory:") return ok("in memory");
  const file = fileOfStore(url);
  if (file === undefined) return judgeRedis(url);
  try {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found === undefined) return madeAtStart(file);
    const closed = findClosed(realpathSync(file));
    if (closed !== undefined) {
      const remedy = "give the gateway's user read and write access, and run this as that user";
      return problem(`${closed.path} cannot be read and written by this user (${closed.code})`, remedy);
    }
    return found.size === 0 ? madeAtStart(file) : judgeFile(file, found.size);
  } catch (thrown) {
    const reason = messageOf(thrown);
    if (primaryCodeOf(thrown) === primary.corrupt) {
      const remedy = "restore a backup, or move it away: the next start creates an empty one";
      return problem(`${file} is damaged: ${reason}`, remedy);
    }
    if (hasJournal(thrown)) {
      const remedy = "name another (gateway.sessions.store), or open it once with the program that wrote it";
      return problem(`${file} has the journal of an unfinished change beside it`, remedy);
    }
    const remedy = "check that it is one of Portico's stores and readable, or name another (gateway.sessions.store)";
    return problem(`${file} cannot be read: ${reason}`, remedy);
  }
}

function madeAtStart(file: string): Finding {
  return ok(`${file} is created at the first start`);
}

function tooNew(store: string, version: number | string, newest: number): Finding {
  const text = `${store} has schema version ${version}, and this release knows versions up to ${newest}`;
  return problem(text, "start the newer release that wrote it");
}

function describeVersion(version: number, newest: number): string {
  return `schema version ${version}${version < newest ? `, upgraded to ${newest} at the next start` : ""}`;
}

/** The first of the file, its companions and its folder that this user may not access. */
function findClosed(file: string): { readonly path: string; readonly code: string } | undefined {
  const files = ["", "-wal", "-shm", "-gateway"].map((ending) => file + ending);
  const there = files.filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined);
  for (const path of [...there, dirname(file)]) {
    try {
      accessSync(path, constants.R_OK | constants.W_OK);
    } catch (thrown) {
      return { path, code: codeOf(thrown) };
    }
  }
  return undefined;
}

/** Uses a connection of its own, and changes nothing. */
async function judgeRedis(url: string): Promise<Finding> {
  const { inspectRedis } = await import("../../stores/redis/inspect.ts");
  try {
    const { shown, version, newest, losses } = await inspectRedis(url);
    // It may be no number.
    if (version !== undefined && !(Number(version) <= newest)) return tooNew(shown, version, newest);
    const age = version === undefined ? "created at the first start" : describeVersion(Number(version), newest);
    const text = `${shown}, ${age}`;
    return losses.length === 0 ? ok(text) : warning(text, losses.join(" "));
  } catch (thrown) {
    return problem(messageOf(thrown));
  }
}

function judgeFile(file: string, bytes: number): Finding {
  const database = new DatabaseSync(file, { readOnly: true, timeout: busyMs });
  try {
    const first = (query: string): unknown => Object.values(database.prepare(query).get() ?? {})[0];
    const mark = first("PRAGMA application_id");
    // A first start on a full disk leaves a file without a mark and without tables.
    if (mark === 0 && first("SELECT count(*) FROM sqlite_schema") === 0) return madeAtStart(file);
    if (mark !== applicationId) {
      return problem(`${file} is another program's database`, "name another (gateway.sessions.store)");
    }
    const version = readVersion(database);
    if (version > newestVersion) return tooNew(file, version, newestVersion);
    const fault = bytes > maxReadBytes ? undefined : first("PRAGMA quick_check(1)");
    if (fault !== undefined && fault !== "ok") {
      const remedy = "stop the gateway, save what can be read with `portico sessions export`, or restore a backup";
      return problem(`${file} is damaged: ${String(fault)}`, remedy);
    }
    const read = fault === undefined ? "too large to be checked here" : "intact";
    const text = `${file}, ${formatBytes(bytes)}, ${describeVersion(version, newestVersion)}, ${read}`;
    // SQLite gives its log the mode of the file.
    const mode = findOpenMode(file) ?? findOpenMode(`${file}-wal`);
    return mode === undefined
      ? ok(text)
      : warning(`${text}, but open to other users (mode ${mode})`, `chmod 600 ${file}*`);
  } finally {
    database.close();
  }
}
