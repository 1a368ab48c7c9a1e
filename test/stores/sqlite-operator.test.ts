/** What the operator asks of the SQLite store while a gateway works on it. */
import assert from "node:assert/strict";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { test } from "node:test";
import type { StoredTurn } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { createPrepare } from "../../src/stores/sqlite/statement.ts";
import { createFindSurplus } from "../../src/stores/sqlite/surplus.ts";
import { createFiles } from "./files.ts";
import { keepSession, makeTurn, pruneAll, toMove } from "./making.ts";

const newFile = createFiles();

/** Counts how often others can proceed meanwhile. */
async function countTicks<Result>(work: Promise<Result>): Promise<{ readonly result: Result; readonly ticks: number }> {
  const progress = { isOver: false, ticks: 0 };
  const working = work.finally(() => (progress.isOver = true));
  for (; !progress.isOver; progress.ticks += 1) await new Promise((resolve) => setImmediate(resolve));
  return { result: await working, ticks: progress.ticks };
}

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

test("requests continue while the SQLite store finds a page among many sessions of one hour", async (context) => {
  const file = newFile();
  const store = createSqliteStore({ file });
  context.after(() => store.close());
  const [hour, count] = [500_000, 21_000];
  const database = new DatabaseSync(file);
  const add = database.prepare("INSERT INTO sessions (id, owner, created, updated, active) VALUES (?, ?, 0, ?, ?)");
  database.exec("BEGIN");
  for (const [before, size] of [
    [1, 2],
    [0, count],
  ] as const) {
    for (let index = 0; index < size; index += 1) {
      // Two at a time, in an order of their own.
      const updated = (hour - before) * 3_600_000 + ((index * 7_919) % (count / 2));
      add.run(`conv_${before}_${index}`, index % 2 === 0 ? "alice" : "bob", updated, hour - before);
    }
  }
  database.exec("COMMIT");
  const expected = database.prepare("SELECT id, owner FROM sessions ORDER BY updated DESC, rowid DESC").all();
  database.close();

  for (const owner of [undefined, "alice"]) {
    const ids = expected.filter((row) => owner === undefined || row["owner"] === owner).map(({ id }) => String(id));
    for (const place of [-1, 5, 1_234, ids.length - 4]) {
      const progress = { isOver: false, ticks: 0 };
      const after = place === -1 ? undefined : ids[place];
      const listed = store.listSessions({ owner, after, limit: 3 }).finally(() => (progress.isOver = true));
      while (!progress.isOver) {
        await new Promise((resolve) => setImmediate(resolve));
        progress.ticks += 1;
      }
      assert.ok(progress.ticks > 1, `${progress.ticks} ticks`);
      assert.deepEqual(
        (await listed).map(({ id }) => id),
        ids.slice(place + 1, place + 4),
      );
    }
  }
});

test("requests continue while the SQLite store finds what an owner has too many, the longest idle first", async (context) => {
  const file = newFile();
  await createSqliteStore({ file }).close();
  const database = new DatabaseSync(file);
  context.after(() => database.close());
  const add = database.prepare("INSERT INTO sessions (id, owner, created, updated, active) VALUES (?, ?, 0, ?, ?)");
  const count = 21_000;
  database.exec("BEGIN");
  for (let index = 0; index < count; index += 1) {
    const hour = index < 3 ? 1 : 2;
    const updated = hour * 3_600_000 + ((index * 7_919) % (count / 2));
    add.run(`conv_${index}`, index % 7 === 0 ? "bob" : "alice", updated, hour);
  }
  database.exec("COMMIT");
  const rows = database.prepare("SELECT id FROM sessions WHERE owner = 'alice' ORDER BY updated, rowid").all();
  const expected = rows.map(({ id }) => String(id));
  const findSurplus = createFindSurplus({ prepare: createPrepare(database), read: (look) => look() });
  const find = async (surplus: number, inUse: ReadonlySet<string> = new Set()) => {
    const { result, ticks } = await countTicks(findSurplus(expected.length - surplus, inUse));
    return { ids: result.sessions.map(({ id }) => id), isAll: result.isAll, ticks };
  };
  const some = await find(1_000);
  assert.deepEqual([some.ids, some.isAll], [expected.slice(0, 1_000), true]);
  assert.ok(some.ticks > 2 * 3, `${some.ticks} ticks`);
  const none = await find(0);
  assert.deepEqual([none.ids, none.isAll], [[], true]);
  const many = await find(5_000, new Set(expected.slice(0, 10)));
  assert.deepEqual([many.ids, many.isAll], [expected.slice(10, 2_010), false]);
  const used = await find(5_000, new Set(expected.slice(1)));
  assert.deepEqual([used.ids, used.isAll], [expected.slice(0, 1), true]);
});

