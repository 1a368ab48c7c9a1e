import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, watch, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import type { StoredTurn } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { toRow } from "../../src/stores/row.ts";
import { migrate, newestVersion, readVersion } from "../../src/stores/sqlite/schema.ts";
import { describeStore } from "./contract.ts";
import { createFiles, look, writeUnfinished } from "./files.ts";
import {
  findByDigest,
  findByExchange,
  fullTold,
  keepThread,
  makeTurn,
  newDigest,
  newSessionId,
  readTurns,
  toCreate,
  toMove,
} from "./making.ts";

const newFile = createFiles();

describeStore("the SQLite store in a file", (now) => createSqliteStore({ file: newFile(), now }));
describeStore("the SQLite store in memory, read back each time", (now) =>
  createSqliteStore({ file: ":memory:", maxRecentSize: 0, now }),
);

describe("the file of the SQLite store", () => {
  test("contains everything after a restart, and hints are still found", async () => {
    const file = newFile();
    const first = createSqliteStore({ file });
    const thread = await keepThread(first, 3);
    await first.close();
    const second = createSqliteStore({ file });
    assert.equal((await second.findSession("alice", "hint"))?.tip, thread[2]!.id);
    assert.deepStrictEqual(await readTurns(second, thread[2]!.id), thread);
    await second.close();
  });

  test("is not written to when it is only opened and closed", async () => {
    const file = newFile();
    await createSqliteStore({ file }).close();
    const before = readFileSync(file);
    await createSqliteStore({ file }).close();
    assert.deepEqual(readFileSync(file), before);
  });

  test("is private to its user, and so are its folder and its log", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.commit({ turns: [makeTurn({})] });
    const modes = [dirname(file), file, `${file}-wal`, `${file}-shm`].map((path) => statSync(path).mode & 0o777);
    assert.deepEqual(modes, [0o700, 0o600, 0o600, 0o600]);
    await store.close();
  });

  test("cannot be locked by another account, which could prevent the gateway from starting", async () => {
    const file = newFile();
    const modeOf = () => statSync(`${file}-gateway`).mode & 0o777;
    const first = createSqliteStore({ file });
    await first.claim();
    assert.equal(modeOf(), 0o600);
    await first.close();
    chmodSync(`${file}-gateway`, 0o644);
    const second = createSqliteStore({ file });
    await second.claim();
    assert.equal(modeOf(), 0o600);
    await second.close();
  });

  test("stays locked for other processes when its own claims it a second time", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.claim();
    const another = createSqliteStore({ file });
    await assert.rejects(another.claim(), { code: "store_unavailable" });
    const take = `new (require("node:sqlite").DatabaseSync)(${JSON.stringify(`${file}-gateway`)}).exec("BEGIN EXCLUSIVE")`;
    const [status] = await once(spawn(process.execPath, ["--eval", take], { stdio: "ignore" }), "exit");
    assert.notEqual(status, 0);
    await another.close();
    await store.close();
  });

  test("never contains a hint in clear text", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const turn = makeTurn({ session: newSessionId() });
    const hint = "erika.mustermann@example.test";
    await store.commit({ turns: [turn], session: toCreate(turn, hint) });
    await store.findSession("alice", hint);
    for (const name of [file, `${file}-wal`, `${file}-shm`]) assert.ok(!readFileSync(name).includes(hint), name);
    assert.ok(readFileSync(`${file}-wal`).includes(turn.id));
    await store.close();
    assert.ok(!readFileSync(file).includes(hint));
    assert.ok(readFileSync(file).includes(turn.id));
  });

  test("has its own hint key", async () => {
    const turn = makeTurn({ session: newSessionId() });
    const hashes = [];
    for (const file of [newFile(), newFile()]) {
      const store = createSqliteStore({ file });
      await store.commit({ turns: [turn], session: toCreate(turn, "same") });
      await store.close();
      hashes.push(look(file, "SELECT hex(hint) AS value FROM sessions"));
    }
    assert.match(String(hashes[0]), /^[0-9A-F]{64}$/);
    assert.notEqual(hashes[0], hashes[1]);
  });

  test("records when a session was created and last used", async () => {
    const file = newFile();
    let time = 1_000;
    const store = createSqliteStore({ file, now: () => new Date(time) });
    const first = makeTurn({ session: newSessionId() });
    const second = makeTurn({ session: first.session, parent: first.id });
    await store.commit({ turns: [first], session: toCreate(first, "hint") });
    time = 2_000;
    const move = {
      id: first.session!,
      hint: "hint",
      expectedTip: first.id,
      otherwise: "refuse",
      resends: false,
    } as const;
    assert.equal(await store.commit({ turns: [second], session: move }), true);
    await store.close();
    assert.equal(look(file, "SELECT created || ' ' || updated AS value FROM sessions"), "1000 2000");
  });

  test("deletes the turns of a deleted session with it", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await keepThread(store, 3);
    await store.close();
    const database = new DatabaseSync(file);
    database.exec("DELETE FROM sessions");
    database.close();
    assert.equal(look(file, "SELECT count(*) AS value FROM turns"), 0);
    assert.equal(look(file, "SELECT auto_vacuum AS value FROM pragma_auto_vacuum"), 2);
  });

  test("is upgraded from the first release, and finds new turns by their content", async () => {
    const file = newFile();
    const [root, old] = writeVersion(file, 1);
    const store = createSqliteStore({ file });
    const sessionId = root.session!;
    assert.deepStrictEqual(await store.readSession(sessionId), {
      id: sessionId,
      owner: "alice",
      tip: old.id,
      resends: false,
      createdAt: new Date(1),
      metadata: {},
    });
    assert.deepStrictEqual(await readTurns(store, old.id), [root, old]);
    assert.equal(await store.countThreads(sessionId), 1);
    const marks = { digest: newDigest(), exchange: newDigest() };
    const turn = makeTurn({ session: sessionId, parent: old.id, ...marks });
    const move = { id: sessionId, expectedTip: old.id, otherwise: "refuse", resends: true } as const;
    assert.equal(await store.commit({ turns: [turn], session: move }), true);
    assert.deepStrictEqual(await readTurns(store, turn.id), [root, old, turn]);
    assert.deepStrictEqual(await findByDigest(store, sessionId, [newDigest(), marks.digest]), {
      id: turn.id,
      index: 1,
      hasChildren: false,
    });
    assert.deepEqual(await findByExchange(store, sessionId, marks.exchange), [turn.id]);
    assert.equal((await store.readSession(sessionId))?.resends, true);
    await store.close();
    assert.equal(look(file, "SELECT user_version AS value FROM pragma_user_version"), newestVersion);
  });

  test("is upgraded from the second release: no delivery records yet, and idle sessions are found", async () => {
    const file = newFile();
    const [root, old] = writeVersion(file, 2);
    const store = createSqliteStore({ file, now: () => new Date(2_000) });
    assert.deepStrictEqual(await readTurns(store, old.id), [root, old]);
    assert.equal((await store.findTurn("alice", root.id))?.told, undefined);
    const session = await store.readSession(root.session!);
    assert.deepEqual([session?.createdAt, session?.metadata], [new Date(1), {}]);
    const told = makeTurn({ told: fullTold });
    await store.commit({ turns: [told], key: { key: "key", fingerprint: "print" } });
    assert.deepStrictEqual(await store.findTurn("alice", told.id), told);
    assert.equal((await store.findKey("alice", "key"))?.turnId, told.id);
    const pruned = await store.prune({ idleBefore: new Date(2) });
    assert.deepEqual(pruned, { sessions: 1, turns: 2, more: false });
    assert.deepEqual(await readTurns(store, old.id), []);
    await store.close();
  });

  test("is upgraded from the third release, and finds old and new turns by their last exchange", async () => {
    const file = newFile();
    const [root, old] = writeVersion(file, 3);
    const exchange = newDigest();
    const database = new DatabaseSync(file);
    database.prepare("UPDATE turns SET exchange = ? WHERE id = ?").run(exchange, old.id);
    database.close();
    const store = createSqliteStore({ file });
    const turn = makeTurn({ session: root.session, parent: old.id, exchange });
    assert.equal(await store.commit({ turns: [turn] }), true);
    assert.deepEqual(await findByExchange(store, root.session!, exchange), [turn.id, old.id]);
    assert.deepEqual(await findByExchange(store, newSessionId(), exchange), []);
    assert.deepStrictEqual(await readTurns(store, turn.id), [root, { ...old, exchange }, turn]);
    await store.close();
  });

  test("is upgraded from the fourth release, and failed turns from before can be pruned", async () => {
    const file = newFile();
    const [root, failed] = writeVersion(file, 4);
    const database = new DatabaseSync(file);
    database.prepare("UPDATE sessions SET tip = ?, updated = 5000, active = 0").run(root.id);
    database.prepare("UPDATE turns SET status = 'failed', parent = NULL, created = 1 WHERE id = ?").run(failed.id);
    database.close();
    const store = createSqliteStore({ file });
    assert.deepEqual(await store.prune({ idleBefore: new Date(1) }), { sessions: 0, turns: 0, more: false });
    assert.deepEqual(await store.prune({ idleBefore: new Date(2) }), { sessions: 0, turns: 1, more: false });
    assert.equal(await store.findTurn("alice", failed.id), undefined);
    assert.deepStrictEqual(await readTurns(store, root.id), [root]);
    await store.close();
  });

  test("is upgraded from the fifth release, and threads abandoned before can be pruned", async () => {
    const file = newFile();
    const [root, old] = writeVersion(file, 5);
    const database = new DatabaseSync(file);
    database.prepare("UPDATE sessions SET tip = NULL, updated = 5000, active = 0").run();
    database.prepare("UPDATE turns SET created = 1").run();
    database.close();
    const store = createSqliteStore({ file });
    assert.deepEqual(await store.prune({ idleBefore: new Date(1) }), { sessions: 0, turns: 0, more: false });
    const tip = makeTurn({ session: root.session, parent: root.id });
    assert.equal(await store.commit({ turns: [tip], session: toMove(tip, undefined, "refuse") }), true);
    assert.deepEqual(await store.prune({ idleBefore: new Date(2) }), { sessions: 0, turns: 1, more: false });
    assert.equal(await store.findTurn("alice", old.id), undefined);
    assert.equal((await readTurns(store, tip.id)).length, 2);
    await store.close();
  });

  test("keeps keys and secrets across a restart, and never contains a key in clear text", async () => {
    const file = newFile();
    const key = "a key that names someone";
    const first = createSqliteStore({ file });
    const turn = makeTurn({ status: "running" });
    await first.begin(turn, { key, fingerprint: "print" });
    const secret = await first.sealKeys();
    for (const name of [file, `${file}-wal`]) assert.ok(!readFileSync(name).includes(key), name);
    await first.close();
    assert.ok(!readFileSync(file).includes(key));
    const second = createSqliteStore({ file });
    assert.equal((await second.findKey("alice", key))?.turnId, turn.id);
    assert.deepEqual(await second.sealKeys(), secret);
    assert.equal(await second.endRunning({ code: "draining", message: "" }, new Date()), 1);
    await second.close();
  });

  test("is recreated if a process died before it wrote the first table", async () => {
    const empty = newFile();
    mkdirSync(dirname(empty));
    writeFileSync(empty, "");
    const bare = newFile();
    mkdirSync(dirname(bare));
    const database = new DatabaseSync(bare);
    database.exec("PRAGMA journal_mode = WAL");
    database.close();
    for (const file of [empty, bare]) {
      const store = createSqliteStore({ file });
      assert.equal(await store.commit({ turns: [makeTurn({})] }), true);
      await store.close();
    }
  });
});

