/** Connections to PostgreSQL: what is asked of one that breaks is asked again for a while, for a server comes back. */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { GatewayError } from "../../core/errors.ts";
import type { Tables, Value } from "../cold.ts";
import { unavailable } from "../trouble.ts";

/** What a statement is given; a list is an array of the server's. */
type Given = Value | readonly Value[];
export type Statement = readonly [text: string, ...values: readonly Given[]];

export type Rows = readonly (readonly Value[])[];

export interface Database {
  /** All in one round trip, each its own transaction; rows come as lists. */
  ask(...statements: readonly Statement[]): Promise<readonly Rows[]>;
  /** All in one round trip and in one transaction, which is not tried again, and fails with the server's own words. */
  askTogether(...statements: readonly Statement[]): Promise<readonly Rows[]>;
  /** Repeated if others changed what it read, or if the connection broke before it was committed. */
  transact<Result>(run: (tables: Tables) => Promise<Result>): Promise<Result>;
  /** Outside of any transaction. */
  readonly tables: Tables;
  /** Whether what answers is not the server itself. */
  isPooled(): Promise<boolean>;
  close(): Promise<void>;
}

/** One for what turns look up, one for what they write, one for the sign of life, the others for what takes longer. */
export const maxConnections = 6;
const connectMs = 3_000;
/** How long a statement may take, so that a server that has vanished is not waited for. */
const patienceMs = 10_000;
/** How long a server that cannot be reached is asked again. */
const absenceMs = 8_000;
const pauseMs = 100;

/** Texts stay as they are; a number of 52 bits is exact. */
const types = {
  getTypeParser: (oid: number) => ([20, 21, 23].includes(oid) ? Number : (text: string) => text),
} as unknown as pg.CustomTypesConfig;

/** `suffer` gets lasting failures; the caller fails with them too. `statementMs`: how long a statement may take. */
export function openDatabase(
  address: string,
  suffer: (refusal: GatewayError) => void,
  max: number,
  statementMs = patienceMs,
): Database {
  const pool = new pg.Pool({
    connectionString: address,
    application_name: "portico",
    max,
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
    keepAlive: true,
    types,
    pipeline: true,
  } as pg.PoolConfig);
  // Whoever uses it, or uses it next, is told.
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));

  const numbered = createNumbering();
  /** Whoever asks meanwhile is not kept waiting. */
  let isAway = false;

  async function use<Result>(run: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await pool.connect();
    let failure: unknown;
    try {
      return await run(client);
    } catch (thrown) {
      failure = thrown;
      throw thrown;
    } finally {
      client.release(isAbsent(failure));
    }
  }

  /** Asks again until there is somebody to answer; what fails then is what a caller may read. */
  async function insist<Result>(ask: () => Promise<Result>, mayRepeat: (thrown: unknown) => boolean): Promise<Result> {
    const until = performance.now() + (isAway ? 0 : absenceMs);
    for (;;) {
      try {
        const answer = await ask();
        isAway = false;
        return answer;
      } catch (thrown) {
        if (!mayRepeat(thrown) || performance.now() > until) throw refuse(thrown);
        if (isAbsent(thrown)) await wait(pauseMs);
      }
    }
  }

  function refuse(thrown: unknown): unknown {
    if (!isAbsent(thrown))
      return thrown instanceof pg.DatabaseError ? unavailable(cannot + lookIntoLog, thrown) : thrown;
    isAway = true;
    const refusal = unavailable(cannot + awayWords, thrown);
    suffer(refusal);
    return refusal;
  }

  return {
    ask: (...statements) => insist(() => use((client) => send(client, statements)), isAbsent),
    askTogether: async (...statements) =>
      (await use((client) => send(client, [["BEGIN"], ...statements, ["COMMIT"]]))).slice(1, -1),
    transact<Result>(run: (tables: Tables) => Promise<Result>) {
      const token = randomUUID();
      /** What it gives if the COMMIT that has no answer yet happened. */
      let asked: { readonly result: Result } | undefined;

      async function attempt(client: pg.PoolClient): Promise<Result> {
        try {
          await client.query(begin);
          const result = await run(toTables((text, values) => client.query(numbered(text), values.map(toSend))));
          await client.query(markDone, [token]);
          asked = { result };
          await client.query("COMMIT");
          return result;
        } catch (thrown) {
          await client.query("ROLLBACK").catch(() => {});
          throw thrown;
        }
      }

      return insist(
        () =>
          use(async (client) => {
            const before = asked;
            if (before === undefined) return attempt(client);
            if (await isDone(client, token)) return before.result;
            return attempt(client).catch(async (thrown: unknown) => {
              // The server had not noticed yet that the connection broke, and committed meanwhile.
              if (codeOf(thrown) === uniqueViolation && (await isDone(client, token))) return before.result;
              throw thrown;
            });
          }),
        (thrown) => isAbsent(thrown) || isOvertaken(thrown),
      );
    },
    tables: toTables((text, values) => insist(() => pool.query(numbered(text), values.map(toSend)), isAbsent)),
    isPooled: () =>
      insist(
        () =>
          use(async (client) => {
            const { rows } = await client.query<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid");
            return rows[0]?.pid !== (client as unknown as { readonly processID: number }).processID;
          }),
        isAbsent,
      ),
    close: () => pool.end(),
  };
}

