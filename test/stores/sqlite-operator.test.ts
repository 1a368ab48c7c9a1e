/** What the operator asks of the SQLite store while a gateway works on it. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { StoredTurn } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { createFiles } from "./files.ts";
import { keepSession, makeTurn } from "./making.ts";

const newFile = createFiles();

test("requests continue while the SQLite store lists sessionless turns", async (context) => {
  const store = createSqliteStore({ file: newFile() });
  context.after(() => store.close());
  const turns: StoredTurn[] = [];
  for (let tree = 0; tree < 40; tree += 1) {
    for (let depth = 0; depth < 100; depth += 1) {
      turns.push(makeTurn({ parent: depth === 0 ? undefined : turns.at(-1)?.id }));
    }
  }
  await Promise.all(turns.map((turn) => store.commit({ turns: [turn] })));
  const gone = turns[0]!;
  const progress = { isOver: false, ticks: 0 };
  const listed = store.listSessionless({ limit: 100 }).finally(() => (progress.isOver = true));
  const deleted = store.deleteBelow("alice", gone.id).then(() => store.deleteTurn("alice", gone.id));
  while (!progress.isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    progress.ticks += 1;
  }
  assert.ok(progress.ticks > 3, `${progress.ticks} ticks`);
  const page = await listed;
  assert.ok(page.length >= 39, `${page.length} trees`);
  assert.equal(page[0]?.turns, 100);
  assert.equal(await deleted, true);
});

test("the SQLite store reads the content of the sessions of a page, and of no others of the same hour", async (context) => {
  const file = newFile();
  const store = createSqliteStore({ file, now: () => new Date("2026-11-17T12:30:00Z") });
  context.after(() => store.close());
  for (let count = 0; count < 3; count += 1) await keepSession(store, {});
  const [newest, , oldest] = await store.listSessions({ limit: 3 });
  const database = new DatabaseSync(file);
  database.prepare("UPDATE turns SET input = 'no JSON' WHERE session = ?").run(oldest!.id);
  database.close();
  assert.deepEqual(await store.listSessions({ limit: 1 }), [newest]);
  assert.deepEqual(await store.listSessions({ limit: 1, owner: newest!.owner }), [newest]);
  await assert.rejects(store.listSessions({ limit: 3 }), { code: "store_unavailable" });
});
