/** `portico sessions …`: what is stored, read and changed beside a gateway that may run on it. */
import { createReadStream, createWriteStream, existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SessionsConfig } from "../config/config.ts";
import { codeOf } from "../config/problem.ts";
import type { PruneRules } from "../core/store.ts";
import { createKeys } from "../ids.ts";
import { type Arguments, type Command, CommandError, type Group, UsageError } from "./command.ts";
import { type ColdStore, openCold } from "./house.ts";
import { complain, print } from "./output.ts";
import { count, describeSession, toTable } from "./session-text.ts";
import { configOption, readSettings } from "./settings.ts";

/** How sessions are found without their ids. */
const hintOptions = {
  user: { value: "NAME", summary: "The sessions of this `user`." },
  hint: { value: "HINT", summary: "The sessions under this hint, e.g. header:X-Session-Id=garden." },
  owner: { value: "NAME", summary: "Only those of this owner: a token's name, or `default`." },
  ...configOption,
};
const idNote =
  "ID is one of `portico sessions list`, which answers have in x-portico-session, or that of a turn outside of sessions.";

const list: Command = {
  summary: "List the sessions, newest activity first.",
  usage:
    "sessions list [--user NAME | --hint HINT | --outside] [--owner NAME] [--limit NUMBER] [--after ID] [--json] [--config FILE]",
  options: {
    ...hintOptions,
    outside: { summary: "What is outside of sessions instead, by its first turn." },
    limit: { value: "NUMBER", summary: "At most this many. Default: 50." },
    after: { value: "ID", summary: "Only those that come after this one in the list." },
    json: { summary: "As a JSON array." },
  },
  notes: [],
  async run(given) {
    const { owner, after, limit: wanted = "50" } = given.options;
    const limit = Number(wanted);
    if (!Number.isInteger(limit) || limit < 1) throw new UsageError("The option '--limit' needs a number from 1 up.");
    const hint = readHint(given);
    const isJson = given.flags.has("json");
    const page = await withStore(given, "read", async (store) =>
      given.flags.has("outside")
        ? store.listOutside({ owner, after, limit })
        : store.listSessions({ owner, after, limit, hint }),
    );
    const { entries = [], hasMore = false } = page ?? {};
    if (isJson) print(JSON.stringify(entries, undefined, 2));
    else if (entries.length === 0) complain("There is none.");
    else print(toTable(entries));
    if (hasMore) complain(`There are more: add --after ${entries.at(-1)?.id}`);
    return 0;
  },
};

const show: Command = {
  summary: "Show what was said in a session, with its branches.",
  usage: "sessions show (ID | --user NAME | --hint HINT) [--owner NAME] [--json] [--config FILE]",
  options: { ...hintOptions, json: { summary: "As JSON; with a hint, as an array." } },
  maxPositionals: 1,
  notes: [idNote],
  async run(given) {
    checkNamed(given);
    return withStore(given, "need", async (store) => {
      const shown: object[] = [];
      for (const id of await findIds(store, given)) {
        const session = await store.readSession(id);
        const turns = await Array.fromAsync(store.readTurns(session));
        if (given.flags.has("json")) shown.push({ ...session, turns });
        else print(describeSession(session, turns));
      }
      if (given.flags.has("json")) print(JSON.stringify(given.positionals.length > 0 ? shown[0] : shown, undefined, 2));
      return 0;
    });
  },
};

const exportSessions: Command = {
  summary: "Write everything, or some sessions, as JSON Lines.",
  usage: "sessions export [ID | --user NAME | --hint HINT] [--owner NAME] [--out FILE] [--config FILE]",
  options: {
    ...hintOptions,
    out: { value: "FILE", summary: "A new file, readable only by you, instead of standard output." },
  },
  maxPositionals: 1,
  notes: [idNote, "An archive holds what was said, and the store's keys: keep it as secret as the store."],
  async run(given) {
    const isAll = given.positionals.length === 0 && readHint(given) === undefined;
    const { out } = given.options;
    return withStore(given, "need", async (store) => {
      const lines = store.exportLines(isAll ? undefined : await findIds(store, given));
      const source = Readable.from(withEnds(lines));
      if (out === undefined) await pipeline(source, process.stdout, { end: false });
      else await writeNew(resolve(out), source);
      return 0;
    });
  },
};

const importSessions: Command = {
  summary: "Import what was exported: all of it, or nothing.",
  usage: "sessions import [FILE] [--config FILE]",
  options: configOption,
  maxPositionals: 1,
  notes: ["Reads standard input if FILE is absent or `-`. What is there already stays as it is."],
  async run(given) {
    const [name = "-"] = given.positionals;
    if (name !== "-" && !existsSync(name)) throw new CommandError(`There is no ${resolve(name)}.`);
    return withStore(given, "make", async (store) => {
      const imported = await store.importLines(name === "-" ? process.stdin : createReadStream(name));
      print(`Imported ${count(imported.sessions, "session")} and ${count(imported.turns, "turn")}.`);
      return 0;
    });
  },
};

