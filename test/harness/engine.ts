/**
 * The engine of a run's stores: the file in each data folder, or with PORTICO_ENGINE=postgres a schema of PostgreSQL for
 * each data folder, so that the same tests run on both; with PORTICO_ENGINE=pgbouncer a database by way of a pooler.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Scope, scopeOf } from "./scope.ts";

/** Settings as a config file has them. */
export type Keys = Readonly<Record<string, unknown>>;

/** The keys under `gateway` of a gateway with this data folder, with its store where they name none. */
export async function withStore(folder: string, gateway: Keys = {}): Promise<Keys> {
  const { sessions = {} } = gateway as { readonly sessions?: Keys };
  if (engine === undefined || "store" in sessions) return gateway;
  return { ...gateway, sessions: { ...sessions, store: await schemaOf(folder) } };
}

const engine = process.env["PORTICO_ENGINE"];
const schemas = new Map<string, Promise<string>>();

/** It lives as long as the folder does. */
async function schemaOf(folder: string): Promise<string> {
  const known = schemas.get(folder) ?? makeStore(scopeOf(folder));
  schemas.set(folder, known);
  return known;
}

async function makeStore(scope: Scope): Promise<string> {
  const { newDatabase, newSchema } = await driver();
  if (engine === "postgres") return newSchema(scope);
  const { openPooler } = await import("./pooler.ts");
  return openPooler(scope, await newDatabase(scope));
}

/** Only where it is needed: most runs of a file are without. */
const driver = () => import("./postgres.ts");

/** A gateway was killed: to the others it is dead, as after some seconds of silence. */
export async function outlastSilence(folder: string): Promise<void> {
  const schema = await schemas.get(folder);
  if (schema !== undefined) await (await driver()).ask(schema, "DELETE FROM process");
}

/** Where a word is in what was stored for a data folder: in which files, or in which tables. */
export async function placesWith(folder: string, word: string): Promise<string[]> {
  const schema = await schemas.get(folder);
  return schema === undefined ? filesWith(folder, word) : tablesWith(schema, word);
}

/** The database, its log and index, whatever lies beside them. */
function filesWith(folder: string, word: string): string[] {
  const data = join(folder, ".portico");
  const names = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = names.map(({ parentPath, name }) => join(parentPath, name));
  return files.filter((file) => readFileSync(file).includes(word));
}

/** In any column of any row. */
async function tablesWith(schema: string, word: string): Promise<string[]> {
  const { ask } = await driver();
  const tables = await ask(schema, "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()");
  const looks = tables.map(
    ({ name }) => `SELECT '${name}' AS name FROM "${name}" AS whole WHERE position($1 IN whole::text) > 0`,
  );
  return (await ask(schema, looks.join(" UNION "), word)).map(({ name }) => String(name));
}
