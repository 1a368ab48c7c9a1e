import assert from "node:assert/strict";
import fs, { fstatSync, readFileSync, statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setImmediate as breathe, setTimeout as wait } from "node:timers/promises";
import { turnsOf } from "../../src/core/place/path.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createAccess } from "../../src/stores/sqlite/access.ts";
import { createGroup } from "../../src/stores/sqlite/group.ts";
import { createSync } from "../../src/stores/sqlite/sync.ts";
import { createFiles, look } from "./files.ts";
import { keepThread, makeTurn, toMove } from "./making.ts";

const newFile = createFiles();
const noCheckpoints = { pause: () => undefined, noteWrite: () => {} };

/** Writes to a file whose disk responds on demand, or fails. */
function open(context: TestContext) {
  const file = newFile();
  const database = openDatabase(file);
  const asked: PromiseWithResolvers<void>[] = [];
  const warned: string[] = [];
  const disk = { broughtAgain: 0, fails: false };
  const sync = createSync(database, file, (message) => warned.push(message), {
    sync() {
      const answer = Promise.withResolvers<void>();
      asked.push(answer);
      return answer.promise;
    },
    syncNow() {
      if (disk.fails) throw ioError();
      disk.broughtAgain += 1;
    },
    restMs: 50,
  })!;
  const group = createGroup(database, noCheckpoints, sync.whenOnDisk, sync.requireSynced);
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
    warned,
    disk,
    sync,
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
    read: () => group.add(() => 0).then(() => told.push("read")),
    isThere: (name: string) => look(file, `SELECT count(*) AS value FROM meta WHERE key = '${name}'`) === 1,
    outcome: group.outcome,
  };
}

