/** The operator's view of the SQLite store: lists its sessions, and exports its contents page by page. */
import { setImmediate as letOthersGo } from "node:timers/promises";
import type { Archive, ArchiveRecord, SessionPage, SessionSummary } from "../../core/store.ts";
import { noSession } from "../refusals.ts";
import type { Access } from "./access.ts";
import { createSessionless, toShortInput, toSummary } from "./sessionless.ts";
import { type TurnRow, toTurn, turnColumns } from "../row.ts";
import { isSaid, isVisible } from "./search.ts";
import { type Activity, activityColumns, byTime, createFindPage } from "./pages.ts";
import type { Statement } from "./statement.ts";
import { listOwners } from "./surplus.ts";
import { createExported } from "./exported.ts";

export function createArchive(access: Access): Omit<Archive, "importRecords"> {
  const { read } = access;
  const { listSessionless, isSessionless, turnsAround } = createSessionless(access);
  const statements = prepareArchive(access);
  const findPage = createFindPage(access, "newest");

  /**
   * Row numbers bound what is read, not a transaction: with a slow reader, that would keep deleted data in the log, and
   * the log from restarting. But SQLite reuses the largest numbers once their rows are gone, so the row under a number
   * is exported only if it fits what was exported before.
   */
  async function* exportRecords(wanted?: string): AsyncGenerator<ArchiveRecord> {
    const lastSession = readNumber(statements.lastSession);
    const isOutside = wanted !== undefined && isSessionless(wanted);
    const isKnown = wanted === undefined || isOutside || read(() => statements.readSession.get(wanted)) !== undefined;
    if (!isKnown) throw noSession(wanted);
    const sealKeys = [...readKeys(statements.findSeal), ...readKeys(statements.findForeignSeals)];
    yield { type: "store", hintKey: toBase64(read(access.readHintKey)), sealKeys };
    const told = createExported(access.inMemory);
    try {
      for (const session of isOutside ? [] : readSessions(lastSession, wanted)) {
        told.addSession(session.id);
        yield read(() => toRecord(session));
      }
      // Read after the sessions, so that every exported tip is among the turns.
      const lastTurn = readNumber(statements.lastTurn);
      const around = isOutside ? turnsAround(wanted, lastTurn) : [];
      const outside = wanted === undefined ? "all" : new Set(around.map(({ id }) => id));
      for (const { number } of isOutside ? around : numbersOf(lastTurn, wanted)) {
        const row = read(() => statements.readNumbered.get(number)) as TurnRow | undefined;
        if (row !== undefined && told.addTurn(row, outside)) yield { type: "turn", turn: read(() => toTurn(row)) };
      }
    } finally {
      told.close();
    }
  }

  function readSessions(last: number, wanted?: string): Iterable<SessionRow> {
    if (wanted === undefined) return readPages<SessionRow>(statements.readSessions, last);
    return read(() => statements.readSession.all(wanted)) as unknown as SessionRow[];
  }

  /** The row numbers of all turns, or of a session's. */
  function numbersOf(last: number, wanted?: string): Iterable<Numbered> {
    if (wanted === undefined) return readPages<Numbered>(statements.listNumbers, last);
    return read(() => statements.numbersOf.all(wanted, last)) as unknown as Numbered[];
  }

  function readKeys(statement: Statement): readonly string[] {
    return (read(() => statement.all()) as { value: Uint8Array }[]).map(({ value }) => toBase64(value));
  }

  function readNumber(statement: Statement): number {
    return (read(() => statement.get()) as { number: number }).number;
  }

  function* readPages<Row extends Numbered>(statement: Statement, last: number): Generator<Row> {
    let page: readonly Row[];
    for (let after = 0; ; after = page.at(-1)?.number ?? after) {
      page = read(() => statement.all(after, last)) as unknown as Row[];
      if (page.length === 0) return;
      yield* page;
    }
  }

  /** The sessions under a hint: it is hashed with its owner, so each owner is tried. */
  function findNamed(hint: string, { owner, limit }: SessionPage, place: Activity | undefined): readonly Activity[] {
    access.refresh();
    const owners = owner === undefined ? (statements.listOwners.all() as { owner: string }[]) : [{ owner }];
    const found = owners.map((each) => statements.findNamed.get(each.owner, access.hashHint(each.owner, hint)));
    const named = found.filter((row) => row !== undefined) as unknown as Activity[];
    const behind = named.filter((each) => place === undefined || byTime(place, each) < 0);
    return behind.toSorted(byTime).slice(0, limit);
  }

  /** Others can proceed after a few: what was said first in each may be long. */
  async function describeAll(page: readonly Activity[]): Promise<readonly SessionSummary[]> {
    const found: SessionSummary[] = [];
    for (const [index, { id }] of page.entries()) {
      if (index % maxDescribed === maxDescribed - 1) await letOthersGo();
      found.push(...read(() => statements.describe.all(id).map(toSummary)));
    }
    return found;
  }

  return {
    listSessionless,
    async listSessions(wanted) {
      const { hint, after } = wanted;
      const found = after === undefined ? undefined : read(() => statements.findActivity.get(after));
      if (after !== undefined && found === undefined) throw noSession(after);
      const listed: SessionSummary[] = [];
      for (let place = found as unknown as Activity | undefined; ;) {
        const rest = { ...wanted, limit: wanted.limit - listed.length };
        const page = hint === undefined ? await findPage(rest, place) : read(() => findNamed(hint, rest, place));
        const there = await describeAll(page);
        listed.push(...there);
        // Some were deleted meanwhile: a page with fewer would be taken for the last.
        if (there.length === page.length) return listed;
        place = page.at(-1);
      }
    },
    exportRecords,
    async sealKeys() {
      const [own = toBase64(await access.group.add(access.readSealKey))] = readKeys(statements.findSeal);
      return [own, ...readKeys(statements.findForeignSeals)];
    },
  };
}

