/** The general token of a run without a config file: made once, stored for its owner alone. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tokenPrefix } from "./detect.ts";
import { isToken } from "./headers.ts";
import { codeOf, ConfigError } from "./problem.ts";

export interface GeneratedToken {
  readonly token: string;
  readonly file: string;
  /** Whether it was just made, and so has been neither stored nor shown. */
  readonly isNew: boolean;
}

/** The token of the data folder, or a new one. */
export function findOrCreateToken(dataDir: string): GeneratedToken {
  return findToken(dataDir) ?? { token: createToken(), file: fileIn(dataDir), isNew: true };
}

/** The token of the data folder, if one is stored. */
export function findToken(dataDir: string): GeneratedToken | undefined {
  return explained(dataDir, "read", readToken);
}

/** Stores a token atomically: whoever reads it meanwhile gets the old or the new one. Creates the data folder. */
export function storeToken(dataDir: string, token: string): void {
  explained(dataDir, "stored", (file) => {
    checkOwner(file);
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const draft = `${file}.${randomBytes(6).toString("hex")}`;
    try {
      writeFileSync(draft, `${token}\n`, { mode: 0o600, flag: "wx", flush: true });
      // The umask may have taken too much.
      chmodSync(draft, 0o600);
      renameSync(draft, file);
    } catch (thrown) {
      rmSync(draft, { force: true });
      throw thrown;
    }
  });
}

/** Root could replace a user's token with one this user cannot read; a chown would have to trust the user's folder. */
function checkOwner(file: string): void {
  const uid = statSync(file, { throwIfNoEntry: false })?.uid;
  if (uid === undefined || uid === process.geteuid?.() || process.geteuid === undefined) return;
  const message = `the token belongs to another user (uid ${uid}), whose gateway could not read a new one; run this as that user`;
  throw new ConfigError([{ path: file, message }]);
}

/** A token of 192 random bits. */
export function createToken(): string {
  return tokenPrefix + randomBytes(24).toString("hex");
}

function fileIn(dataDir: string): string {
  return join(dataDir, "token");
}

/** Turns a system error about the token's file into a problem that the operator can fix. */
function explained<T>(dataDir: string, what: keyof typeof usual, work: (file: string) => T): T {
  const file = fileIn(dataDir);
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

function readToken(file: string): GeneratedToken | undefined {
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
