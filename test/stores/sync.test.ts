import assert from "node:assert/strict";
import fs, { fstatSync, statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setImmediate as breathe } from "node:timers/promises";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createGroup } from "../../src/stores/sqlite/group.ts";
import { createSync } from "../../src/stores/sqlite/sync.ts";
import { createFiles, look } from "./files.ts";
import { makeTurn } from "./making.ts";

const newFile = createFiles();
const unhurried = { pause: () => undefined, noteWrite: () => {} };

/** Writes into a file whose disk answers when the test says so. */
function open(context: TestContext) {
  const file = newFile();
  const database = openDatabase(file);
  database.exec("PRAGMA busy_timeout = 0");
  const asked: PromiseWithResolvers<void>[] = [];
  const sync = createSync(database, file, () => {
    const answer = Promise.withResolvers<void>();
    asked.push(answer);
    return answer.promise;
  })!;
  const group = createGroup(database, unhurried, sync.whenOnDisk);
  const insert = database.prepare("INSERT INTO meta (key, value) VALUES (?, x'')");
  const told: string[] = [];
  context.after(async () => {
    await group.close();
    sync.close();
    database.close();
  });
  return {
    file,
    asked,
    told,
    async write(name: string) {
      const written = group
        .add(() => insert.run(name))
        .then(
          () => told.push(name),
          (thrown: { readonly message: string }) => told.push(`${name}: ${thrown.message}`),
        );
      await breathe();
      return { written };
    },
    isThere: (name: string) => look(file, `SELECT count(*) AS value FROM meta WHERE key = '${name}'`) === 1,
  };
}

test("what is written is told when it is on the disk, and whoever comes meanwhile shares the next sync", async (context) => {
  const { write, asked, told, isThere } = open(context);
  const first = await write("one");
  await write("two");
  const third = await write("three");
  assert.deepEqual([asked.length, told, isThere("three")], [1, [], true]);
  asked[0]!.resolve();
  await first.written;
  await breathe();
  assert.deepEqual([asked.length, told], [2, ["one"]]);
  asked[1]!.resolve();
  await third.written;
  assert.deepEqual([asked.length, told], [2, ["one", "two", "three"]]);
  const last = await write("four");
  assert.equal(asked.length, 3);
  asked[2]!.resolve();
  await last.written;
});

test("a log that could not be brought to the disk is taken over into the file, where all that is told is", async (context) => {
  const { file, write, asked, told } = open(context);
  const { written } = await write("one");
  assert.notEqual(statSync(`${file}-wal`).size, 0);
  asked[0]!.reject(new Error("EIO: i/o error, fdatasync"));
  await written;
  assert.deepEqual([told, statSync(`${file}-wal`).size], [["one"], 0]);
  const { written: next } = await write("two");
  asked[1]!.resolve();
  await next;
  assert.deepEqual(told, ["one", "two"]);
});

test("a log that cannot be taken over either is not believed until it was", async (context) => {
  const { file, write, asked, told } = open(context);
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec("BEGIN; SELECT * FROM meta");
  const { written } = await write("one");
  asked[0]!.reject(new Error("EIO: i/o error, fdatasync"));
  await written;
  const { written: next } = await write("two");
  await next;
  const refusal = "The session store cannot keep turns now: the gateway's log has the cause. Try again in a moment.";
  assert.deepEqual(told, [`one: ${refusal}`, `two: ${refusal}`]);
  reader.close();
  const { written: last } = await write("three");
  await last;
  assert.deepEqual([told.at(-1), asked.length, statSync(`${file}-wal`).size], ["three", 1, 0]);
});

test("a store tells of a turn when the log of its file is on the disk, and closes when all is told", async (context) => {
  const brought: { readonly log: number; readonly done: () => void }[] = [];
  context.mock.method(fs, "fdatasync", (log: number, done: () => void) => void brought.push({ log, done }));
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const file = newFile();
  const store = createSqliteStore({ file });
  const heard: string[] = [];
  const committed = store.commit({ turns: [makeTurn({})] }).then(() => heard.push("committed"));
  const closed = store.close().then(() => heard.push("closed"));
  for (let rounds = 0; rounds < 20; rounds += 1) await breathe();
  assert.deepEqual([heard, brought.length], [[], 1]);
  assert.equal(fstatSync(brought[0]!.log).ino, statSync(`${file}-wal`).ino);
  brought[0]!.done();
  await Promise.all([committed, closed]);
  assert.deepEqual(heard, ["committed", "closed"]);
});
