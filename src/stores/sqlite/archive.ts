/** The operator's view of the SQLite store: lists its sessions, and writes out what it holds page by page. */
import type { StatementSync } from "node:sqlite";
import type { Archive, ArchiveRecord, SessionPage, SessionSummary } from "../../core/store.ts";
import { hasNoSession } from "../refusals.ts";
import type { Ground } from "./ground.ts";
import { maxReadBytes, toBeginning } from "../beginning.ts";
import { type TurnRow, toTurn, turnColumns } from "../row.ts";
import { isThere } from "./search.ts";
import { maxStep, takeWithin, turnBytes } from "./size.ts";

export function createArchive(ground: Ground): Pick<Archive, "listSessions" | "exportRecords" | "foreignSeals"> {
  const { read } = ground;
  const statements = prepareArchive(ground);

  /** What is read is bounded by numbers of rows, not held by a transaction: the store goes on while someone reads slowly. */
  async function* exportRecords(sessionId?: string): AsyncGenerator<ArchiveRecord> {
    const lastSession = readNumber(statements.lastSession);
    const wanted = sessionId ?? null;
    if (wanted !== null && read(() => statements.isSession.get(wanted)) === undefined) throw hasNoSession(wanted);
    const sealKeys = [...readValues(statements.findSeal), ...readValues(statements.findForeignSeals)].map(toBase64);
    yield { type: "store", hintKey: toBase64(read(ground.readHintKey)), sealKeys };
    const sessions = readPages<SessionRow>(statements.readSessions, { last: lastSession, wanted });
    for (const page of sessions) yield* page.map(toRecord);
    // Read after the sessions, so that every tip that was told is among the turns.
    const lastTurn = readNumber(statements.lastTurn);
    if (wanted === null) {
      const range = { last: lastTurn, last_session: lastSession };
      for (const page of readPages<SizedRow>(statements.sizeTurns, range)) yield* readTurns(page);
    } else {
      const numbers = read(() => statements.numbersOf.all(wanted, lastTurn)) as { number: number }[];
      for (let start = 0; start < numbers.length; start += pageSize) {
        const page = toList(numbers.slice(start, start + pageSize));
        yield* readTurns(read(() => statements.sizeNumbered.all(page)) as unknown as SizedRow[]);
      }
    }
  }

  function* readTurns(turns: readonly SizedRow[]): Generator<ArchiveRecord> {
    for (let rest = turns; rest.length > 0;) {
      const { taken } = takeWithin(rest, maxStep);
      const rows = read(() => statements.readNumbered.all(toList(taken))) as unknown as TurnRow[];
      for (const row of rows) yield { type: "turn", turn: toTurn(row) };
      rest = rest.slice(taken.length);
    }
  }

  function readValues(statement: StatementSync): readonly Uint8Array[] {
    return (read(() => statement.all()) as { value: Uint8Array }[]).map(({ value }) => value);
  }

  function readNumber(statement: StatementSync): number {
    return (read(() => statement.get()) as { number: number } | undefined)?.number ?? 0;
  }

  function* readPages<Row extends { readonly number: number }>(
    statement: StatementSync,
    range: Readonly<Record<string, number | string | null>>,
  ): Generator<readonly Row[]> {
    let page: readonly Row[];
    for (let after = 0; ; after = page.at(-1)?.number ?? after) {
      page = read(() => statement.all({ after, ...range })) as unknown as Row[];
      if (page.length === 0) return;
      yield page;
    }
  }

  return {
    async listSessions({ owner, after, limit }: SessionPage) {
      return (
        read(() => {
          const from = after === undefined ? undefined : statements.findActivity.get(after);
          if (after !== undefined && from === undefined) return undefined;
          const { active = atEnd, updated = atEnd, number = atEnd } = from ?? {};
          const list = owner === undefined ? statements.listAll : statements.listOfOwner;
          const range = { active, updated, number, limit };
          return list.all(owner === undefined ? range : { ...range, owner }).map(toSummary);
        }) ?? notListed(after)
      );
    },
    exportRecords,
    async foreignSeals() {
      return readValues(statements.findForeignSeals);
    },
  };
}

function notListed(after: string | undefined): never {
  throw hasNoSession(after ?? "");
}

