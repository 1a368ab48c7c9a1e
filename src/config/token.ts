/** The general token of a run without a config file: made once, stored for its owner alone. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { tokenPrefix } from "./detect.ts";
import { isToken } from "./headers.ts";
import { codeOf, ConfigError } from "./problem.ts";

export interface StoredToken {
  readonly token: string;
  readonly file: string;
  /** Whether it was just made, and so has never been shown. */
  readonly isNew: boolean;
}

/** Reads the data folder's token, or creates folder and token. */
export function readOrCreateToken(dataDir: string): StoredToken {
  return findToken(dataDir) ?? explained(dataDir, "stored", (file) => writeToken(dataDir, file));
}

/** The token of the data folder, if one was made. */
export function findToken(dataDir: string): StoredToken | undefined {
  return explained(dataDir, "read", readToken);
}

/** Replaces the token atomically: whoever reads it meanwhile gets the old or the new one. */
export function replaceToken(dataDir: string): StoredToken {
  return explained(dataDir, "stored", (file) => {
    checkOwner(file);
    const token = createToken();
    const draft = `${file}.${randomBytes(6).toString("hex")}`;
    try {
      writeFileSync(draft, `${token}\n`, { mode: 0o600, flag: "wx", flush: true });
      renameSync(draft, file);
    } catch (thrown) {
      rmSync(draft, { force: true });
      throw thrown;
    }
    return { token, file, isNew: true };
  });
}

/** Root could replace a user's token with one this user cannot read; a chown would have to trust the user's folder. */
function checkOwner(file: string): void {
  const uid = statSync(file, { throwIfNoEntry: false })?.uid;
  if (uid === undefined || uid === process.geteuid?.() || process.geteuid === undefined) return;
  const message = `the token belongs to another user (uid ${uid}), whose gateway could not read a new one; run this as that user`;
  throw new ConfigError([{ path: file, message }]);
}

/** Deletes a token that was just made. */
export function forgetToken({ file }: StoredToken): void {
  rmSync(file, { force: true });
}

/** A token of 192 random bits. */
export function createToken(): string {
  return tokenPrefix + randomBytes(24).toString("hex");
}

/** Turns a system error about the token's file into a problem that the operator can fix. */
function explained<T>(dataDir: string, what: keyof typeof usual, work: (file: string) => T): T {
  const file = join(dataDir, "token");
  try {
    return work(file);
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === undefined) throw thrown;
    const message = `the generated token cannot be ${what} (${code}); ${remedies.get(code) ?? usual[what]}, or run with a config file`;
    throw new ConfigError([{ path: file, message }]);
  }
}

const remedies: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "make room on its disk"],
  ["EDQUOT", "make room on its disk"],
  ["ENOTDIR", "move away the file that is where its folder should be"],
]);

const usual = {
  stored: "give the gateway's user write access to its folder",
  read: "give the gateway's user read access to the file and its folder",
};

function readToken(file: string): StoredToken | undefined {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
  if (isToken(token)) return { token, file, isNew: false };
  const fault = token === "" ? "is empty" : "contains a character that no header can carry";
  throw new ConfigError([
    { path: file, message: `the generated token ${fault}; delete this file, and a new one is generated` },
  ]);
}

function writeToken(dataDir: string, file: string): StoredToken {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const token = createToken();
  let descriptor: number;
  try {
    // "wx": if two gateways start at once, one makes the token and the other reads it.
    descriptor = openSync(file, "wx", 0o600);
  } catch (thrown) {
    const other = codeOf(thrown) === "EEXIST" ? readToken(file) : undefined;
    if (other === undefined) throw thrown;
    return other;
  }
  try {
    writeFileSync(descriptor, `${token}\n`);
    // The umask may have taken too much.
    fchmodSync(descriptor, 0o600);
    return { token, file, isNew: true };
  } catch (thrown) {
    // A full disk still has room for a file's name, and an empty file would block the next start.
    rmSync(file, { force: true });
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
}