test("a new file never has a journal, which a killed process would leave beside it", async () => {
  const file = newFile();
  mkdirSync(dirname(file));
  const watcher = watch(dirname(file));
  const seen = new Set<string>();
  watcher.on("change", (_, name) => seen.add(String(name)));
  const store = createSqliteStore({ file });
  while (!seen.has(`${basename(file)}-wal`)) await once(watcher, "change");
  watcher.close();
  assert.ok(!seen.has(`${basename(file)}-journal`));
  await store.close();
});

test("a file that gets its tables while it is inspected is not mistaken for another program's", async (context) => {
  const file = newFile();
  mkdirSync(dirname(file));
  const bare = new DatabaseSync(file);
  bare.exec("PRAGMA journal_mode = WAL");
  const { prepare } = DatabaseSync.prototype;
  const inspection = context.mock.method(DatabaseSync.prototype, "prepare", function (this: DatabaseSync, sql: string) {
    if (sql.includes("sqlite_schema")) {
      inspection.mock.restore();
      migrate(bare);
    }
    return prepare.call(this, sql);
  });
  await createSqliteStore({ file }).close();
  assert.equal(readVersion(bare), newestVersion);
  bare.close();
});

describe("a file that the SQLite store cannot use", () => {
  test("is left unchanged when it is not a database", () => {
    for (const text of ["a diary", "a diary\n".repeat(1_000)]) {
      const file = newFile();
      mkdirSync(dirname(file));
      writeFileSync(file, text);
      refusesAndLeaves(file, /is not a database\. Name another file/);
    }
  });

  test("is left unchanged when it has another program's tables", () => {
    const file = newFile();
    mkdirSync(dirname(file));
    const database = new DatabaseSync(file);
    database.exec("CREATE TABLE songs (name TEXT)");
    database.close();
    refusesAndLeaves(file, /another program's database\. Name another file/);
  });

  test("is left unchanged, with its journal, when a program was killed while changing it", () => {
    const file = newFile();
    mkdirSync(dirname(file));
    writeUnfinished(file);
    const journal = readFileSync(`${file}-journal`);
    refusesAndLeaves(file, /has the journal of an unfinished change beside it\. Name another file/);
    assert.deepEqual(readFileSync(`${file}-journal`), journal);
  });

  test("keeps the version of the release that wrote it when a migration step fails", () => {
    const file = newFile();
    writeVersion(file, 1);
    const database = new DatabaseSync(file);
    database.exec("CREATE TABLE ends (stranger TEXT)");
    refuses(file, /table ends already exists/);
    assert.equal(readVersion(database), 1);
    database.close();
  });

  test("is left unchanged when a newer release wrote it", async () => {
    const file = newFile();
    await createSqliteStore({ file }).close();
    const database = new DatabaseSync(file);
    database.exec("PRAGMA user_version = 99");
    database.close();
    refusesAndLeaves(file, /version 99, and this release knows versions up to \d+\. Start the newer release/);
  });

  test("is named in the error when its path is a folder or below a file", () => {
    const file = newFile();
    mkdirSync(file, { recursive: true });
    refuses(file, /cannot be opened: .*Check that/);
    const other = newFile();
    mkdirSync(dirname(other));
    writeFileSync(other, "");
    refuses(join(other, "below.db"), /cannot be opened: .*Check that/);
  });
});

describe("a SQLite store with failures", () => {
  test("rejects all commits of a tick and stores none of them while another process locks the file", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const turns = [makeTurn({}), makeTurn({})];
    const outcomes = await Promise.allSettled(turns.map((turn) => store.commit({ turns: [turn] })));
    for (const outcome of outcomes) {
      assert.equal(outcome.status, "rejected");
      assert.equal(outcome.reason.code, "store_unavailable");
      assert.equal(outcome.reason.retryAfterSeconds, 1);
    }
    other.exec("ROLLBACK");
    other.close();
    for (const turn of turns) assert.equal(await store.findTurn("alice", turn.id), undefined);
    assert.equal(await store.commit({ turns: [turns[0]!] }), true);
    await store.close();
  });

  test("stores the other turns of a tick when one made the database roll back the whole tick", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const saboteur = new DatabaseSync(file);
    saboteur.exec(`CREATE TABLE fault (model TEXT); INSERT INTO fault VALUES ('bad');
      CREATE TRIGGER give_up BEFORE INSERT ON turns WHEN new.model IN (SELECT model FROM fault)
      BEGIN SELECT RAISE(ROLLBACK, 'given up'); END`);
    const turns = [makeTurn({}), makeTurn({ model: "bad" }), makeTurn({})];
    const outcomes = await Promise.allSettled(turns.map((turn) => store.commit({ turns: [turn] })));
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    const found = await Promise.all(turns.map((turn) => store.findTurn("alice", turn.id)));
    assert.deepEqual(
      found.map((turn) => turn !== undefined),
      [true, false, true],
    );
    saboteur.exec("DELETE FROM fault");
    saboteur.close();
    assert.equal(await store.commit({ turns: [turns[1]!] }), true);
    await store.close();
  });

  test("rejects a turn that cannot be written as JSON, and stores the other one", async () => {
    const store = createSqliteStore({ file: ":memory:" });
    const good = makeTurn({});
    const fields: { self?: unknown } = {};
    fields.self = fields;
    const extra = { dialect: "chat", fields } as const;
    const bad = makeTurn({ input: [{ type: "message", role: "user", content: "", extra }] });
    const outcomes = await Promise.allSettled([store.commit({ turns: [bad] }), store.commit({ turns: [good] })]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["rejected", "fulfilled"],
    );
    await store.close();
  });

  test("reports that its file was moved away", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.check();
    renameSync(file, `${file}.moved`);
    await assert.rejects(store.check(), { code: "store_unavailable" });
    await store.close();
  });
});