interface Numbered {
  readonly number: number;
}

const pageSize = 32;

/** How many sessions are described before others can proceed: with the longest inputs, ten milliseconds. */
const maxDescribed = 12;

const sessionColumns = "rowid AS number, id, owner, hint, tip, resends, metadata, created, updated";

interface SessionRow extends Numbered {
  readonly id: string;
  readonly owner: string;
  readonly hint: Uint8Array | null;
  readonly tip: string | null;
  readonly resends: number;
  readonly metadata: string;
  readonly created: number;
  readonly updated: number;
}

function toRecord(row: SessionRow): ArchiveRecord {
  return {
    type: "session",
    id: row.id,
    owner: row.owner,
    hint: row.hint === null ? undefined : toBase64(row.hint),
    tip: row.tip ?? undefined,
    resends: row.resends === 1,
    metadata: JSON.parse(row.metadata),
    createdAt: new Date(row.created),
    updatedAt: new Date(row.updated),
  };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

function prepareArchive({ prepare }: Access) {
  return {
    findSeal: prepare("SELECT value FROM meta WHERE key = 'secret:seal'"),
    findForeignSeals: prepare("SELECT value FROM meta WHERE key GLOB 'foreign_seal:*' ORDER BY key"),
    lastSession: prepare("SELECT coalesce(max(rowid), 0) AS number FROM sessions"),
    lastTurn: prepare("SELECT coalesce(max(rowid), 0) AS number FROM turns"),
    findActivity: prepare(`SELECT ${activityColumns} FROM sessions WHERE id = ? AND deleted = 0`),
    listOwners: prepare(listOwners),
    findNamed: prepare(`SELECT ${activityColumns} FROM sessions WHERE owner = ? AND hint = ? AND deleted = 0`),
    describe: prepare(describe),
    readSessions: prepare(`
      SELECT ${sessionColumns} FROM sessions WHERE rowid > ? AND rowid <= ? AND deleted = 0
      ORDER BY rowid LIMIT ${pageSize}`),
    readSession: prepare(`SELECT ${sessionColumns} FROM sessions WHERE id = ? AND deleted = 0`),
    listNumbers: prepare(`
      SELECT rowid AS number FROM turns WHERE rowid > ? AND rowid <= ? AND ${isVisible}
      ORDER BY rowid LIMIT ${pageSize}`),
    numbersOf: prepare(`
      SELECT rowid AS number FROM turns INDEXED BY turns_by_digest WHERE session = ? AND rowid <= ? AND ${isSaid}
      ORDER BY rowid`),
    readNumbered: prepare(`SELECT ${turnColumns} FROM turns WHERE rowid = ? AND ${isVisible}`, "arrays"),
  };
}

/** This scans only row numbers. */
const firstOf = `SELECT min(rowid) FROM turns INDEXED BY turns_by_digest WHERE turns.session = sessions.id AND ${isSaid}`;

/** How a list shows a session. */
const describe = `
  SELECT id, owner, created, updated, (
    SELECT count(*) FROM turns INDEXED BY turns_by_digest WHERE turns.session = sessions.id AND ${isSaid}) AS turns,
    ${toShortInput(`rowid = (${firstOf})`)} AS input
  FROM sessions WHERE id = ? AND deleted = 0`;
