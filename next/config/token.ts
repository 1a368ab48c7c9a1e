/** The tokens of a run without a config file: made once, and kept for their owner alone. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { tokenPrefix } from "./detect.ts";
import { isOneWord } from "./judges.ts";
import { codeOf, ConfigError } from "./problem.ts";

/** For clients, and for the operator: console, sessions, metrics. */
export type Role = "client" | "operator";

export interface GeneratedToken {
  readonly token: string;
  readonly file: string;
  /** It was just made, and so has been neither kept nor shown. */
  readonly isNew: boolean;
}

export type GeneratedTokens = Readonly<Record<Role, GeneratedToken>>;

const fileNames = { client: "token", operator: "operator-token" } as const;

/** The tokens of the data folder; what is missing is made, and kept only by `keepTokens`. */
export function findOrCreateTokens(dataDir: string): GeneratedTokens {
  const find = (role: Role): GeneratedToken => {
    const file = join(dataDir, fileNames[role]);
    const token = explained(file, "read", readToken);
    return token === undefined ? { token: createToken(), file, isNew: true } : { token, file, isNew: false };
  };
  return { client: find("client"), operator: find("operator") };
}

/** Keeps what is new. */
export function keepTokens(tokens: GeneratedTokens): void {
  for (const { token, file, isNew } of Object.values(tokens)) if (isNew) storeToken(file, token);
}

/** Atomically: whoever reads it meanwhile gets the old one or the new. Makes the data folder. */
export function storeToken(file: string, token: string): void {
  explained(file, "written", () => {
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
  });
}

/** Of 192 random bits. */
export function createToken(): string {
  return tokenPrefix + randomBytes(24).toString("hex");
}

function readToken(file: string): string | undefined {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  const token = readFileSync(file, "utf8").trim();
  if (isOneWord(token)) return token;
  throw new ConfigError([{ path: file, message: "holds no token; delete it, and the next start makes a new one" }]);
}

/** A system's error as a problem that the operator can mend. */
function explained<Result>(file: string, what: "read" | "written", work: (file: string) => Result): Result {
  try {
    return work(file);
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === undefined) throw thrown;
    const message = `the token cannot be ${what} (${code}); let the gateway's user use its folder, or write a config file`;
    throw new ConfigError([{ path: file, message }]);
  }
}