describe("a SQLite store and other processes", () => {
  const sources = new URL("../../src/stores/sqlite.ts", import.meta.url).href;
  const making = new URL("making.ts", import.meta.url).href;

  /** Runs a program with `createSqliteStore`, `keepThread` and `file` defined. */
  function startProcess(file: string, program: string) {
    const source = `
      import { createSqliteStore } from ${JSON.stringify(sources)};
      import { keepThread } from ${JSON.stringify(making)};
      const file = ${JSON.stringify(file)};
      ${program}`;
    return spawn(process.execPath, ["--input-type=module-typescript", "--eval", source], {
      stdio: ["ignore", "pipe", "inherit"],
    });
  }

  test("loses nothing that was acknowledged when its process is killed", async () => {
    const file = newFile();
    const child = startProcess(
      file,
      `const store = createSqliteStore({ file });
       const thread = await keepThread(store, 5);
       process.stdout.write(thread.at(-1).id);
       setInterval(() => {}, 1_000);`,
    );
    // A child that fails prints nothing and exits.
    const [tip] = await Promise.race([once(child.stdout, "data"), once(child.stdout, "end")]);
    child.kill("SIGKILL");
    const [, signal] = await once(child, "exit");
    assert.equal(signal, "SIGKILL");
    const store = createSqliteStore({ file });
    assert.equal((await store.findSession("alice", "hint"))?.tip, String(tip));
    assert.equal((await store.readPath(String(tip))).length, 5);
    await store.close();
  });

  test("lets a second process read while the first one writes", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const thread = await keepThread(store, 3);
    const child = startProcess(
      file,
      `const store = createSqliteStore({ file });
       const session = await store.findSession("alice", "hint");
       const path = await store.readPath(session.tip);
       await store.close();
       process.stdout.write(path.track.turns.map(({ id }) => id).join(" "));`,
    );
    let told = "";
    child.stdout.on("data", (chunk) => (told += chunk));
    const exit = once(child, "close");
    let written = 0;
    while (child.exitCode === null && child.signalCode === null) {
      assert.equal(await store.commit({ turns: [makeTurn({})] }), true);
      written += 1;
    }
    assert.deepEqual(await exit, [0, null]);
    assert.equal(told, thread.map(({ id }) => id).join(" "));
    assert.ok(written > 0);
    await store.close();
  });
});

