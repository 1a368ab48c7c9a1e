import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { createGroup } from "../../src/stores/sqlite/group.ts";

const noCheckpoints = { pause: () => undefined, noteWrite: () => {} };

test("a group stores nothing of a tick in which the disk is full, and continues when there is room again", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE pages (bytes BLOB); PRAGMA max_page_count = 20");
  const insert = database.prepare("INSERT INTO pages VALUES (zeroblob(?))");
  const group = createGroup(database, noCheckpoints);
  const add = (size: number) => group.add(() => insert.run(size).changes === 1);
  const outcomes = await Promise.allSettled([add(1), add(1_000_000), add(1)]);
  for (const outcome of outcomes) {
    assert.equal(outcome.status, "rejected");
    assert.equal(outcome.reason.code, "store_unavailable");
    assert.match(String(outcome.reason.cause), /full/);
  }
  const count = database.prepare("SELECT count(*) AS count FROM pages");
  assert.deepEqual({ ...count.get() }, { count: 0 });
  database.exec("PRAGMA max_page_count = 1000");
  assert.equal(await add(1_000_000), true);
  assert.deepEqual({ ...count.get() }, { count: 1 });
  database.close();
});

test("a group undoes the whole tick when the database fails for a reason that is not one entry's own", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE entries (name TEXT)");
  const group = createGroup(database, noCheckpoints);
  const add = (statement: string) =>
    group.add(() => {
      database.exec(statement);
      return true;
    });
  const insert = "INSERT INTO entries VALUES ('kept')";
  const outcomes = await Promise.allSettled([insert, "DELETE FROM nowhere", insert].map(add));
  assert.ok(outcomes.every(({ status }) => status === "rejected"));
  assert.equal(await add(insert), true);
  assert.equal(database.prepare("SELECT count(*) AS count FROM entries").get()?.count, 1);
  database.close();
});

test("a group stores the other entries of a tick when some are invalid", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE entries (number INTEGER PRIMARY KEY, bytes BLOB)");
  const group = createGroup(database, noCheckpoints);
  const values = ["1, ''", "1, 'again'", "2, zeroblob(2000000000)", "'three', ''", "4, ''"];
  const outcomes = await Promise.allSettled(
    values.map((each) => group.add(() => database.exec(`INSERT INTO entries VALUES (${each})`))),
  );
  const expected = ["fulfilled", "rejected", "rejected", "rejected", "fulfilled"];
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    expected,
  );
  assert.equal(database.prepare("SELECT count(*) AS count FROM entries").get()?.count, 2);
  database.close();
});

test("a group runs its callbacks in order, once the entries are durable and before any promise resolves", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE entries (name TEXT PRIMARY KEY)");
  const insert = database.prepare("INSERT INTO entries VALUES (?)");
  const group = createGroup(database, noCheckpoints);
  const events: string[] = [];
  const add = (name: string) =>
    group
      .add(
        () => insert.run(name),
        () => events.push(`${name} is ${database.isTransaction ? "written" : "durable"}`),
      )
      .then(() => events.push(`${name} is told`));
  const outcomes = await Promise.allSettled([add("one"), add("one"), add("two")]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.deepEqual(events, ["one is durable", "two is durable", "one is told", "two is told"]);
  database.close();
});

test("a group waits for a checkpoint, writes everything that arrived meanwhile together, and reports the write", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE entries (name TEXT)");
  const insert = database.prepare("INSERT INTO entries VALUES ('kept')");
  const count = database.prepare("SELECT count(*) AS count FROM entries");
  const { promise, resolve } = Promise.withResolvers<void>();
  let pause: Promise<void> | undefined = promise;
  let writes = 0;
  const group = createGroup(database, { pause: () => pause, noteWrite: () => (writes += 1) });
  const first = group.add(() => insert.run());
  await new Promise((done) => setImmediate(done));
  const second = group.add(() => insert.run());
  await new Promise((done) => setImmediate(done));
  assert.deepEqual([count.get()?.count, writes], [0, 0]);
  pause = undefined;
  resolve();
  await Promise.all([first, second]);
  assert.deepEqual([count.get()?.count, writes], [2, 1]);
  pause = new Promise(() => {});
  const last = group.add(() => insert.run());
  group.close();
  await last;
  assert.equal(count.get()?.count, 3);
  database.close();
});
