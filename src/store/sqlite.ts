/** The embedded store: one file, which belongs to one gateway. Finds are this thread's, writes a thread's of their own. */
import { DatabaseSync } from "node:sqlite";
import type { Step } from "../core/context.ts";
import { GatewayError } from "../core/errors.ts";
import type { Maker, Session } from "../core/place.ts";
import type { Conversations, Finding, Operator, Query, Records, Store } from "../core/store.ts";
import type { Access } from "./access.ts";
import { createConversations } from "./conversations.ts";
import { lockFile, prepareFile } from "./file.ts";
import { createGrouped } from "./grouped.ts";
import { createOperator } from "./operator.ts";
import { createCache, createTables } from "./prepared.ts";
import {
  createReadOnce,
  createReadText,
  type Kind,
  type NodeRow,
  type ReadTurn,
  type RunningRead,
  toInput,
  toInterrupted,
  toItems,
  toNode,
  toRow,
  toTurn,
} from "./rows.ts";
import { patienceMs, toNumber } from "./schema.ts";
import { createSecrets } from "./secrets.ts";
import { openReader } from "./threads.ts";
import { cannotRead, toFailure } from "./trouble.ts";
import { openWriter } from "./writing.ts";

export interface SqliteStore extends Store, Records, Conversations, Operator {
  /** Of what callers carry for the gateway; the first one seals. The same list until an archive brought others. */
  sealKeys(): readonly Buffer[];
}

export interface Surroundings {
  /** The store can never be trusted again: the gateway must stop, and say why. */
  onFatal(message: string): void;
}

export async function openSqlite(file: string, { onFatal }: Surroundings = { onFatal() {} }): Promise<SqliteStore> {
  const unlock = lockFile(file);
  try {
    prepareFile(file);
    return open(file, onFatal, unlock);
  } catch (thrown) {
    unlock();
    throw thrown;
  }
}

function open(file: string, onFatal: (message: string) => void, unlock: () => void): SqliteStore {
  const reading = new DatabaseSync(file, { timeout: patienceMs });
  reading.exec("PRAGMA query_only = ON");
  const prepare = createCache(reading);
  const tables = createTables(prepare);
  const readText = createReadText(prepare);
  const isThere = (id: string): boolean =>
    prepare(thereStatement).get(toNumber(id.slice("conv_".length))) !== undefined;
  const secrets = createSecrets(tables, isThere);
  const writer = openWriter(file, onFatal);
  const reader = openReader(file);
  const finds = createGrouped(async (queries: readonly Query[]) => queries.map((query) => attempt(() => find(query))));
  const access: Access = {
    secrets,
    readText,
    read: (name, given) => reader.read([name, given]) as never,
    write: (name, given) => writer.write([name, given]) as never,
    emptyLog: writer.emptyLog,
  };

  return {
    ...createConversations(access, tables),
    ...createOperator(access),
    sessionOf: secrets.sessionOf,
    sealKeys: secrets.sealKeys,
    checkKeeping: writer.checkKeeping,
    check: writer.check,
    find: finds.send,
    async path({ turn }) {
      const rows = reads(() => prepare(pathStatement).all(turn)) as unknown as readonly ReadTurn[];
      // Of a long thread every turn has the same instructions.
      const readOnce = createReadOnce(readText);
      return rows.toReversed().map((row): Step => ({ input: toInput(row, readOnce), answer: toItems(row.answer) }));
    },
    async commit(turn) {
      const row = toRow(turn, (key) => secrets.sessionOf(turn.owner, `key ${key}`));
      if (!(await writer.write(["commit", row]))) throw sessionErased();
    },
    async turn(owner, key) {
      const n = toNumber(key);
      const row = reads(() => prepare(turnStatement).get(n, key, owner)) as ReadTurn | undefined;
      if (row !== undefined) return toTurn(row, readText);
      const left = reads(() => prepare(leftStatement).get(n, key, owner)) as RunningRead | undefined;
      return left && toInterrupted(left);
    },
    async begin({ key, session, owner, model, createdAt, echo }) {
      await writer.write(["begin", [toNumber(key), key, session ?? null, owner, model, createdAt, echo ?? null]]);
    },
    async keyed(owner, key, since) {
      const name = secrets.sessionOf(owner, `key ${key}`);
      const row = reads(() => prepare(keyedStatement).get(name, owner, since)) as KeyedRead | undefined;
      return row && { ...toTurn(row, readText), fingerprint: row.fingerprint };
    },
    async close() {
      await reader.close();
      await writer.close();
      reading.close();
      unlock();
    },
  };

  function find({ owner, session: id, named, shown, prefilled, calls }: Query): Finding {
    if (named !== undefined) return findNamed(owner, named);
    const known = id === undefined ? undefined : findSession(owner, id);
    if (known === undefined) return unknown;
    const { n, session } = known;
    const makers = new Map(calls.flatMap((call) => findMaker(n, call)));
    let wasAsked = prefilled !== undefined && isAsked(n, prefilled());
    for (const [depth, { question, digest }] of shown.entries()) {
      const asked = question();
      const row = prepare(matchStatement).get(n, asked, digest) as NodeRow | undefined;
      if (row !== undefined)
        return { session, named: undefined, wasAsked: true, match: { node: toNode(row), depth }, makers };
      wasAsked ||= isAsked(n, asked);
    }
    return { session, named: undefined, wasAsked, match: undefined, makers };
  }

  function findSession(owner: string, id: string): { readonly n: number; readonly session: Session } | undefined {
    const name = id.slice("conv_".length);
    const row = prepare(sessionStatement).get(toNumber(name), name, owner) as SessionRead | undefined;
    if (row === undefined) return undefined;
    const tip = row.tip === null ? undefined : toNode({ ...row, n: row.tip });
    return { n: row.session, session: { id, isHidden: row.kind === "hidden", shows: row.shows === 1, tip } };
  }

  function findNamed(owner: string, key: string): Finding {
    const row = prepare(namedStatement).get(toNumber(key), key, owner) as (NodeRow & SessionRead) | undefined;
    if (row === undefined) return unknown;
    const node = toNode(row);
    const tip = row.tip === null ? undefined : row.tip === row.n ? node : { ...node, turn: row.tip };
    const session = { id: `conv_${row.name}`, isHidden: row.kind === "hidden", shows: row.shows === 1, tip };
    return { ...unknown, session, named: node };
  }

  function findMaker(session: number, call: string): [string, Maker][] {
    const row = prepare(makerStatement).get(session, call) as (NodeRow & { readonly answer: string }) | undefined;
    return row === undefined ? [] : [[call, { node: toNode(row), answer: toItems(row.answer) }]];
  }

  function isAsked(session: number, question: string): boolean {
    return (
      prepare("SELECT 1 FROM turn WHERE session = ? AND question = ? LIMIT 1").get(session, question) !== undefined
    );
  }
}