/** Where a turn stands, and how many bytes it has. */
interface SizedRow {
  readonly number: number;
  readonly bytes: number;
}

const pageSize = 32;
const atEnd = Number.MAX_SAFE_INTEGER;

interface SessionRow {
  readonly number: number;
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

function toList(rows: readonly { readonly number: number }[]): string {
  return JSON.stringify(rows.map(({ number }) => number));
}

interface SummaryRow extends SessionRow {
  readonly turns: number;
  readonly beginning: string | null;
}

function toSummary(row: unknown): SessionSummary {
  const { id, owner, created, updated, turns, beginning } = row as SummaryRow;
  return {
    id,
    owner,
    createdAt: new Date(created),
    updatedAt: new Date(updated),
    turns,
    beginning: toBeginning(beginning),
  };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

function prepareArchive({ database }: Ground) {
  const readNumbered = database.prepare(`
    SELECT ${turnColumns} FROM turns
    WHERE rowid IN (SELECT value FROM json_each(?)) AND ${isThere} ORDER BY rowid`);
  readNumbered.setReturnArrays(true);
  return {
    findSeal: database.prepare("SELECT value FROM meta WHERE key = 'secret:seal'"),
    findForeignSeals: database.prepare("SELECT value FROM meta WHERE key GLOB 'foreign_seal:*' ORDER BY key"),
    lastSession: database.prepare("SELECT coalesce(max(rowid), 0) AS number FROM sessions"),
    lastTurn: database.prepare("SELECT coalesce(max(rowid), 0) AS number FROM turns"),
    isSession: database.prepare("SELECT 1 FROM sessions WHERE id = ? AND deleted = 0"),
    findActivity: database.prepare(
      "SELECT active, updated, rowid AS number FROM sessions WHERE id = ? AND deleted = 0",
    ),
    listAll: database.prepare(toListing("sessions_by_activity", "")),
    listOfOwner: database.prepare(toListing("sessions_by_owner", "AND owner = $owner")),
    readSessions: database.prepare(`
      SELECT rowid AS number, id, owner, hint, tip, resends, metadata, created, updated FROM sessions
      WHERE rowid > $after AND rowid <= $last AND deleted = 0 AND ($wanted IS NULL OR id = $wanted)
      ORDER BY rowid LIMIT ${pageSize}`),
    sizeTurns: database.prepare(`
      SELECT turns.rowid AS number, ${turnBytes} AS bytes FROM turns
      WHERE turns.rowid > $after AND turns.rowid <= $last AND ${isThere} AND (
        session IS NULL OR (SELECT rowid FROM sessions WHERE sessions.id = turns.session) <= $last_session)
      ORDER BY turns.rowid LIMIT ${pageSize}`),
    numbersOf: database.prepare(`
      SELECT rowid AS number FROM turns INDEXED BY turns_by_digest WHERE session = ? AND rowid <= ? ORDER BY rowid`),
    sizeNumbered: database.prepare(`
      SELECT rowid AS number, ${turnBytes} AS bytes FROM turns
      WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid`),
    readNumbered,
  };
}

function toListing(index: string, condition: string): string {
  // Numbers alone are looked through for the first turn, and how long it is stands in its row: little is read.
  const first = `
    SELECT CASE WHEN octet_length(input) < ${maxReadBytes} THEN input END FROM turns WHERE rowid = (
      SELECT min(rowid) FROM turns INDEXED BY turns_by_digest WHERE turns.session = sessions.id)`;
  return `
    SELECT id, owner, created, updated, (
      SELECT count(*) FROM turns INDEXED BY turns_by_digest WHERE turns.session = sessions.id) AS turns, (
      SELECT substr(CASE json_type(item.value, '$.content') WHEN 'text' THEN item.value ->> '$.content' ELSE (
        SELECT part.value ->> '$.text' FROM json_each(item.value, '$.content') AS part
        WHERE part.value ->> '$.type' = 'text' LIMIT 1) END, 1, 500)
      FROM json_each((${first})) AS item WHERE item.value ->> '$.role' = 'user' LIMIT 1) AS beginning
    FROM sessions INDEXED BY ${index}
    WHERE deleted = 0 ${condition} AND active <= $active AND (active, updated, rowid) < ($active, $updated, $number)
    ORDER BY active DESC, updated DESC, rowid DESC LIMIT $limit`;
}
