import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { createFileCheck } from "../../src/stores/sqlite/check.ts";
import { createCheckpoints } from "../../src/stores/sqlite/checkpoints.ts";
import { openDatabase } from "../../src/stores/sqlite/database.ts";
import { createAccess } from "../../src/stores/sqlite/access.ts";
import { createFiles, look } from "./files.ts";
import { makeTurn } from "./making.ts";

const newFile = createFiles();

/** A store's check on a file with a limited size, and with a manual clock. */
function open(context: TestContext) {
  const database = openDatabase(":memory:");
  context.after(() => database.close());
  let time = 0;
  const checkpoints = createCheckpoints(database, ":memory:", () => assert.fail("there is no thread to warn about"));
  const access = createAccess(
    database,
    checkpoints,
    undefined,
    () => {},
    () => new Date(time),
    0,
  );
  const write = database.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, zeroblob(?))");
  const countPages = () => Number(database.prepare("PRAGMA page_count").get()?.["page_count"]);
  const setMost = (pages: number) => database.exec(`PRAGMA max_page_count = ${pages}`);
  return {
    check: createFileCheck(access, () => {}),
    keep: (name: string, bytes: number) => access.group.add(() => write.run(name, bytes)),
    storeNothing: () => access.group.add(() => 0),
    /** How large the check's own write was. */
    trials: () => database.prepare("SELECT length(value) AS bytes FROM meta WHERE key = 'checked'").get()?.["bytes"],
    forgetTrials: () => database.exec("DELETE FROM meta WHERE key = 'checked'"),
    fill: () => setMost(countPages()),
    /** 40 KB are left: enough for a small write, but not for a turn. */
    fillAlmost: () => setMost(countPages() + 10),
    makeRoom: () => setMost(1_000),
    wait: (ms: number) => (time += ms),
  };
}

const full = {
  code: "store_unavailable",
  retryAfterSeconds: 1,
  message:
    "The session store cannot save turns now: its disk is full. Make room there; a running gateway then continues by itself.",
};

describe("whether turns can be stored", () => {
  test("is known from the last write for five seconds, and then tested with a small one", async (context) => {
    const store = open(context);
    await store.keep("turn", 10);
    store.wait(4_999);
    await store.check();
    assert.equal(store.trials(), undefined);
    store.wait(1);
    await Promise.all([store.check(), store.check()]);
    assert.equal(store.trials(), 0);
    store.forgetTrials();
    store.wait(4_999);
    await store.check();
    assert.equal(store.trials(), undefined);
  });

  test("is tested again when the clock was set back", async (context) => {
    const store = open(context);
    await store.keep("turn", 10);
    store.wait(-1);
    await store.check();
    assert.equal(store.trials(), 0);
  });

  test("is denied for a second after a failed write, and then tested with the size of a turn", async (context) => {
    const store = open(context);
    store.fill();
    await assert.rejects(store.keep("turn", 100_000), full);
    await assert.rejects(store.check(), full);
    store.makeRoom();
    store.wait(999);
    await assert.rejects(store.check(), full);
    store.wait(1);
    await store.check();
    assert.equal(store.trials(), 65_536);
    store.wait(5_000);
    await store.check();
    assert.equal(store.trials(), 0);
  });

  test("is not proven by a small write into the rest of a full disk, nor by an empty one", async (context) => {
    const store = open(context);
    store.fillAlmost();
    await assert.rejects(store.keep("turn", 100_000), full);
    await store.keep("metadata", 10);
    await store.storeNothing();
    for (let second = 0; second < 3; second += 1) {
      await assert.rejects(store.check(), full);
      store.wait(1_000);
    }
    store.makeRoom();
    await store.check();
  });

  test("is not proven by a write that changed nothing", async (context) => {
    const store = open(context);
    await store.storeNothing();
    await store.check();
    assert.equal(store.trials(), 0);
  });
});