/** A file as an early release left it, with a session of two turns. */
function writeVersion(file: string, version: 1 | 2 | 3 | 4 | 5): [StoredTurn, StoredTurn] {
  const root = makeTurn({ session: newSessionId() });
  const next = makeTurn({ session: root.session, parent: root.id, usage: undefined });
  mkdirSync(dirname(file));
  const database = new DatabaseSync(file);
  migrate(database, version);
  assert.equal(readVersion(database), version);
  const addSession = database.prepare(
    "INSERT INTO sessions (id, owner, hint, tip, created, updated) VALUES (?, ?, ?, ?, 1, 1)",
  );
  addSession.run(root.session!, root.owner, randomBytes(32), next.id);
  const addTurn = database.prepare(
    `INSERT INTO turns (id, owner, session, parent, created, model, status, input, output, usage)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const turn of [root, next]) addTurn.run(...toRow(turn).slice(0, 10));
  database.close();
  return [root, next];
}

function refuses(file: string, reason: RegExp): void {
  assert.throws(
    () => createSqliteStore({ file }),
    (error: Error & { code?: string }) => {
      assert.equal(error.code, "store_unavailable");
      assert.ok(error.message.includes(file), error.message);
      assert.match(error.message, reason);
      return true;
    },
  );
}

function refusesAndLeaves(file: string, reason: RegExp): void {
  const before = readFileSync(file);
  const { mtimeMs } = statSync(file);
  refuses(file, reason);
  assert.ok(readFileSync(file).equals(before));
  assert.equal(statSync(file).mtimeMs, mtimeMs);
}
