import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import type { Worker } from "node:worker_threads";
import { createCheckpoints } from "../../src/stores/sqlite/checkpoints.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createGroup } from "../../src/stores/sqlite/group.ts";
import { createFiles } from "./files.ts";

const newFile = createFiles();
const limits = { lookMs: 1, minPages: 20, maxPages: 100, restMs: 60_000 };

/** A file with one table, and writes that go through a group. */
function open(file: string, wanted: Parameters<typeof createCheckpoints>[3] = {}) {
  const database = openDatabase(file);
  database.exec("CREATE TABLE IF NOT EXISTS pages (number INTEGER PRIMARY KEY, bytes BLOB)");
  const warnings: string[] = [];
  const warned = Promise.withResolvers<string>();
  const warn = (message: string) => {
    warnings.push(message);
    warned.resolve(message);
  };
  const checkpoints = createCheckpoints(database, file, warn, { ...limits, ...wanted });
  const group = createGroup(database, checkpoints);
  const insert = database.prepare("INSERT INTO pages (bytes) VALUES (randomblob(20000))");
  const readLog = database.prepare("PRAGMA wal_checkpoint(NOOP)");
  return {
    checkpoints,
    database,
    warnings,
    /** The first warning. */
    warned: warned.promise,
    write: () => group.add(() => insert.run()),
    /** How many pages are in the log now. */
    logLength: () => Number(readLog.get()?.["log"]),
    async close() {
      group.close();
      await checkpoints.close();
      database.close();
    },
  };
}

