/**
 * Makes what a store needs on its disk, for one user alone. What root makes goes to the user in whose folder it stands, whose
 * gateway would be locked out of it otherwise.
 */
import { type Stats, closeSync, constants, fchownSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** A folder with all that leads to it, as far as it is not there. */
export function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined || !isRoot()) return;
  const owner = statSync(dirname(first));
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW;
  for (let made = resolve(folder); made.length >= first.length; made = dirname(made))
    give(openSync(made, flags), owner);
}

/** An empty file, where none is. */
export function makeFile(file: string): void {
  try {
    give(openSync(file, "ax", 0o600), statSync(dirname(file)));
  } catch (thrown) {
    if (!(thrown instanceof Error) || !("code" in thrown) || thrown.code !== "EEXIST") throw thrown;
    // Another process was faster, or it is a link that leads to where no file is yet.
    closeSync(openSync(file, "a", 0o600));
  }
}

function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** By what was opened, and not by its name, under which the folder's owner could have put something else meanwhile. */
function give(descriptor: number, { uid, gid }: Stats): void {
  try {
    if (isRoot() && uid !== 0) fchownSync(descriptor, uid, gid);
  } catch {
    // The root of a container or of another machine's disk may not: then it stays root's.
  } finally {
    closeSync(descriptor);
  }
}
