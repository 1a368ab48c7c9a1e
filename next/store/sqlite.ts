/** The embedded store: one file, which belongs to one gateway. Reads are this thread's, writes a thread's of their own. */
import { createHmac, randomBytes } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import type { Step } from "../core/context.ts";
import { GatewayError } from "../core/errors.ts";
import type { Maker, Session } from "../core/place.ts";
import type { Finding, Query, Store } from "../core/store.ts";
import { createGrouped } from "./grouped.ts";
import { type Kind, type NodeRow, type ReadTurn, toInput, toItems, toNode, toRow, toTurn } from "./rows.ts";
import { layout, schema, toNumber } from "./schema.ts";
import type { Outcome, Write } from "./writer.ts";
import { createCache } from "./writes.ts";

const pragmas = ["journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "wal_autocheckpoint = 4000"];
/** Of a new file: fewer pages are touched by a turn than with the usual 4 KB. */
const pageSize = "page_size = 8192";

export interface SqliteStore extends Store {
  /** Of what callers carry for the gateway: it lives and dies with the sessions. */
  readonly sealKey: Buffer;
}

export async function openSqlite(file: string): Promise<SqliteStore> {
  prepareFile(file);
  const reading = new DatabaseSync(file);
  reading.exec("PRAGMA query_only = ON");
  const prepare = createCache(reading);
  const [hintKey, sealKey] = ["hints", "seals"].map((name) => readSecret(prepare, name));
  const writer = await startWriter(file);
  const commits = createGrouped(async (rows: readonly Write[]) => (await writer.send(rows)).map(toResult));
  const finds = createGrouped(async (queries: readonly Query[]) => queries.map((query) => attempt(() => find(query))));

  const readText = (session: number, digest: string): string =>
    (
      prepare("SELECT text FROM text WHERE session = ? AND digest = ?").get(session, digest) as {
        readonly text: string;
      }
    ).text;

  return {
    sealKey: Buffer.from(sealKey ?? "", "hex"),
    sessionOf: (owner, hint) =>
      `conv_${createHmac("sha256", hintKey ?? "")
        .update(`${owner.length} ${owner}${hint}`)
        .digest("hex")
        .slice(0, 48)}`,
    find: finds.send,
    async path({ turn }) {
      const rows = prepare(pathStatement).all(turn) as unknown as readonly ReadTurn[];
      return rows.toReversed().map((row): Step => ({ input: toInput(row, readText), answer: toItems(row.answer) }));
    },
    async commit(turn) {
      await commits.send(["commit", toRow(turn)]);
    },
    async turn(owner, key) {
      const row = prepare(turnStatement).get(toNumber(key), key, owner) as ReadTurn | undefined;
      return row && toTurn(row, readText);
    },
    async close() {
      await commits.idle();
      await writer.close();
      reading.close();
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
  FROM turn t JOIN session s ON s.n = t.session WHERE t.n = ? AND t.key = ? AND s.owner = ? AND t.echo IS NOT NULL`;
const matchStatement = `SELECT ${node}, ${followed}
  FROM turn t WHERE t.session = ? AND t.question = ? AND t.digest = ? ORDER BY t.n DESC LIMIT 1`;
const makerStatement = `SELECT ${node}, t.answer FROM call c JOIN turn t ON t.n = c.turn WHERE c.session = ? AND c.id = ?`;
const pathStatement = `WITH RECURSIVE up (n) AS (
    SELECT ? UNION ALL SELECT t.parent FROM up JOIN turn t ON t.n = up.n WHERE t.parent IS NOT NULL
  ) SELECT t.key, t.session, t.input, t.answer FROM up JOIN turn t ON t.n = up.n`;
const turnStatement = `SELECT t.n, t.key, t.session, s.name, s.kind, t.model, t.created, t.input, t.answer, t.told, t.echo
  FROM turn t JOIN session s ON s.n = t.session WHERE t.n = ? AND t.key = ? AND s.owner = ?`;

/** Makes a new file, or refuses one that is not ours to read. */
function prepareFile(file: string): void {
  const database = new DatabaseSync(file);
  try {
    const { user_version: found } = database.prepare("PRAGMA user_version").get() as { readonly user_version: number };
    const isEmpty = database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
    if (isEmpty) {
      database.exec(`PRAGMA ${pageSize}`);
      for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
      database.exec(`BEGIN; ${schema} PRAGMA user_version = ${layout}; COMMIT`);
    } else if (found !== layout) {
      throw new Error(
        `${file} has a layout that this version cannot read. Start with a new file, or with the version that made it.`,
      );
    }
    const add = database.prepare("INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING");
    for (const name of ["hints", "seals"]) add.run(name, randomBytes(32).toString("hex"));
  } finally {
    database.close();
  }
}

function readSecret(prepare: ReturnType<typeof createCache>, name: string): string {
  return (prepare("SELECT value FROM secret WHERE name = ?").get(name) as { readonly value: string }).value;
}

interface Writer {
  send(group: readonly Write[]): Promise<readonly Outcome[]>;
  close(): Promise<void>;
}

async function startWriter(file: string): Promise<Writer> {
  const worker = new Worker(new URL("writer.ts", import.meta.url), { workerData: { file, pragmas } });
  const waiting: { resolve(outcomes: readonly Outcome[]): void; reject(error: unknown): void }[] = [];
  const closed = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      for (const { reject } of waiting.splice(0)) reject(new Error("The store's writer has ended."));
      resolve();
    });
  });
  worker.on("message", (outcomes: readonly Outcome[]) => waiting.shift()?.resolve(outcomes));
  worker.on("error", (error) => waiting.shift()?.reject(error));
  return {
    send: (group) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        worker.postMessage(group);
      }),
    async close() {
      worker.postMessage("close");
      await closed;
    },
  };
}

function toResult(outcome: Outcome): unknown {
  if ("result" in outcome) return outcome.result;
  const message = "The turn could not be stored, so it did not happen. Send the request again.";
  return new GatewayError("store_unavailable", message, {
    retryAfterSeconds: 1,
    cause: new Error(outcome.failure.message),
  });
}

function attempt<Result>(run: () => Result): Result | Error {
  try {
    return run();
  } catch (thrown) {
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}