describe("the log of the SQLite store", () => {
  test("stays short under constant load, as it restarts when writes pause for a checkpoint", async () => {
    const file = newFile();
    const store = open(file);
    const written = await writeUntilRestarted(store, 5);
    assert.equal(store.database.prepare("SELECT count(*) AS count FROM pages").get()?.count, written);
    await store.close();
    assert.ok(!existsSync(`${file}-wal`), "nothing is left open, and the log is checkpointed");
    const database = new DatabaseSync(file);
    assert.equal(database.prepare("SELECT count(*) AS count FROM pages").get()?.count, written);
    assert.equal(database.prepare("PRAGMA integrity_check").get()?.integrity_check, "ok");
    database.close();
  });

  test("is emptied for a deletion, even during a checkpoint", async () => {
    const file = newFile();
    const store = open(file);
    let before = 0;
    while (store.logLength() >= before) {
      before = store.logLength();
      await store.write();
    }
    for (let round = 0; round < 5; round += 1) {
      for (let count = 0; count < limits.minPages; count += 1) await store.write();
      await Promise.all([store.checkpoints.emptyLog(), store.checkpoints.emptyLog()]);
      assert.equal(statSync(`${file}-wal`).size, 0);
    }
    // A checkpoint may still be waiting for its turn; of an empty log there will be no other.
    await store.checkpoints.emptyLog();
    await Promise.all([store.checkpoints.emptyLog(), store.write()]);
    assert.ok(statSync(`${file}-wal`).size > 0, "nobody writes before it is emptied");
    await store.close();
  });

  test("is emptied the next time when it could not be emptied once, and nobody waits for a reader", async (context) => {
    const file = newFile();
    const store = open(file);
    await store.write();
    const fail = (): never => {
      throw new Error("disk I/O error");
    };
    context.mock.method(store.database, "exec", fail, { times: 1 });
    await assert.rejects(store.checkpoints.emptyLog(), { code: "store_unavailable" });
    const patience = { timeout: 20_000 };
    store.database.exec(`PRAGMA busy_timeout = ${patience.timeout}`);
    const reader = new DatabaseSync(file);
    reader.exec("BEGIN; SELECT count(*) FROM pages");
    const since = performance.now();
    await store.checkpoints.emptyLog();
    assert.ok(performance.now() - since < patience.timeout / 2);
    assert.ok(statSync(`${file}-wal`).size > 0);
    assert.deepEqual({ ...store.database.prepare("PRAGMA busy_timeout").get() }, patience);
    reader.close();
    await store.checkpoints.emptyLog();
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.checkpoints.close();
    const late = store.checkpoints.emptyLog();
    store.database.close();
    await late;
  });

  test("is neither checkpointed nor emptied while it may not be on the disk", async () => {
    const file = newFile();
    let isOnDisk = false;
    const requireOnDisk = () => assert.ok(isOnDisk);
    const store = open(file, { requireSynced: requireOnDisk });
    const threads: Worker[] = [];
    const countThread = (thread: Worker) => void threads.push(thread);
    process.on("worker", countThread);
    for (let count = 0; count < 2 * limits.minPages; count += 1) await store.write();
    await store.checkpoints.emptyLog();
    process.off("worker", countThread);
    assert.deepEqual(threads, []);
    assert.ok(store.logLength() > 2 * limits.minPages);
    isOnDisk = true;
    await store.checkpoints.emptyLog();
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.close();
  });

  test("is checkpointed between writes when the thread cannot open the file, and no other file is created", async () => {
    const file = newFile();
    const store = open(file);
    renameSync(file, `${file}.moved`);
    for (let count = 0; count < limits.minPages; count += 1) await store.write();
    assert.match(await store.warned, /The session store .* between requests .*unable to open database file/);
    await staysShort(store);
    await store.close();
    assert.ok(!existsSync(file));
  });

  test("is checkpointed between writes when the thread has died, and what waited for it continues", async () => {
    const store = open(newFile());
    const started = once(process, "worker");
    for (let count = 0; count < limits.minPages; count += 1) await store.write();
    const [thread] = (await started) as [Worker];
    const emptied = store.checkpoints.emptyLog();
    const written = store.write();
    await thread.terminate();
    await Promise.all([emptied, written]);
    assert.match(await store.warned, /its thread has ended/);
    await staysShort(store);
    await store.close();
  });

  test("is checkpointed by a thread again once that works, without a restart and with one warning", async () => {
    const file = newFile();
    const store = open(file, { ...limits, restMs: 0 });
    // Such a statement reports the state at the time it was prepared.
    const isAlone = () => store.database.prepare("PRAGMA wal_autocheckpoint").get()?.["wal_autocheckpoint"] !== 0;
    renameSync(file, `${file}.moved`);
    const threads: Worker[] = [];
    const countThread = (thread: Worker) => void threads.push(thread);
    process.on("worker", countThread);
    await writeUntil(store, () => threads.length === 3);
    assert.ok(isAlone());
    renameSync(`${file}.moved`, file);
    await writeUntil(store, () => !isAlone());
    process.off("worker", countThread);
    assert.equal(store.warnings.length, 1);
    assert.match(store.warnings.join(), /for now.*unable to open database file\. .* is retried every 0 seconds/);
    await writeUntilRestarted(store, 2);
    await store.close();
  });

  test("is checked again when its folder was unreadable for a while", async () => {
    const file = newFile();
    const folder = dirname(file);
    const store = open(file);
    renameSync(folder, `${folder}.moved`);
    symlinkSync(folder, folder);
    await store.write();
    // Timers fire in order, so the log has been checked after this one.
    await new Promise((resolve) => setTimeout(resolve, limits.lookMs));
    await store.write();
    rmSync(folder);
    renameSync(`${folder}.moved`, folder);
    const started = once(process, "worker");
    for (let count = 0; count < limits.minPages; count += 1) await store.write();
    await started;
    await store.close();
  });

  test("keeps a process alive while it is emptied, and no longer", async () => {
    const file = JSON.stringify(newFile());
    const sources = new URL("../../src/stores/sqlite/", import.meta.url).href;
    const source = `
      import { openDatabase } from "${sources}database.ts";
      import { createCheckpoints } from "${sources}checkpoints.ts";
      const database = openDatabase(${file});
      database.exec("CREATE TABLE pages AS SELECT randomblob(1000000)");
      const alive = setInterval(() => {}, 1_000);
      const checkpoints = createCheckpoints(database, ${file}, console.warn, ${JSON.stringify(limits)});
      checkpoints.noteWrite();
      await new Promise((resolve) => process.once("worker", resolve));
      clearInterval(alive);
      await checkpoints.emptyLog();`;
    // The flags of the process do not apply to the thread.
    const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", source], { stdio: "inherit" });
    assert.deepEqual(await once(child, "close"), [0, null]);
  });
});

/** Returns how much it wrote. */
async function writeUntil({ write }: ReturnType<typeof open>, isEnough: () => boolean): Promise<number> {
  let written = 0;
  while (!isEnough()) {
    await write();
    written += 1;
    assert.ok(written < 5_000);
  }
  return written;
}

/** Writes until the log has restarted so many times; returns how much it wrote. */
function writeUntilRestarted(store: ReturnType<typeof open>, times: number): Promise<number> {
  let [beginnings, before] = [0, 0];
  return writeUntil(store, () => {
    const length = store.logLength();
    if (length < before) beginnings += 1;
    before = length;
    return beginnings === times;
  });
}

async function staysShort({ write, logLength }: ReturnType<typeof open>): Promise<void> {
  // The first checkpoints what is there, the second restarts the log.
  for (let count = 0; count < 2; count += 1) await write();
  let longest = 0;
  for (let count = 0; count < 100; count += 1) {
    await write();
    longest = Math.max(longest, logLength());
  }
  assert.ok(longest < limits.maxPages, `${longest} pages`);
}
