/** The operator's view of all owners: what is listed, shown and erased, moved to another store, and kept for how long. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { keyOf } from "../core/item.ts";
import type {
  Erased,
  HintWanted,
  Imported,
  Operator,
  Page,
  Pruned,
  PruneRules,
  SessionSummary,
} from "../core/store.ts";
import { type Access, removeDoomed, repeat } from "./access.ts";
import { toNumber } from "./cold.ts";
import type { FoundSession, UnusedSession } from "./reads.ts";
import { toTurn } from "./rows.ts";

/** How many turns are read, or removed, at once. */
const stepTurns = 50;
/** How many sessions one step makes invisible. */
const stepSessions = 100;
/** How many turns are asked for at once; how much of them comes is decided where they are read. */
const stepLines = 200;

export function createOperator(access: Access): Omit<Operator, "check"> {
  const { read, write, emptyLog, secrets, readText } = access;

  /** At most one session an owner, of the archive's or of our own. */
  async function listUnder({ hint, owner }: HintWanted): Promise<readonly SessionSummary[]> {
    const owners = owner === undefined ? await read("owners", undefined) : [owner];
    const names = owners.flatMap((each) => secrets.sessionsOf(each, hint)).map(toName);
    return (await read("summaries", { names })).toSorted((one, other) => other.updatedAt - one.updatedAt);
  }

  return {
    async listSessions({ owner, hint, after, limit }) {
      if (hint !== undefined) return toPage(await listUnder({ hint, owner }), limit);
      const name = after === undefined ? undefined : toName(after);
      const found = await read("sessions", { owner, after: name, limit: limit + 1 });
      if (found === undefined) throw notFound(`The session store has no session '${after}'; it may have been deleted.`);
      return toPage(found, limit);
    },
    async listOutside({ owner, after, limit }) {
      const key = after === undefined ? undefined : keyOf(after);
      return toPage(await read("hiddenSessions", { owner, after: key, limit: limit + 1 }), limit);
    },
    readSession: async (id) => (await find(id)).session,
    async *readTurns({ id }) {
      const { turns } = (await read("sessionToExport", { id: toNumber(toName(id)) })) ?? { turns: [] };
      for (let at = 0; at < turns.length; at += stepTurns) {
        for (const row of await read("turns", { turns: turns.slice(at, at + stepTurns) })) {
          // What was deleted and holds the tree together says nothing.
          if (row.told !== "") yield { ...toTurn(row, readText), parent: row.parent ?? undefined };
        }
      }
    },
    async erase(id, moment, now) {
      const { session, turn } = await find(id);
      const erasure = { name: session.name, moment, at: now };
      if (turn !== undefined) {
        const turns = await repeat(() => write("removeBelow", { ...erasure, turn }));
        return finish({ id, type: "thread", turns });
      }
      if (!(await write("dropSession", erasure))) throw notFound(`Session with id '${id}' not found.`);
      const turns = await removeDoomed(access);
      return finish({ id, type: session.isHidden ? "thread" : "session", turns });
    },
    async eraseHint({ hint, owner, owners = [] }, moment, now) {
      const whose = owner === undefined ? new Set([...(await read("owners", undefined)), ...owners]) : [owner];
      const ids = [...whose].flatMap((each) => secrets.sessionsOf(each, hint));
      const erased: Erased[] = [];
      for (const id of ids) {
        if (!(await write("dropSession", { name: toName(id), moment, at: now }))) continue;
        erased.push({ id, type: "session", turns: await removeDoomed(access) });
      }
      return erased.length === 0 ? erased : finish(erased);
    },
    /** What is deleted before its line is written is not in it. */
    async *exportLines(ids) {
      const wanted = ids && (await Promise.all(ids.map(find))).map(({ session: { name } }) => toNumber(name));
      yield await read("archiveHead", undefined);
      for (const id of wanted ?? (await read("sessionIds", undefined))) {
        const { line, turns } = (await read("sessionToExport", { id })) ?? { line: "", turns: [] };
        if (line !== "") yield line;
        for (let at = 0; at < turns.length;) {
          const { text, taken } = await read("turnLines", { turns: turns.slice(at, at + stepLines) });
          if (text !== "") yield text;
          at += taken;
        }
      }
      yield `${JSON.stringify({ type: "end" })}\n`;
    },
    importLines: (bytes) => importLines(access, bytes),
    prune: (rules) => prune(access, rules),
  };

  /** A session, or what is around a turn that is in a hidden one. */
  async function find(id: string): Promise<{ readonly session: FoundSession; readonly turn?: number | undefined }> {
    if (id.startsWith("conv_")) {
      const session = await read("session", { name: toName(id) });
      if (session !== undefined) return { session };
    } else {
      const found = await read("sessionAround", { key: keyOf(id) });
      if (found?.session.isHidden === true) return found;
      if (found !== undefined)
        throw notFound(`'${id}' is a turn of the session '${found.session.id}'. Use the session's id instead.`);
    }
    throw notFound(`There is no session '${id}', and no turn with that id outside of sessions.`);
  }

  /** Gone from the raw files, with its space. */
  async function finish<Told>(erased: Told): Promise<Told> {
    await repeat(() => write("giveBack", undefined));
    await emptyLog();
    return erased;
  }
}

/** What is no longer kept goes, in transactions so small that no turn waits for them. */
async function prune(access: Access, rules: PruneRules): Promise<Pruned> {
  const { read, write, emptyLog } = access;
  const { idleBefore, maxTurnsPerThread, maxSessionsPerOwner, recordsBefore } = rules;
  const inUse = (): readonly number[] => [...(rules.inUse?.() ?? [])].map(({ turn }) => turn);
  let [sessions, turns] = [0, 0];

  async function dropAll(found: readonly UnusedSession[]): Promise<void> {
    for (let start = 0; start < found.length; start += stepSessions) {
      const part = found.slice(start, start + stepSessions);
      sessions += await write("dropUnused", { sessions: part, inUse: inUse() });
    }
    turns += await removeDoomed(access);
  }

  turns += await removeDoomed(access);
  if (idleBefore !== undefined) {
    turns += await repeat(() => write("age", { before: idleBefore, inUse: inUse() }));
    await dropAll(await read("idleSessions", { before: idleBefore }));
  }
  if (maxTurnsPerThread !== undefined) turns += await repeat(() => write("shorten", { most: maxTurnsPerThread }));
  if (maxSessionsPerOwner !== undefined) await dropAll(await read("surplus", { most: maxSessionsPerOwner }));
  if (recordsBefore !== undefined) await repeat(() => write("expire", { before: recordsBefore }));
  await repeat(() => write("giveBack", undefined));
  await emptyLog();
  return { sessions, turns };
}

/** An archive may be larger than memory, and its sender slow: it waits in a file of its own until all of it is there. */
async function importLines({ write, secrets }: Access, bytes: AsyncIterable<Uint8Array>): Promise<Imported> {
  const folder = await mkdtemp(join(tmpdir(), "portico-import-"));
  try {
    const path = join(folder, "archive");
    await writeFile(path, bytes, { mode: 0o600 });
    const imported = await write("importLines", { path });
    secrets.renew();
    return imported;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function toPage(found: readonly SessionSummary[], limit: number): Page<SessionSummary> {
  return { entries: found.slice(0, limit), hasMore: found.length > limit };
}

const toName = (id: string): string => id.slice("conv_".length);

function notFound(message: string): GatewayError {
  return new GatewayError("not_found", message);
}
