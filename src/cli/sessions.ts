/** `portico sessions …`: what is stored, read and changed beside a gateway that may run on it. */
import { createReadStream, createWriteStream, existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Config, SessionsConfig } from "../config/config.ts";
import { codeOf } from "../config/problem.ts";
import type { Content, Item } from "../core/item.ts";
import type { SessionRecord, SessionSummary, TurnRecord } from "../core/store.ts";
import { unfinishedErasure } from "../http/deletion.ts";
import { createKeys } from "../ids.ts";
import { fileOf, openCold } from "../store/open.ts";
import type { ColdStore } from "../store/store.ts";
import { type Arguments, type Command, CommandError, type Group, UsageError } from "./command.ts";
import { complain, print, toLine, toPlain } from "./output.ts";
import { isHeld } from "./gateway.ts";
import { configOption, readSettings } from "./settings.ts";

/** How sessions are found without their ids. */
const hintOptions = {
  user: { value: "NAME", summary: "The sessions of this `user`." },
  hint: { value: "HINT", summary: "The sessions under this hint, e.g. header:X-Session-Id=garden." },
  owner: { value: "NAME", summary: "Only those of this owner: a token's name, or `default`." },
  ...configOption,
};
const maxListed = 10_000;
const idNote =
  "ID is that of a session, as `portico sessions list` and x-portico-session have it, or of a turn outside of sessions.";

const list: Command = {
  summary: "List the sessions, newest activity first.",
  usage: "sessions list [--user NAME | --hint HINT] [--owner NAME] [--json] [--config FILE]",
  options: { ...hintOptions, json: { summary: "As a JSON array." } },
  notes: [`At most ${maxListed} of them.`],
  async run(given) {
    const wanted = { owner: given.options["owner"], hint: readHint(given), limit: maxListed };
    const { entries } = await withStore(given, (store) => store.listSessions(wanted));
    if (given.options["json"] !== undefined) print(JSON.stringify(entries, undefined, 2));
    else for (const entry of entries) print(describeEntry(entry));
    return 0;
  },
};

const show: Command = {
  summary: "Show what was said in a session, with its branches.",
  usage: "sessions show (ID | --user NAME | --hint HINT) [--owner NAME] [--json] [--config FILE]",
  options: { ...hintOptions, json: { summary: "As JSON, a session a line." } },
  maxPositionals: 1,
  notes: [idNote],
  async run(given) {
    const find = toFinder(given);
    await withStore(given, async (store) => {
      for (const id of await find(store)) {
        const session = await store.readSession(id);
        const turns = await Array.fromAsync(store.readTurns(session));
        const isJson = given.options["json"] !== undefined;
        print(isJson ? JSON.stringify({ ...session, turns }) : describeSession(session, turns));
      }
    });
    return 0;
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
    const { out } = given.options;
    const isAll = given.positionals.length === 0 && readHint(given) === undefined;
    const find = isAll ? undefined : toFinder(given);
    await withStore(given, async (store) => {
      const archive = Readable.from(store.exportLines(await find?.(store)));
      if (out === undefined) await pipeline(archive, process.stdout, { end: false });
      else await writeNew(resolve(out), archive);
    });
    return 0;
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
    const take = (store: ColdStore) => store.importLines(name === "-" ? process.stdin : createReadStream(name));
    tell("Imported", await withStore(given, take, true));
    return 0;
  },
};

const remove: Command = {
  summary: "Delete sessions for good.",
  usage: "sessions delete (ID… | --user NAME | --hint HINT) [--owner NAME] [--config FILE]",
  options: hintOptions,
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: [
    idNote,
    "With a turn outside of sessions its whole thread goes. Only an archive brings back what is deleted.",
    "--user also deletes what was said with this `user` in sessions that a header or an id named.",
    "A turn that runs in a deleted session is not kept.",
  ],
  async run(given) {
    const hint = readHint(given);
    const { positionals: ids, options } = given;
    if (hint === undefined && ids.length === 0) throw nothingNamed();
    await withStore(given, async (store, _rules, { http }) => {
      const now = Date.now();
      const moment = createKeys(() => now)();
      // They may have turns running, and nothing stored yet.
      const owners = http.tokens.map(({ owner }) => owner);
      const wanted = { hint: hint ?? "", owner: options["owner"], owners };
      const erased =
        hint === undefined
          ? await Array.fromAsync(ids, (id) => store.erase(id, moment, now))
          : await store.eraseHint(wanted, moment, now);
      for (const { id, type, turns } of erased)
        print(type === "turn" ? `Deleted the turn ${id}.` : `Deleted ${id}, with ${count(turns, "turn")}.`);
      warn(store);
      if (erased.length === 0) throw noSession();
    });
    return 0;
  },
};

