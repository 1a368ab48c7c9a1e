/** The embedded store: one file, which belongs to one gateway. Finds are this thread's, writes a thread's of their own. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import type { Maker, Node, Session } from "../core/place.ts";
import type { Finding, Query } from "../core/store.ts";
import { type Access, repeat } from "./access.ts";
import { cold, createCache, createTables, toNumber } from "./cold.ts";
import { createConversations } from "./conversations.ts";
import type { Step as Done } from "./deletions.ts";
import { findPlace, identify, lockFile, openToRead, type Place, prepareFile } from "./file.ts";
import { createGrouped } from "./grouped.ts";
import { createOperator } from "./operator.ts";
import {
  createReadOnce,
  createReadText,
  type KeyedRow,
  type Kind,
  loadTexts,
  type NodeRow,
  type PathRow,
  type ReadTurn,
  toInterrupted,
  toItems,
  toNode,
  toPath,
  toRow,
  toTip,
  toTurn,
} from "./rows.ts";
import { createSecrets, readSecrets, renewalMs } from "./secrets.ts";
import { cannotRead, toFailure } from "./trouble.ts";
import { type ColdStore, type GatewayStore, sessionErased } from "./store.ts";
import { openWriter } from "./writing.ts";

/** `onFatal`: the store can never be trusted again, so the gateway must stop, and say why. */
export async function openSqlite(
  file: string,
  onFatal: (message: string) => void,
  mayMigrate: boolean,
): Promise<GatewayStore> {
  const place = findPlace(file);
  const unlock = lockFile(place);
  try {
    const migratedFrom = prepareFile(place, mayMigrate);
    return { ...(await open(place, onFatal, unlock)), migratedFrom };
  } catch (thrown) {
    unlock();
    throw thrown;
  }
}

/** As the command line opens it, whether or not a gateway runs on the same file. Makes it if there is none. */
export async function openColdSqlite(file: string): Promise<ColdStore> {
  const place = findPlace(file);
  prepareFile(place, false);
  const { access, writer, close } = await openAccess(place, () => {});
  const operator = createOperator(access);
  return {
    ...operator,
    async importLines(bytes) {
      const imported = await operator.importLines(bytes);
      // By then a gateway beside us knows the archive's keys.
      await wait(renewalMs);
      return imported;
    },
    check: writer.check,
    close,
  };
}

async function openAccess(place: Place, onFatal: (message: string) => void) {
  const reading = openToRead(place.path);
  const prepare = createCache(reading);
  const writer = openWriter(identify(place), onFatal);
  const tables = createTables(prepare);
  const isThere = async (id: string): Promise<boolean> =>
    (await tables.one(cold.sessionById, toNumber(id.slice("conv_".length)))) !== undefined;
  const access: Access = {
    secrets: createSecrets(await readSecrets(tables), () => readSecrets(tables), isThere),
    loadTexts: (rows) => loadTexts(tables.one, rows),
    read: (name, given) => writer.read([name, given]) as never,
    write: (name, given) => writer.write([name, given]) as never,
    async scrub(isLarge) {
      if (isLarge) await repeat(() => writer.write(["giveBack", undefined]) as Promise<Done>);
      await writer.erasure.finish();
    },
    hasUnfinishedErasure: writer.erasure.isUnfinished,
  };
  async function close(): Promise<void> {
    await writer.close();
    reading.close();
  }
  return { reading, prepare, tables, writer, access, close };
}

async function open(place: Place, onFatal: (message: string) => void, unlock: () => void): Promise<GatewayStore> {
  const { reading, prepare, tables, writer, access, close } = await openAccess(place, onFatal);
  writer.watch();
  const { secrets } = access;
  const readText = createReadText(prepare);
  const find = createFind(reading);
  const finds = createGrouped(async (queries: readonly Query[]) => {
    reading.exec("BEGIN");
    try {
      return queries.map((query) => attempt(() => find(query)));
    } finally {
      reading.exec("COMMIT");
    }
  });

  return {
    ...createConversations(access, tables),
    ...createOperator(access),
    sessionOf: secrets.sessionOf,
    sealKeys: secrets.sealKeys,
    checkKeeping: writer.checkKeeping,
    check: writer.check,
    find: finds.send,
    async path({ turn }) {
      const rows = reads(() => prepare(pathStatement).all(turn)) as unknown as readonly PathRow[];
      // Of a long thread every turn has the same instructions.
      return toPath(rows, createReadOnce(readText));
    },
    async commit(turn) {
      const row = toRow(turn, secrets);
      if (!(await writer.write(["commit", row]))) throw sessionErased();
    },
    async turn(owner, key) {
      const n = toNumber(key);
      const row = reads(() => prepare(cold.turn).get(n, key, owner)) as ReadTurn | undefined;
      return row && toTurn(row, readText);
    },
    async begin(turn) {
      await writer.write(["commit", toInterrupted(turn, secrets)]);
    },
    async keyed(owner, key, since) {
      const name = secrets.nameKey(owner, key);
      const row = reads(() => prepare(cold.keyed).get(name, owner, since)) as KeyedRow | undefined;
      return row && { ...toTurn(row, readText), fingerprint: row.fingerprint };
    },
    async close() {
      await close();
      unlock();
    },
  };
}