test("the SQLite store counts sessions of many hours at once, and lets requests continue while it reads hour by hour", async (context) => {
  const file = newFile();
  await createSqliteStore({ file }).close();
  const database = new DatabaseSync(file);
  context.after(() => database.close());
  const add = database.prepare(
    "INSERT INTO sessions (id, owner, created, updated, active) VALUES (?, 'alice', 0, ?, ?)",
  );
  const count = 500;
  for (let hour = 0; hour < count; hour += 1) add.run(`conv_${hour}`, hour * 3_600_000, hour);
  const findSurplus = createFindSurplus({ prepare: createPrepare(database), read: (look) => look() });
  const none = await countTicks(findSurplus(count, new Set()));
  assert.ok(none.ticks < 5, `${none.ticks} ticks`);
  const all = await countTicks(findSurplus(0, new Set()));
  assert.equal(all.result.sessions.length, count);
  assert.ok(all.ticks > none.ticks + 3, `${all.ticks} ticks`);
});

test("the SQLite store deletes what an owner has too many, and others instead of what was used since it was found", async (context) => {
  const clock = { time: new Date(0) };
  const store = createSqliteStore({ file: newFile(), now: () => clock.time });
  context.after(() => store.close());
  const kept: StoredTurn[] = [];
  for (let index = 0; index < 260; index += 1) {
    clock.time = new Date(index * 1_000);
    kept.push(await keepSession(store, {}));
  }
  const inUse = new Set<string>();
  const rules = { maxSessionsPerOwner: 10, inUse: () => inUse };
  assert.equal((await store.prune(rules)).more, true);
  const [continued, resumed] = [kept[240]!, kept[241]!];
  const next = makeTurn({ session: continued.session, parent: continued.id });
  assert.equal(await store.commit({ turns: [next], session: toMove(next, continued.id, "refuse") }), true);
  inUse.add(resumed.session!);
  await pruneAll(store, rules);
  const left = await Promise.all(kept.map(({ session }) => store.readSession(session!)));
  const expected = [continued, resumed, ...kept.slice(-8)].map(({ session }) => session);
  assert.deepEqual(
    left.flatMap((session) => session?.id ?? []),
    expected,
  );
});

test("the SQLite store keeps as many sessions as an owner may have if others are deleted after it found too many", async (context) => {
  for (const deleted of [5, 52]) {
    const store = createSqliteStore({ file: newFile() });
    context.after(() => store.close());
    const kept = await Promise.all(Array.from({ length: 260 }, () => keepSession(store, {})));
    const rules = { maxSessionsPerOwner: 10 };
    assert.equal((await store.prune(rules)).more, true);
    await Promise.all(kept.slice(-deleted).map(({ session }) => store.deleteSession("alice", session!)));
    await pruneAll(store, rules);
    const left = await Promise.all(kept.map(({ session }) => store.readSession(session!)));
    // By then, the first two hundred are gone.
    assert.deepEqual(
      left.flatMap((session) => session?.id ?? []),
      kept
        .slice(200, -deleted)
        .slice(-10)
        .map(({ session }) => session),
    );
  }
});

test("a page of the SQLite store is full, and of one owner, even if sessions are deleted while it is found", async (context) => {
  const file = newFile();
  const store = createSqliteStore({ file });
  context.after(() => store.close());
  const database = new DatabaseSync(file);
  const add = database.prepare("INSERT INTO sessions (id, owner, created, updated, active) VALUES (?, ?, 0, ?, 1)");
  database.exec("BEGIN");
  for (let index = 0; index < 6_000; index += 1) add.run(`conv_${index}`, "alice", index);
  database.exec("COMMIT");
  const listed = [store.listSessions({ limit: 3 }), store.listSessions({ owner: "alice", limit: 3 })];
  // By now the first part has been compared. The number of one that is gone is free for another.
  database.exec("DELETE FROM sessions WHERE id = 'conv_5999'");
  add.run("conv_other", "bob", 0);
  database.exec("UPDATE sessions SET deleted = 1 WHERE id = 'conv_5997'");
  database.close();
  for (const page of await Promise.all(listed)) {
    assert.deepEqual(
      page.map(({ id }) => id),
      ["conv_5998", "conv_5996", "conv_5995"],
    );
  }
});

test("requests continue while the SQLite store reads how the many sessions of a page began", async (context) => {
  const store = createSqliteStore({ file: newFile() });
  context.after(() => store.close());
  const turns = await Promise.all(Array.from({ length: 100 }, () => keepSession(store, {})));
  const { result, ticks } = await countTicks(store.listSessions({ limit: 99 }));
  const ids = turns.map(({ session }) => session).toReversed();
  assert.deepEqual(
    result.map(({ id }) => id),
    ids.slice(0, 99),
  );
  assert.ok(ticks > 3, `${ticks} ticks`);
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

test("the SQLite store exports the rest without looking at each turn that is being deleted", async (context) => {
  const file = newFile();
  const store = createSqliteStore({ file });
  context.after(() => store.close());
  for (let count = 0; count < 40; count += 1) await keepSession(store, {});
  const database = new DatabaseSync(file);
  database.exec("UPDATE sessions SET deleted = 1 WHERE rowid < 40");
  database.close();
  const look = context.mock.method(StatementSync.prototype, "get");
  const records = await Array.fromAsync(store.exportRecords());
  assert.equal(records.filter(({ type }) => type === "turn").length, 1);
  assert.ok(look.mock.callCount() < 40, `${look.mock.callCount()} look-ups`);
});
