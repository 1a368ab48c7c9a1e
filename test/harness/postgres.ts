/** PostgreSQL for tests: a database on a server that all of them share, or a server that a test may kill and replace. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, Pool } from "pg";
import { type Daemon, type Home, makeHome, startDaemon } from "./daemon.ts";
import { need } from "./needs.ts";
import { endAfter, findFreePort, type Scope } from "./scope.ts";

/**
 * A new, empty database, on the server of PORTICO_POSTGRES or on one that this process starts; dropped at the end,
 * whoever is still connected to it.
 */
export async function newDatabase(scope: Scope): Promise<string> {
  const server = await findServer();
  const address = await createDatabase(server);
  endAfter(scope, () => ask(server, `DROP DATABASE ${nameOf(address)} WITH (FORCE)`));
  return address;
}

/** A new, empty schema of a database that all tests share: for most of them as good, and much cheaper. */
export async function newSchema(scope: Scope): Promise<string> {
  const pool = await (shared ??= openShared());
  const name = newName();
  await pool.query(`CREATE SCHEMA ${name}`);
  endAfter(scope, () => pool.query(`DROP SCHEMA ${name} CASCADE`));
  return `${pool.options.connectionString}?options=-c%20search_path%3D${name}`;
}

let own: Promise<Postgres> | undefined;
let shared: Promise<Pool> | undefined;

async function findServer(): Promise<string> {
  return process.env["PORTICO_POSTGRES"] ?? (await (own ??= openPostgres(wholeProcess))).address;
}

/** The database of the schemas, which another process may be making at this moment. */
async function openShared(): Promise<Pool> {
  const server = await findServer();
  const name = "portico_test";
  const isThere = await ask(server, `CREATE DATABASE ${name}`).catch((thrown: unknown) => thrown);
  if (isThere instanceof Error && !/already exists/.test(isThere.message)) throw isThere;
  return new Pool({ connectionString: toAddress(server, name), max: 2, allowExitOnIdle: true });
}

/** What is started in it ends when the process exits. */
export const wholeProcess: Scope = { after: () => undefined };

export interface Postgres {
  /** Of its superuser. */
  readonly address: string;
  readonly port: number;
  /** Returns the address of a new, empty database. */
  createDatabase(): Promise<string>;
  /** Starts it again, on the same port and with what it has kept. */
  start(): Promise<void>;
  /** Cuts its connections and shuts it down. */
  stop(): Promise<void>;
  /** Kills all of its processes at once. */
  kill(): Promise<void>;
  /**
   * A second server with the same databases. The first is started once more, and confirms from then on only what the
   * second has, too.
   */
  makeStandby(): Promise<Standby>;
}

export interface Standby extends Postgres {
  /** Ends its dependence on the first server, and accepts writes. */
  promote(): Promise<void>;
}

export interface PostgresOptions {
  /** Whether what it has confirmed outlives a `kill`; otherwise it is faster. */
  readonly isDurable?: boolean;
}

/** Starts a server of PostgreSQL with no databases, which accepts any password; it is killed at the end. */
export async function openPostgres(scope: Scope, { isDurable = false }: PostgresOptions = {}): Promise<Postgres> {
  const home = makeHome(scope);
  // As most servers elsewhere it sorts by language, so that nothing relies on an order by bytes.
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en-US"];
  const access = ["--username=postgres", "--auth=trust", "--no-sync"];
  await run("initdb", ["--pgdata=.", ...access, ...locale], home);
  const settings = isDurable ? usual : [...usual, ...careless];
  appendFileSync(join(home.cwd, "postgresql.conf"), settings.join("\n"));
  return openServer(scope, home);
}

const usual = [
  "listen_addresses = '127.0.0.1'",
  "unix_socket_directories = ''",
  "max_connections = 200",
  "shared_buffers = '32MB'",
  "wal_keep_size = '256MB'",
  // In its folder, and gone with it when it was killed.
  "dynamic_shared_memory_type = 'mmap'",
];
const careless = ["fsync = off", "full_page_writes = off", "synchronous_commit = off"];

/** Starts a server with what is in its folder. */
async function openServer(scope: Scope, home: Home): Promise<Postgres> {
  const port = await findFreePort();
  const address = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const args = ["-D", ".", "-p", String(port)];
  let daemon: Daemon | undefined;

  const start = async () => {
    daemon = await startDaemon(toPath("postgres"), args, home, "database system is ready to accept");
  };
  const stop = async () => daemon?.end("SIGINT");
  const kill = async () => daemon?.kill();

  async function makeStandby(): Promise<Standby> {
    const copy = makeHome(scope);
    await run("pg_basebackup", ["-d", address, "-D", ".", "-R", "-c", "fast", "--no-sync"], copy);
    // Not in its file, which the next standby would have too, and wait for a standby of its own once it is promoted.
    args.push("-c", "synchronous_standby_names=*", "-c", "synchronous_commit=on");
    await stop();
    await start();
    const standby = await openServer(scope, copy);
    return { ...standby, promote: async () => void (await ask(standby.address, "SELECT pg_promote()")) };
  }

  endAfter(scope, () => daemon?.end());
  await start();
  return { address, port, createDatabase: () => createDatabase(address), start, stop, kill, makeStandby };
}

async function createDatabase(server: string): Promise<string> {
  const name = newName();
  await ask(server, `CREATE DATABASE ${name}`);
  return toAddress(server, name);
}

function newName(): string {
  return `portico_${randomUUID().replaceAll("-", "")}`;
}

function toAddress(server: string, database: string): string {
  const address = new URL(server);
  address.pathname = database;
  return address.href;
}

function nameOf(address: string): string {
  return new URL(address).pathname.slice(1);
}

/** The rows of one statement, by a connection of its own. */
export async function ask(
  address: string,
  statement: string,
  ...values: readonly unknown[]
): Promise<Readonly<Record<string, unknown>>[]> {
  const client = new Client({ connectionString: address });
  await client.connect();
  try {
    return (await client.query(statement, [...values])).rows;
  } finally {
    await client.end();
  }
}

async function run(program: string, args: readonly string[], home: Home): Promise<void> {
  await promisify(execFile)(toPath(program), args, home);
}

/** The programs of PostgreSQL are in one folder. */
function toPath(program: string): string {
  return need("initdb").path.replace(/initdb$/, program);
}
