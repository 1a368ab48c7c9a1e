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
import { dayMs } from "./deletions.ts";
import type { FoundSession, UnusedSession } from "./reads.ts";
import { toTurn } from "./rows.ts";

/** How many turns are read, or removed, at once. */
const stepTurns = 50;
/** How many sessions one step makes invisible. */
const stepSessions = 100;

export function createOperator(access: Access): Omit<Operator, "check"> {
  const { read, write, scrub, secrets, loadTexts } = access;

  /** At most one session an owner, of the archive's or of our own. */
  async function listUnder({ hint, owner }: HintWanted): Promise<readonly SessionSummary[]> {
    const owners = owner === undefined ? await read("owners", undefined) : [owner];
    const ids = await Promise.all(owners.map((each) => secrets.sessionsOf(each, hint)));
    const names = ids.flat().map(toName);
    return (await read("summaries", { names })).toSorted((one, other) => other.updatedAt - one.updatedAt);
  }

  return {
    async listSessions({ owner, hint, after, limit }) {
      if (hint !== undefined) return toPage(await listUnder({ hint, owner }), limit);
      const name = after === undefined ? undefined : toName(after);
      const found = await read("sessions", { owner, after: name, limit: limit + 1 });
      return toPage(found ?? unknown(after), limit);
    },
    readSession: find,
    async *readTurns({ id }) {
      const { turns } = (await read("sessionToExport", { id: toNumber(toName(id)) })) ?? { turns: [] };
      for (let at = 0; at < turns.length; at += stepTurns) {
        const rows = await read("turns", { turns: turns.slice(at, at + stepTurns) });
        const readText = await loadTexts(rows);
        for (const row of rows) {
          // What was deleted and holds the tree together says nothing.
          if (row.told !== "") yield { ...toTurn(row, readText), parent: row.parent ?? undefined };
        }
      }
    },
    async erase(id, moment, now) {
      const { name, isHidden } = await find(id);
      if (!(await write("dropSession", { name, moment, at: now }))) unknown(id);
      const turns = await removeDoomed(access);
      return finish({ id, type: isHidden ? "thread" : "session", turns });
    },
    async eraseHint({ hint, owner, owners = [] }, moment, now) {
      const whose = owner === undefined ? [...new Set([...(await read("allOwners", undefined)), ...owners])] : [owner];
      const ids = await Promise.all(whose.map((each) => secrets.sessionsOf(each, hint)));
      const persons = await Promise.all(whose.map((each) => secrets.personsOf(each, hint)));
      const erased: Erased[] = [];
      for (const id of ids.flat()) {
        if (!(await write("dropSession", { name: toName(id), moment, at: now }))) continue;
        erased.push({ id, type: "session", turns: await removeDoomed(access) });
      }
      for (const name of persons.flat()) await write("markErased", { name, moment, at: now });
      await write("awaitCommits", undefined);
      for (const person of persons.flat().map(toNumber)) {
        for (let keys: readonly string[] | undefined; keys?.length !== 0;) {
          keys = await write("takeOutPerson", { person });
          erased.push(...keys.map((key): Erased => ({ id: `resp_${key}`, type: "turn", turns: 1 })));
        }
      }
      return erased.length === 0 ? erased : finish(erased);
    },
    /** What is deleted before its line is written is not in it. */
    async *exportLines(ids) {
      const wanted = ids && (await Promise.all(ids.map(find))).map(({ name }) => toNumber(name));
      yield await read("archiveHead", undefined);
      for (const id of wanted ?? (await read("sessionIds", undefined))) {
        const { line, turns } = (await read("sessionToExport", { id })) ?? { line: "", turns: [] };
        yield line;
        for (const n of turns) yield (await read("turnLine", { n })) ?? "";
      }
      yield `${JSON.stringify({ type: "end" })}\n`;
    },
    importLines: (bytes) => importLines(access, bytes),
    prune: (rules, now) => prune(access, rules, now),
    hasUnfinishedErasure: access.hasUnfinishedErasure,
  };

  /** A session, or the hidden one of a turn. */
  async function find(id: string): Promise<FoundSession> {
    const isSession = id.startsWith("conv_");
    const found = isSession ? read("session", { name: toName(id) }) : read("sessionAround", { key: keyOf(id) });
    return (await found) ?? unknown(id);
  }

  /** Gone from the raw files, with its space. */
  async function finish<Told>(erased: Told): Promise<Told> {
    await scrub(true);
    return erased;
  }
}

/** What is no longer kept goes, in transactions so small that no turn waits for them. */
async function prune(access: Access, rules: PruneRules, now: number): Promise<Pruned> {
  const { read, write, scrub } = access;
  const { idleBefore, maxTurnsPerThread, maxSessionsPerOwner, recordsBefore: keysBefore = 0 } = rules;
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
  await repeat(() => write("expire", { keysBefore, logsBefore: now - dayMs }));
  await scrub(true);
  return { sessions, turns };
}

/** An archive may be larger than memory, and its sender slow: it waits in a file of its own until all of it is there. */
async function importLines({ write, secrets }: Access, bytes: AsyncIterable<Uint8Array>): Promise<Imported> {
  const folder = await mkdtemp(join(tmpdir(), "portico-import-"));
  try {
    const path = join(folder, "archive");
    await writeFile(path, bytes, { mode: 0o600 });
    const imported = await write("importLines", { path });
    await secrets.renew();
    return imported;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function toPage(found: readonly SessionSummary[], limit: number): Page<SessionSummary> {
  return { entries: found.slice(0, limit), hasMore: found.length > limit };
}

const toName = (id: string): string => id.slice("conv_".length);

function unknown(id: string | undefined): never {
  throw new GatewayError("not_found", `There is no session '${id}', and no turn with that id outside of sessions.`);
}