const prune: Command = {
  summary: "Apply the configured retention now.",
  usage: "sessions prune [--config FILE]",
  options: configOption,
  notes: [
    "A running gateway does so by itself, by its own configuration. It alone knows which turns run, so where one runs on the same file, this is refused: send it POST /operator/prune.",
  ],
  async run(given) {
    await withStore(given, async (store, { ttlMs, ...rules }, config) => {
      if (fileOf(config.store) !== undefined && isHeld(config.store)) throw new CommandError(prunesItself);
      const now = Date.now();
      tell("Deleted", await store.prune({ ...rules, idleBefore: ttlMs === undefined ? undefined : now - ttlMs }, now));
      warn(store);
    });
    return 0;
  },
};

export const sessions: Group = {
  summary: "List, show, export, import, delete or prune stored sessions.",
  commands: { list, show, export: exportSessions, import: importSessions, delete: remove, prune },
};

function tell(done: string, { sessions, turns }: { readonly sessions: number; readonly turns: number }): void {
  print(`${done} ${count(sessions, "session")} and ${count(turns, "turn")}.`);
}

/** This process exits while the other program still reads the file. */
function warn(store: ColdStore): void {
  if (!store.hasUnfinishedErasure()) return;
  complain(`warning: ${unfinishedErasure}; a running gateway then removes it, or the next one that is started`);
}

/** Only an import makes a store. */
async function withStore<Result>(
  { options }: Arguments,
  use: (store: ColdStore, rules: SessionsConfig, config: Config) => Promise<Result>,
  makes = false,
): Promise<Result> {
  const { config } = await readSettings(options);
  const file = fileOf(config.store);
  if (!makes && file !== undefined && !existsSync(file)) throw new CommandError(`There is no store ${file} yet.`);
  const store = await openCold(config.store);
  return use(store, config.sessions, config).finally(() => store.close());
}

/** The hint as it is stored, from `--user ann` or `--hint header:X-Session-Id=garden`. */
function readHint({ options: { user, hint }, positionals: [id] }: Arguments): string | undefined {
  const given = [id, user, hint].filter((each) => each !== undefined);
  if (given.length > 1) throw new UsageError("Only one of ID, --user and --hint can be used.");
  if (user !== undefined) return `user:${user}`;
  if (hint === undefined) return undefined;
  const [, name, value] = /^(user|header:[^=\s]+)=(.+)$/s.exec(hint) ?? [];
  if (name !== undefined) return `${name.toLowerCase()}:${value}`;
  throw new UsageError("The option '--hint' needs a hint such as header:X-Session-Id=garden.");
}

/** Finds what is named by its id or a hint. */
function toFinder(given: Arguments): (store: ColdStore) => Promise<readonly string[]> {
  const hint = readHint(given);
  const { positionals: ids, options } = given;
  if (hint === undefined && ids.length === 0) throw nothingNamed();
  return async (store) => {
    if (hint === undefined) return ids;
    const { entries } = await store.listSessions({ hint, owner: options["owner"], limit: maxListed });
    if (entries.length === 0) throw noSession();
    return entries.map(({ id }) => id);
  };
}

const nothingNamed = (): UsageError => new UsageError("An ID, --user or --hint is missing.");
const noSession = (): CommandError => new CommandError("There is no session under this hint.");
const prunesItself =
  "A gateway runs on this store, and prunes it every hour. To have it done now, send the gateway POST /operator/prune.";

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

/** `1 turn`, `2 turns` */
function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** In the order: id, owner, turns, when it was made and used last, its first words. */
function describeEntry({ id, owner, turns, createdAt, updatedAt, beginning = "" }: SessionSummary): string {
  return toLine([id, owner, count(turns, "turn"), toTime(createdAt), toTime(updatedAt), beginning].join("  "));
}

/** Turn by turn; where a branch leaves another turn than the one above, that is said. */
function describeSession(session: SessionRecord, turns: readonly TurnRecord[]): string {
  const { id, owner, createdAt, updatedAt, metadata, tip } = session;
  const times = `created ${toTime(createdAt)}, last activity ${toTime(updatedAt)}`;
  const lines = [
    `Session ${id} of ${toLine(owner)}: ${count(turns.length, "turn")}, ${times}`,
    ...Object.entries(metadata).map(([key, value]) => toLine(`${key}: ${value}`)),
  ];
  for (const [index, turn] of turns.entries()) {
    const above = turns[index - 1]?.key;
    if (turn.parent !== above) lines.push("", `== Behind ${turn.parent ?? "nothing"}`);
    const status = turn.told.status === "completed" ? "" : `, ${turn.told.status}`;
    const mark = turn.key === tip ? ", the session continues here" : "";
    lines.push("", `-- ${turn.key} (${toTime(turn.createdAt)}, ${toLine(turn.model)}${status}${mark})`);
    for (const item of [...turn.input, ...turn.answer]) {
      const [speaker, text] = describeItem(item);
      lines.push(`  ${speaker}: ${toPlain(text).replaceAll("\n", "\n    ")}`);
    }
  }
  return lines.join("\n");
}

/** `2026-02-03 04:05:06Z` */
function toTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

function describeItem(item: Item): readonly [speaker: string, text: string] {
  return item.type === "message" ? [item.role, describeContent(item.content)] : [item.type, JSON.stringify(item)];
}

function describeContent(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => ("text" in part ? part.text : `[${part.type}]`)).join("\n");
}