interface SessionRead extends Omit<NodeRow, "n"> {
  readonly session: number;
  readonly name: string;
  readonly kind: Kind;
  readonly shows: number;
  readonly tip: number | null;
}

const unknown: Finding = { session: undefined, named: undefined, wasAsked: false, match: undefined, makers: new Map() };

const node = "t.n, t.digest, t.remembers, t.depth";
const followed = "EXISTS (SELECT 1 FROM turn c WHERE c.parent = t.n AND c.digest IS NOT NULL) AS followed";

const sessionStatement = `SELECT s.n AS session, s.name, s.kind, s.shows, s.tip, t.digest, t.remembers, t.depth
  FROM session s LEFT JOIN turn t ON t.n = s.tip WHERE s.id = ? AND s.name = ? AND s.owner = ?`;
const namedStatement = `SELECT ${node}, s.n AS session, s.name, s.kind, s.shows, s.tip
  FROM turn t JOIN session s ON s.n = t.session LEFT JOIN record r ON r.turn = t.n
  WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.echo IS NOT NULL AND t.digest IS NOT NULL AND coalesce(r.unnamed, 0) = 0`;
const matchStatement = `SELECT ${node}, ${followed}
  FROM turn t WHERE t.session = ? AND t.question = ? AND t.digest = ? ORDER BY t.n DESC LIMIT 1`;
const makerStatement = `SELECT ${node}, t.answer FROM call c JOIN turn t ON t.n = c.turn WHERE c.session = ? AND c.id = ?`;
const pathStatement = `WITH RECURSIVE up (n) AS (
    SELECT ? UNION ALL SELECT t.parent FROM up JOIN turn t ON t.n = up.n WHERE t.parent IS NOT NULL
  ) SELECT t.key, t.session, t.input, t.answer FROM up JOIN turn t ON t.n = up.n`;
const thereStatement = "SELECT 1 FROM session WHERE id = ?";
const turnColumns = `t.n, t.key, t.session, s.name, s.kind, t.model, t.created, t.input, t.answer, t.told, t.echo,
  r.background, r.told AS placed, r.items, r.log`;
const turnTables = "turn t JOIN session s ON s.n = t.session LEFT JOIN record r ON r.turn = t.n";
const turnStatement = `SELECT ${turnColumns} FROM ${turnTables}
  WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.told <> '' AND coalesce(r.unnamed, 0) = 0`;
const leftStatement = "SELECT key, session, model, created, echo FROM running WHERE turn = ? AND key = ? AND owner = ?";
const keyedStatement = `SELECT ${turnColumns}, r.fingerprint FROM ${turnTables}
  WHERE r.name = ? AND s.owner = ? AND t.created > ? AND t.told <> '' ORDER BY t.n DESC LIMIT 1`;

interface KeyedRead extends ReadTurn {
  readonly fingerprint: string;
}

function sessionErased(): GatewayError {
  return new GatewayError(
    "not_found",
    "The conversation was deleted while this was answered, so the answer was not kept.",
  );
}

function reads<Result>(run: () => Result): Result {
  const result = attempt(run);
  if (result instanceof Error) throw result;
  return result;
}

function attempt<Result>(run: () => Result): Result | Error {
  try {
    return run();
  } catch (thrown) {
    return cannotRead(toFailure(thrown));
  }
}
