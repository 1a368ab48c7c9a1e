/** The operator's view of the SQLite store: lists its sessions, and writes out what it holds page by page. */
import type { StatementSync } from "node:sqlite";
import type { Archive, ArchiveRecord, SessionPage, SessionSummary } from "../../core/store.ts";
import { hasNoSession } from "../refusals.ts";
import type { Ground } from "./ground.ts";
import { toBeginning } from "../beginning.ts";
import { type TurnRow, toTurn, turnColumns } from "../row.ts";
import { isThere } from "./search.ts";

export function createArchive(ground: Ground): Pick<Archive, "listSessions" | "exportRecords"> {
  const { read } = ground;
  const statements = prepareArchive(ground);

  /** What is read is bounded by numbers of rows, not held by a transaction: the store goes on while someone reads slowly. */
  async function* exportRecords(sessionId?: string): AsyncGenerator<ArchiveRecord> {
    const lastSession = readNumber(statements.lastSession);
    const wanted = sessionId ?? null;
    if (wanted !== null && read(() => statements.isSession.get(wanted)) === undefined) throw hasNoSession(wanted);
    yield { type: "store", hintKey: toBase64(read(ground.readHintKey)) };
    yield* readPages((after) => {
      const rows = statements.readSessions.all({ after, last: lastSession, wanted }) as unknown as SessionRow[];
      return rows.map((row) => [row.number, toRecord(row)]);
    });
    // Read after the sessions, so that every tip that was told is among the turns.
    const lastTurn = readNumber(statements.lastTurn);
    if (wanted === null) {
      const range = { last: lastTurn, last_session: lastSession };
      yield* readPages((after) => toRecords(statements.readTurns.all({ after, ...range })));
    } else {
      const numbers = read(() => statements.numbersOf.all(wanted, lastTurn)) as { number: number }[];
      for (let start = 0; start < numbers.length; start += pageSize) {
        const page = numbers.slice(start, start + pageSize).map(({ number }) => number);
        for (const [, record] of toRecords(read(() => statements.readNumbered.all(JSON.stringify(page))))) yield record;
      }
    }
  }

  function readNumber(statement: StatementSync): number {
    return (read(() => statement.get()) as { number: number } | undefined)?.number ?? 0;
  }

  function* readPages(readAfter: (number: number) => readonly Numbered[]): Generator<ArchiveRecord> {
    let last = 0;
    for (;;) {
      const after = last;
      const page = read(() => readAfter(after));
      for (const [number, record] of page) {
        yield record;
        last = number;
      }
      if (page.length === 0) return;
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
  };
}

function notListed(after: string | undefined): never {
  throw hasNoSession(after ?? "");
}

type Numbered = readonly [number: number, record: ArchiveRecord];

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

function toRecords(rows: unknown): readonly Numbered[] {
  return (rows as [...TurnRow, number][]).map((row) => {
    const [turn, number] = [row.slice(0, -1) as TurnRow, Number(row.at(-1))];
    return [number, { type: "turn", turn: toTurn(turn) }];
  });
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
  const prepareRows = (query: string) => {
    const statement = database.prepare(query);
    statement.setReturnArrays(true);
    return statement;
  };
  const columns = turnColumns.replaceAll(/\w+/g, "turns.$&");
  return {
    lastSession: database.prepare("SELECT coalesce(max(rowid), 0) AS number FROM sessions"),
    lastTurn: database.prepare("SELECT coalesce(max(rowid), 0) AS number FROM turns"),
    isSession: database.prepare("SELECT 1 FROM sessions WHERE id = ? AND deleted = 0"),
    findActivity: database.prepare(
      "SELECT active, updated, rowid AS number FROM sessions WHERE id = ? AND deleted = 0",
    ),
    listAll: database.prepare(toList("sessions_by_activity", "")),
    listOfOwner: database.prepare(toList("sessions_by_owner", "AND owner = $owner")),
    readSessions: database.prepare(`
      SELECT rowid AS number, id, owner, hint, tip, resends, metadata, created, updated FROM sessions
      WHERE rowid > $after AND rowid <= $last AND deleted = 0 AND ($wanted IS NULL OR id = $wanted)
      ORDER BY rowid LIMIT ${pageSize}`),
    readTurns: prepareRows(`
      SELECT ${columns}, turns.rowid FROM turns
      WHERE turns.rowid > $after AND turns.rowid <= $last AND ${isThere} AND (
        session IS NULL OR (SELECT rowid FROM sessions WHERE sessions.id = turns.session) <= $last_session)
      ORDER BY turns.rowid LIMIT ${pageSize}`),
    numbersOf: database.prepare(`
      SELECT rowid AS number FROM turns INDEXED BY turns_by_digest WHERE session = ? AND rowid <= ? ORDER BY rowid`),
    readNumbered: prepareRows(`
      SELECT ${columns}, turns.rowid FROM turns
      WHERE turns.rowid IN (SELECT value FROM json_each(?)) AND ${isThere} ORDER BY turns.rowid`),
  };
}

/** Of the first question only the beginning is read, as a history that was brought along may be long. */
function toList(index: string, condition: string): string {
  const first =
    "SELECT input FROM turns INDEXED BY turns_by_digest WHERE turns.session = sessions.id ORDER BY rowid LIMIT 1";
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
