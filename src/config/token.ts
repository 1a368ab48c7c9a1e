/** The tokens of a run without a config file: made once, and kept for their owner alone. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { tokenPrefix } from "./detect.ts";
import { isToken } from "./judges.ts";
import { codeOf, ConfigError } from "./problem.ts";

interface GeneratedToken {
  readonly token: string;
  readonly file: string;
  /** It was just made, and so has been neither kept nor shown. */
  readonly isNew: boolean;
}

/** For clients, and for the operator: console, sessions, metrics. */
export type GeneratedTokens = Readonly<Record<"client" | "operator", GeneratedToken>>;

/** The tokens of the data folder; what is missing is made, and kept only by `keepTokens`. */
export function findOrMakeTokens(dataDir: string): GeneratedTokens {
  return {
    client: findOrMake(join(dataDir, "token")),
    operator: findOrMake(join(dataDir, "operator-token")),
  };
}

/** Keeps what is new, unless it was kept, and perhaps replaced, already. */
export function keepTokens(tokens: GeneratedTokens): void {
  for (const { token, file, isNew } of Object.values(tokens)) if (isNew && !existsSync(file)) keepToken(file, token);
}

/** Atomically: whoever reads it meanwhile gets the old one or the new. Makes the data folder. */
export function keepToken(file: string, token: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
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
}

/** Of 192 random bits. */
export function makeToken(): string {
  return tokenPrefix + randomBytes(24).toString("hex");
}

function findOrMake(file: string): GeneratedToken {
  try {
    const token = readFileSync(file, "utf8").trim();
    if (isToken(token) === undefined) return { token, file, isNew: false };
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { token: makeToken(), file, isNew: true };
    throw thrown;
  }
  throw new ConfigError([{ path: file, message: "holds no token; delete it, and the next start makes a new one" }]);
}