const remove: Command = {
  summary: "Delete sessions for good.",
  usage: "sessions delete (ID… | --user NAME | --hint HINT) [--owner NAME] [--config FILE]",
  options: hintOptions,
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: [
    idNote,
    "With a turn outside of sessions, everything behind it goes. Only an archive can bring back what is deleted.",
  ],
  async run(given) {
    checkNamed(given);
    return withStore(given, "need", async (store) => {
      const now = Date.now();
      const moment = createKeys(() => now)();
      const hint = readHint(given);
      const { owner } = given.options;
      const gone = hint === undefined ? [] : [...(await store.eraseHint({ hint, owner }, moment, now))];
      for (const id of given.positionals) gone.push(await store.erase(id, moment, now));
      for (const { id, turns } of gone) print(`Deleted ${id}, with ${count(turns, "turn")}.`);
      if (gone.length === 0) throw nothingFound();
      return 0;
    });
  },
};

const prune: Command = {
  summary: "Apply the configured retention now.",
  usage: "sessions prune [--config FILE]",
  options: configOption,
  notes: ["A running gateway does so by itself, by its own configuration."],
  async run(given) {
    return withStore(given, "need", async (store, config) => {
      const now = Date.now();
      const { sessions, turns } = await store.prune(toRules(config, now), now);
      print(`Deleted ${count(sessions, "session")} and ${count(turns, "turn")}.`);
      return 0;
    });
  },
};

export const sessions: Group = {
  summary: "List, show, export, import, delete or prune stored sessions.",
  commands: { list, show, export: exportSessions, import: importSessions, delete: remove, prune },
};

/** What looks at a store makes none: where there is none, nothing is read, and what needs one fails. */
async function withStore<Result>(
  given: Arguments,
  need: "read",
  use: (store: ColdStore, config: SessionsConfig) => Promise<Result>,
): Promise<Result | undefined>;
async function withStore<Result>(
  given: Arguments,
  need: "need" | "make",
  use: (store: ColdStore, config: SessionsConfig) => Promise<Result>,
): Promise<Result>;
async function withStore<Result>(
  { options }: Arguments,
  need: "read" | "need" | "make",
  use: (store: ColdStore, config: SessionsConfig) => Promise<Result>,
): Promise<Result | undefined> {
  const { config } = await readSettings(options);
  if (need !== "make" && !existsSync(config.storeFile)) {
    if (need === "read") return undefined;
    throw new CommandError(`There is no store ${config.storeFile} yet.`);
  }
  const store = await openCold(config.storeFile);
  try {
    return await use(store, config.sessions);
  } finally {
    await store.close();
  }
}

/** The hint as it is stored, from `--user ann` or `--hint header:X-Session-Id=garden`. */
function readHint({ options: { user, hint } }: Arguments): string | undefined {
  if (user !== undefined && hint !== undefined) throw new UsageError("--user and --hint cannot be used together.");
  if (user !== undefined) return `user:${user}`;
  if (hint === undefined) return undefined;
  const [, name, value] = /^(user|header:[^=\s]+)=(.+)$/s.exec(hint) ?? [];
  if (name !== undefined) return `${name.toLowerCase()}:${value}`;
  throw new UsageError("The option '--hint' needs a hint such as header:X-Session-Id=garden.");
}

function checkNamed(given: Arguments): void {
  const hint = readHint(given);
  if (hint !== undefined && given.positionals.length > 0)
    throw new UsageError("An ID and a hint cannot be used together.");
  if (hint === undefined && given.positionals.length === 0) throw new UsageError("An ID, --user or --hint is missing.");
}

async function findIds(store: ColdStore, given: Arguments): Promise<readonly string[]> {
  const hint = readHint(given);
  if (hint === undefined) return given.positionals;
  const { entries } = await store.listSessions({ hint, owner: given.options["owner"], limit: 10_000 });
  if (entries.length === 0) throw nothingFound();
  return entries.map(({ id }) => id);
}

const nothingFound = () => new CommandError("There is no session under this hint.");

async function* withEnds(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield line.endsWith("\n") ? line : `${line}\n`;
}

/** For its owner alone; what was cut short is removed. */
async function writeNew(file: string, source: Readable): Promise<void> {
  try {
    await pipeline(source, createWriteStream(file, { flags: "wx", mode: 0o600 }));
    print(`Wrote ${file}, readable only by you.`);
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") throw new CommandError(`${file} exists and was left as it is; name another file.`);
    rmSync(file, { force: true });
    throw thrown;
  }
}

function toRules({ ttlMs, maxTurnsPerThread, maxSessionsPerOwner }: SessionsConfig, now: number): PruneRules {
  return { maxTurnsPerThread, maxSessionsPerOwner, idleBefore: ttlMs === undefined ? undefined : now - ttlMs };
}
