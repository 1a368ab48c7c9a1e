import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { createGroup } from "../../src/stores/sqlite/group.ts";

test("a group keeps nothing of a tick in which the disk is full, and goes on when there is room again", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE pages (bytes BLOB); PRAGMA max_page_count = 20");
  const insert = database.prepare("INSERT INTO pages VALUES (zeroblob(?))");
  const group = createGroup(database);
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

test("a group undoes the whole tick when the database fails for a reason that is not an entry's own", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE entries (name TEXT)");
  const group = createGroup(database);
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

test("a group tells of its works in their order, once they are durable and before anyone hears of them", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE entries (name TEXT PRIMARY KEY)");
  const insert = database.prepare("INSERT INTO entries VALUES (?)");
  const group = createGroup(database);
  const heard: string[] = [];
  const add = (name: string) =>
    group
      .add(
        () => insert.run(name),
        () => heard.push(`${name} is ${database.isTransaction ? "written" : "durable"}`),
      )
      .then(() => heard.push(`${name} is told`));
  const outcomes = await Promise.allSettled([add("one"), add("one"), add("two")]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.deepEqual(heard, ["one is durable", "two is durable", "one is told", "two is told"]);
  database.close();
});