/** Of what these statements find a list costs half of an object. */
function createFind(reading: DatabaseSync): (query: Query) => Finding {
  const prepare = (text: string): StatementSync => {
    const statement = reading.prepare(text);
    statement.setReturnArrays(true);
    return statement;
  };
  const [bySession, byName, byMarks, byCall] = [
    prepare(sessionStatement),
    prepare(namedStatement),
    prepare(matchStatement),
    prepare(makerStatement),
  ];
  const byQuestion = prepare("SELECT 1 FROM turn WHERE session = ? AND question = ? LIMIT 1");

  return function find({ owner, session: id, named, shown, prefilled, calls }) {
    if (named !== undefined) return findNamed(owner, named);
    if (id === undefined) return unknown;
    const name = id.slice("conv_".length);
    const row = bySession.get(toNumber(name), name, owner) as unknown as SessionRow | undefined;
    if (row === undefined) return unknown;
    const [n, kind, shows, tip, digest, remembers, depth, instructions, tools] = row;
    const node = tip === null ? undefined : toTip(toNode([tip, digest, remembers, depth, 0]), instructions, tools);
    const session = toSession(id, kind, shows, node);
    const makers = calls.length === 0 ? noMakers : new Map(calls.flatMap((call) => findMaker(n, call)));
    let wasAsked = prefilled !== undefined && isAsked(n, prefilled());
    for (const [depth, { question, digest }] of shown.entries()) {
      const asked = question();
      const found = byMarks.get(n, asked, digest) as unknown as NodeRow | undefined;
      if (found !== undefined)
        return {
          session,
          named: undefined,
          wasAsked: true,
          match: { node: toNode(found), depth },
          makers,
        };
      wasAsked ||= isAsked(n, asked);
    }
    return { session, named: undefined, wasAsked, match: undefined, makers };
  };

  function findNamed(owner: string, key: string): Finding {
    const row = byName.get(toNumber(key), key, owner) as unknown as NamedRow | undefined;
    if (row === undefined) return unknown;
    const [name, kind, shows, tip, ...rest] = row;
    const node = toNode(rest);
    const leading = tip === null || tip === node.turn ? node : { ...node, turn: tip };
    return {
      ...unknown,
      session: toSession(`conv_${name}`, kind, shows, tip === null ? undefined : leading),
      named: node,
    };
  }

  function findMaker(session: number, call: string): [string, Maker][] {
    const row = byCall.get(session, call) as unknown as MakerRow | undefined;
    if (row === undefined) return [];
    const [answer, ...rest] = row;
    return [[call, { node: toNode(rest), answer: toItems(answer) }]];
  }

  function isAsked(session: number, question: string): boolean {
    return byQuestion.get(session, question) !== undefined;
  }
}

function toSession(id: string, kind: Kind, shows: number, tip: Node | undefined): Session {
  return { id, isHidden: kind === "hidden", shows: shows === 1, tip };
}

type Standing = readonly [kind: Kind, shows: number, tip: number | null];
type SessionRow = readonly [
  n: number,
  ...Standing,
  digest: string | null,
  remembers: number,
  depth: number,
  instructions: string | null,
  tools: number | null,
];
type NamedRow = readonly [name: string, ...Standing, ...NodeRow];
type MakerRow = readonly [answer: string, ...NodeRow];

const noMakers: Finding["makers"] = new Map();
const unknown: Finding = {
  session: undefined,
  named: undefined,
  wasAsked: false,
  match: undefined,
  makers: noMakers,
};

const node = "t.n, t.digest, t.remembers, t.depth";
const followed = "EXISTS (SELECT 1 FROM turn c WHERE c.parent = t.n AND c.digest IS NOT NULL)";

const sessionStatement = `SELECT s.n, s.kind, s.shows, s.tip, t.digest, t.remembers, t.depth, t.instructions, t.tools
  FROM session s LEFT JOIN turn t ON t.n = s.tip WHERE s.id = ? AND s.name = ? AND s.owner = ?`;
const namedStatement = `SELECT s.name, s.kind, s.shows, s.tip, ${node}, 0
  FROM turn t JOIN session s ON s.n = t.session LEFT JOIN record r ON r.turn = t.n
  WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.echo IS NOT NULL AND t.digest IS NOT NULL AND coalesce(r.unnamed, 0) = 0`;
const matchStatement = `SELECT ${node}, ${followed}
  FROM turn t WHERE t.session = ? AND t.question = ? AND t.digest = ? ORDER BY t.n DESC LIMIT 1`;
const makerStatement = `SELECT t.answer, ${node}, 0 FROM call c JOIN turn t ON t.n = c.turn WHERE c.session = ? AND c.id = ?`;
const pathStatement = `WITH RECURSIVE up (n) AS (
    SELECT ? UNION ALL SELECT t.parent FROM up JOIN turn t ON t.n = up.n WHERE t.parent IS NOT NULL
  ) SELECT t.key, t.session, t.depth, t.input, t.answer FROM up JOIN turn t ON t.n = up.n`;

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