/**
 * While a process is stopped in the middle of a transaction, all others wait for its locks: the server ends it before
 * long, and it is repeated when the process goes on.
 */
const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = '3s'";
const uniqueViolation = "23505";

/** Stands in the transaction itself, so that it is there exactly if the transaction happened. */
const markDone =
  "INSERT INTO done (token, at) VALUES ($1, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))";

/** Whether a transaction took effect although a broken connection hid the answer to COMMIT. */
async function isDone(client: pg.PoolClient, token: string): Promise<boolean> {
  return (await client.query("SELECT 1 FROM done WHERE token = $1", [token])).rowCount === 1;
}

const cannot = "The session store cannot save or find this now: ";
const awayWords = "its database cannot be reached. Check it; the gateway then goes on by itself.";
const lookIntoLog = "the log has the cause. Send the request again.";

/** Sends all before it waits for the first. */
async function send(client: pg.PoolClient, statements: readonly Statement[]): Promise<readonly Rows[]> {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection;
  // One write instead of one a statement.
  stream.cork();
  const asked = statements.map(([text, ...values]) =>
    client.query({ text, values: values.map(toSend), rowMode: "array" }),
  );
  stream.uncork();
  const told = await Promise.allSettled(asked);
  return told.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value.rows as Rows;
  });
}

type Query = (
  text: string,
  values: readonly Value[],
) => Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>;

function toTables(query: Query): Tables {
  return {
    one: async <Row>(text: string, ...values: readonly Value[]) =>
      (await query(text, values)).rows[0] as Row | undefined,
    all: async <Row>(text: string, ...values: readonly Value[]) => (await query(text, values)).rows as Row[],
    run: async (text, ...values) => (await query(text, values)).rowCount ?? 0,
  };
}

/** The shared statements, as PostgreSQL counts what they are given. */
function createNumbering(): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let count = 0;
    const found = known.get(text) ?? text.replaceAll("?", () => `$${++count}`);
    known.set(text, found);
    return found;
  };
}

/** Of texts without any of these, what JSON makes is what the server reads as a list, in a third of the time. */
const special = /[\0-\u001f\ud800-\udfff]/;

function toSend(given: Given): Value {
  if (typeof given === "string") return withoutZero(given);
  if (typeof given !== "object" || given === null) return given;
  const isPlain = given.every((value) => typeof value !== "string" || !special.test(value));
  return `{${isPlain ? JSON.stringify(given).slice(1, -1) : given.map(toElement).join(",")}}`;
}

function toElement(value: Value): string {
  return typeof value === "string" ? `"${withoutZero(value).replaceAll(/["\\]/g, "\\$&")}"` : String(value);
}

/** The server knows no text with a zero in it. */
const withoutZero = (text: string): string => (text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text);

/** What a statement is given of many rows: a list a column. */
export const toColumns = (count: number): Value[][] => Array.from({ length: count }, () => []);

export function add(columns: readonly Value[][], ...row: readonly Value[]): void {
  for (const [at, value] of row.entries()) columns[at]?.push(value);
}

/** The server cannot be reached, has no room, stops, starts, or became one that only reads. */
function isAbsent(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || thrown instanceof GatewayError) return false;
  return /^(08|53|57P|25006|E[A-Z]+$)/.test(codeOf(thrown)) || /[Cc]onnection|timeout/.test(thrown.message);
}

/** Others changed what it read, or waited for it while it waited for them. */
const isOvertaken = (thrown: unknown): boolean => ["40001", "40P01"].includes(codeOf(thrown));

/** The server's code of an error, or of what it was caused by. */
export function codeOf(thrown: unknown): string {
  if (thrown instanceof GatewayError) return codeOf(thrown.cause);
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}