describe("the file of an open SQLite store", () => {
  const gone = { code: "store_unavailable", message: /its file was moved, deleted or replaced, or cannot be reached/ };
  const losses: Record<string, (file: string) => () => void> = {
    "is moved away": (file) => move(file, `${file}.moved`),
    "is replaced": (file) => {
      const putBack = move(file, `${file}.moved`);
      writeFileSync(file, "");
      return putBack;
    },
    "has lost its log": (file) => move(`${file}-wal`, `${file}-wal.moved`),
    "has lost its folder": (file) => move(dirname(file), `${dirname(file)}.moved`),
    "is behind a broken link": (file) => {
      const putBack = move(dirname(file), `${dirname(file)}.moved`);
      symlinkSync(dirname(file), dirname(file));
      return () => {
        rmSync(dirname(file));
        putBack();
      };
    },
  };
  function move(from: string, to: string): () => void {
    renameSync(from, to);
    return () => renameSync(to, from);
  }

  for (const [what, lose] of Object.entries(losses)) {
    test(`stores nothing while it ${what}, hides its path from callers, and resumes when it is restored`, async () => {
      const file = newFile();
      let time = 0;
      const store = createSqliteStore({ file, now: () => new Date(time) });
      const [before, lost, after] = [makeTurn({}), makeTurn({}), makeTurn({})];
      await store.commit({ turns: [before] });
      await store.check();
      const putBack = lose(file);
      // Concurrent checks share one result, and this one comes later.
      await new Promise(setImmediate);
      await assert.rejects(store.check(), gone);
      await assert.rejects(store.commit({ turns: [lost] }), gone);
      await assert.rejects(store.check(), ({ message, cause }: Error) => {
        assert.ok(!message.includes(dirname(file)));
        assert.match(String(cause), /sessions\.db/);
        return true;
      });
      putBack();
      time += 1_000;
      await store.check();
      await store.commit({ turns: [after] });
      await store.close();
      assert.equal(
        look(file, "SELECT group_concat(id ORDER BY rowid) AS value FROM turns"),
        `${before.id},${after.id}`,
      );
    });
  }

  test("is checked once for all concurrent checks, again for the next, and for every write", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.commit({ turns: [makeTurn({})] });
    await store.check();
    const putBack = move(file, `${file}.moved`);
    await store.check();
    await assert.rejects(store.commit({ turns: [makeTurn({})] }), gone);
    await assert.rejects(store.check(), gone);
    putBack();
    await store.close();
  });

  test("stores nothing once it was deleted, and closing creates no other", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    rmSync(dirname(file), { recursive: true });
    await assert.rejects(store.check(), gone);
    await assert.rejects(store.commit({ turns: [makeTurn({})] }), gone);
    await store.close();
    assert.ok(!existsSync(file));
  });

  test("has its log and its lock beside it, even when opened through a link", async () => {
    const file = newFile();
    const link = newFile();
    for (const path of [file, link]) mkdirSync(dirname(path));
    symlinkSync(file, link);
    const store = createSqliteStore({ file: link });
    await store.claim();
    const second = createSqliteStore({ file });
    await assert.rejects(second.claim(), /in use by another gateway/);
    await second.close();
    await store.commit({ turns: [makeTurn({})] });
    await store.check();
    assert.deepEqual(readdirSync(dirname(link)), ["sessions.db"]);
    await store.close();
  });

  test("is refused with a hint at the files beside it when one of them cannot be opened", () => {
    const file = newFile();
    mkdirSync(`${file}-shm`, { recursive: true });
    assert.throws(() => createSqliteStore({ file }), /cannot be opened: .*the files beside it whose names begin with/);
  });

  const isRoot = process.getuid?.() === 0;
  test(
    "is refused when it is read-only, and nothing is created beside it",
    { skip: isRoot && "root may write" },
    () => {
      const file = newFile();
      mkdirSync(dirname(file));
      writeFileSync(file, "");
      chmodSync(file, 0o400);
      assert.throws(
        () => createSqliteStore({ file }),
        /cannot be opened: EACCES.*may read and write it, .* and its folder/,
      );
      assert.deepEqual(readdirSync(dirname(file)), ["sessions.db"]);
    },
  );
});
