/** What a killed gateway left in its file, read without touching it. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Item, textOf } from "../../src/core/item.ts";
import type { SessionStore, StoredTurn } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { type Client, type Exchange, withoutKind } from "./crash-client.ts";
import { readTurns } from "../stores/making.ts";

export interface Outcome {
  /** Turns in flight that the store has, though no client received their end. */
  readonly kept: number;
  readonly lost: number;
}

/**
 * Compares the file with what the clients know: every turn whose end they received is there once and in order, and
 * after them at most the one in flight, complete. Of those in flight, the clients know the stored ones from now on.
 */
export async function compareWithStore(file: string, clients: readonly Client[]): Promise<Outcome> {
  // The gateway itself must recover the file when it starts again, so a copy is read.
  const folder = mkdtempSync(join(tmpdir(), "portico-crash-"));
  try {
    const copy = join(folder, "copy.db");
    for (const suffix of ["", "-wal"]) if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix);
    const store = createSqliteStore({ file: copy });
    const outcome = { kept: 0, lost: 0 };
    try {
      for (const client of clients) settle(client, await readExchanges(store, client.user), outcome);
    } finally {
      await store.close();
    }
    checkTables(copy, clients);
    return outcome;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function settle(client: Client, stored: readonly Exchange[], outcome: { kept: number; lost: number }): void {
  const { user, known, inFlight } = client;
  const more = stored.slice(known.length);
  assert.deepEqual(stored.slice(0, known.length), known, `${user}: what was acknowledged is there`);
  client.inFlight = undefined;
  if (more.length > 0) {
    assert.notEqual(inFlight, undefined, `${user}: nothing beyond what was acknowledged was asked`);
    const whole = [{ question: inFlight, answer: inFlight }];
    assert.deepEqual(
      more.map(({ question, answer }) => ({ question, answer })),
      whole,
      `${user}: a turn in flight is there completely or not at all`,
    );
    known.push(...more);
    outcome.kept += 1;
  } else if (inFlight !== undefined) {
    outcome.lost += 1;
  }
}

async function readExchanges(store: SessionStore, user: string): Promise<readonly Exchange[]> {
  const session = await store.findSession("default", `user:${user}`);
  return session?.tip === undefined ? [] : (await readTurns(store, session.tip)).map(toExchange);
}

function toExchange({ id, status, input, output }: StoredTurn): Exchange {
  assert.equal(status, "completed");
  return { id: withoutKind(id), question: textOfOnly(input, "user"), answer: textOfOnly(output, "assistant") };
}

function textOfOnly(items: readonly Item[], role: string): string {
  const [item] = items;
  assert.ok(items.length === 1 && item?.type === "message" && item.role === role, JSON.stringify(items));
  return textOf(item.content);
}

/** Nothing is stored besides the threads that the clients know, and the file is intact. */
function checkTables(file: string, clients: readonly Client[]): void {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const count = (table: string) => database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.["count"];
    assert.equal(
      count("turns"),
      clients.reduce((sum, { known }) => sum + known.length, 0),
    );
    assert.equal(count("sessions"), clients.filter(({ known }) => known.length > 0).length);
    assert.deepEqual(
      database
        .prepare("PRAGMA integrity_check")
        .all()
        .map((row) => row["integrity_check"]),
      ["ok"],
    );
  } finally {
    database.close();
  }
}