/** For everything that is opened from now on until the end of the test. */
function replaceSync(context: TestContext, sync: (log: number, done: (error?: Error | null) => void) => void): void {
  context.mock.method(fs, "fdatasync", sync);
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

const ioError = () => Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
const refusal =
  "The session store cannot save turns now: its disk is failing, or a quota is used up. Check both; a running gateway then continues by itself.";

test("a write is confirmed when it is on the disk, and later writes share the next sync", async (context) => {
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

test("an operation without a write waits for earlier writes, and causes no sync", async (context) => {
  const { write, read, asked, told } = open(context);
  await read();
  assert.deepEqual([asked.length, told], [0, ["read"]]);
  const { written } = await write("one");
  const isRead = read();
  await breathe();
  assert.deepEqual([asked.length, told], [1, ["read"]]);
  asked[0]!.resolve();
  await Promise.all([written, isRead]);
  assert.deepEqual([asked.length, told], [1, ["read", "one", "read"]]);
});

test("a log that failed to sync is rewritten, since the system drops what it could not write", async (context) => {
  const { file, write, asked, told, warned, disk, isThere } = open(context);
  const { written } = await write("one");
  const before = readFileSync(`${file}-wal`);
  asked[0]!.reject(ioError());
  await written;
  assert.deepEqual([told, disk.broughtAgain, isThere("one")], [["one"], 1, true]);
  assert.deepEqual(readFileSync(`${file}-wal`), before);
  assert.match(warned.join(), /could not be written to disk: EIO/);
  const { written: next } = await write("two");
  asked[1]!.resolve();
  await next;
  assert.deepEqual([told, disk.broughtAgain, warned.length], [["one", "two"], 1, 1]);
});

test("while a log cannot be rewritten either, nothing in it is confirmed and nothing is added to it", async (context) => {
  const { write, asked, told, disk, sync, isThere } = open(context);
  disk.fails = true;
  const { written } = await write("one");
  asked[0]!.reject(ioError());
  await written;
  const { written: next } = await write("two");
  await next;
  assert.deepEqual([told, isThere("two")], [[`one: ${refusal}`, `two: ${refusal}`], false]);
  assert.throws(sync.requireSynced, { code: "EIO" });
  disk.fails = false;
  assert.throws(sync.requireSynced, { code: "EIO" }, "it is not retried again and again");
  await wait(60);
  const { written: last } = await write("three");
  assert.deepEqual([asked.length, disk.broughtAgain], [2, 1]);
  asked[1]!.resolve();
  await last;
  assert.deepEqual([told.at(-1), isThere("three")], ["three", true]);
});

test("a write proves that others can be stored once it is on the disk", async (context) => {
  const { write, asked, outcome } = open(context);
  const { written } = await write("one");
  assert.equal(outcome.storedAt, undefined);
  asked[0]!.resolve();
  await written;
  assert.notEqual(outcome.storedAt, undefined);
});

test("SQLite itself syncs a log that restarts, and what it checkpoints", () => {
  const database = openDatabase(newFile());
  assert.equal(database.prepare("PRAGMA synchronous").get()?.["synchronous"], 1);
  database.close();
});

test("a store confirms a turn when its log is on the disk, and closes when everything is confirmed", async (context) => {
  const brought: { readonly log: number; readonly done: () => void }[] = [];
  replaceSync(context, (log, done) => void brought.push({ log, done }));
  const file = newFile();
  const store = createSqliteStore({ file });
  const events: string[] = [];
  const committed = store.commit({ turns: [makeTurn({})] }).then(() => events.push("committed"));
  const closed = store.close().then(() => events.push("closed"));
  for (let rounds = 0; rounds < 20; rounds += 1) await breathe();
  assert.deepEqual([events, brought.length], [[], 1]);
  assert.equal(fstatSync(brought[0]!.log).ino, statSync(`${file}-wal`).ino);
  brought[0]!.done();
  await Promise.all([committed, closed]);
  assert.deepEqual(events, ["committed", "closed"]);
  assert.throws(() => fstatSync(brought[0]!.log), { code: "EBADF" });
});

test("a key is on the disk before anything is sealed with it", async (context) => {
  let syncs = 0;
  const { fdatasync } = fs;
  replaceSync(context, (log, done) => {
    syncs += 1;
    fdatasync(log, done);
  });
  const store = createSqliteStore({ file: newFile() });
  await store.sealKeys();
  assert.equal(syncs, 1);
  await store.close();
});

test("a file that another process has only started is synced before turns are in its log", async (context) => {
  const file = newFile();
  fs.mkdirSync(dirname(file));
  const begun = new DatabaseSync(file);
  begun.exec("PRAGMA journal_mode = WAL");
  begun.close();
  const synced: number[] = [];
  const { fsyncSync } = fs;
  context.mock.method(fs, "fsyncSync", (descriptor: number) => {
    synced.push(fstatSync(descriptor).ino);
    fsyncSync(descriptor);
  });
  context.after(syncBuiltinESMExports);
  syncBuiltinESMExports();
  const store = createSqliteStore({ file });
  assert.deepEqual(synced, [statSync(file).ino]);
  await store.close();
});

for (const isLeft of [false, true]) {
  test(`turns that did not reach the disk are not in their session ${isLeft ? "for the next process" : "when it works again"}`, async (context) => {
    const disk = { fails: false };
    const { fdatasync, fdatasyncSync } = fs;
    replaceSync(context, (log, done) => (disk.fails ? done(ioError()) : fdatasync(log, done)));
    context.mock.method(fs, "fdatasyncSync", (log: number) => {
      if (disk.fails) throw ioError();
      fdatasyncSync(log);
    });
    syncBuiltinESMExports();
    const file = newFile();
    const store = createSqliteStore({ file, warn() {} });
    const [, second, third] = await keepThread(store, 3);
    const session = second!.session!;
    const fork = makeTurn({ session, parent: second!.id });
    const next = makeTurn({ session, parent: fork.id });
    disk.fails = true;
    const commits = [
      store.commit({ turns: [fork], session: toMove(fork, third!.id, "branch"), key: { key: "k", fingerprint: "f" } }),
      store.commit({ turns: [next], session: toMove(next, fork.id, "branch") }),
    ];
    for (const commit of commits) await assert.rejects(commit, { code: "store_unavailable" });
    await breathe();
    if (isLeft) await store.close();
    else await wait(1_050);
    disk.fails = false;
    const opened = isLeft ? createSqliteStore({ file }) : store;
    assert.equal((await opened.readSession(session))?.tip, third!.id);
    for (const { id, owner } of [fork, next]) assert.equal(await opened.findTurn(owner, id), undefined);
    assert.equal(await opened.findKey("alice", "k"), undefined);
    assert.equal(turnsOf(await opened.readPath(third!.id)).length, 3);
    await opened.close();
  });
}

test("a pending undo runs before anything is read, even after a failure, and again if its transaction is rolled back", async (context) => {
  const file = newFile();
  const database = openDatabase(file);
  context.after(() => database.close());
  const insert = database.prepare("INSERT OR IGNORE INTO meta (key, value) VALUES ('owed', x'')");
  const checkpoints = { ...noCheckpoints, emptyLog: async () => {}, close: async () => {} };
  const access = createAccess(
    database,
    checkpoints,
    undefined,
    () => {},
    () => new Date(),
  );
  let tries = 0;
  access.undoLater(() => {
    tries += 1;
    if (tries === 1) throw new Error("the file is held");
    insert.run();
  });
  const isThere = () => look(file, "SELECT count(*) AS value FROM meta WHERE key = 'owed'") === 1;
  await breathe();
  assert.deepEqual([tries, isThere()], [1, false]);
  const wrong = access.group.add(() => {
    throw new RangeError("wrong in itself");
  });
  await assert.rejects(wrong, RangeError);
  assert.deepEqual([tries, isThere()], [2, false]);
  for (let reads = 0; reads < 2; reads += 1) access.read(() => undefined);
  assert.deepEqual([tries, isThere()], [3, true]);
});
