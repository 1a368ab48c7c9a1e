import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { messageOf } from "../../src/core/errors.ts";
import type { StoredTurn } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { createFiles, look } from "./files.ts";
import {
  fullTold,
  gather,
  keepLoose,
  keepSession,
  keepThread,
  makeConversation,
  makeTurn,
  newSessionId,
  pruneAll,
  readTurns,
  toCreate,
  toMove,
} from "./making.ts";

const newFile = createFiles();

describe("the file of the SQLite store after deletions", () => {
  test("contains nothing of what was deleted, neither in its pages nor in its log", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const secret = "the launch code is 0000";
    const input = [{ type: "message", role: "user", content: `${secret} `.repeat(500) }] as const;
    const [first] = await keepThread(store, 20);
    const turn = makeTurn({ input, told: { ...fullTold, memo: secret } });
    const changed = makeTurn({ input });
    const conversation = makeTurn({ input, session: newSessionId() });
    await store.commit({ turns: [turn] });
    await store.commit({ turns: [changed] });
    await store.commit({ turns: [conversation], session: toCreate(conversation, "another") });
    const holds = () => [file, `${file}-wal`].some((name) => readFileSync(name).includes(secret));
    assert.ok(holds());
    await store.deleteSession("alice", conversation.session!);
    await store.replaceItems(changed.id, [], []);
    assert.ok(holds());
    await store.deleteTurn("alice", turn.id);
    assert.ok(!holds());
    assert.deepEqual(await store.findTurn("alice", first!.id), first);
    await store.close();
  });

  test("has a turn that hundreds follow until they have moved in short steps", async () => {
    const store = createSqliteStore({ file: newFile() });
    const [root] = await keepLoose(store, 1, new Date());
    const followers = Array.from({ length: 250 }, () => makeTurn({ parent: root!.id }));
    await Promise.all(followers.map((turn) => store.commit({ turns: [turn] })));
    const deleted = store.deleteTurn("alice", root!.id);
    // It is stored together with the first step.
    await store.commit({ turns: [makeTurn({})] });
    const found = await Promise.all(followers.map(({ id }) => store.findTurn("alice", id)));
    assert.equal(found.filter((turn) => turn?.parent === undefined).length, 200);
    assert.equal(await deleted, true);
    assert.equal(await store.findTurn("alice", root!.id), undefined);
    await store.close();
  });

  test("releases the space of a large session gradually, while other turns are stored", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await keepSession(store, {});
    await store.prune({});
    const before = statSync(file).size;
    const thread = await keepThread(store, 3_000);
    const deleted = store.deleteSession("alice", thread[0]!.session!);
    const progress = { isOver: false };
    void deleted.then(() => (progress.isOver = true));
    let stored = 0;
    while (!progress.isOver) {
      const turn = makeTurn({});
      assert.equal(await store.commit({ turns: [turn] }), true);
      assert.equal(await store.deleteTurn("alice", turn.id), true);
      stored += 1;
      assert.equal(await store.findSession("alice", "hint"), undefined);
      assert.equal(await store.findTurn("alice", thread[0]!.id), undefined);
      assert.deepEqual(await readTurns(store, thread[0]!.id), []);
    }
    assert.ok(stored > 2, `${stored} turns were stored in the meantime`);
    assert.equal(look(file, "SELECT count(*) AS value FROM turns"), 1);
    await store.prune({});
    assert.ok(statSync(file).size <= before * 2, `${statSync(file).size} bytes after ${before}`);
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.close();
  });

  test("deletes large turns in steps of some megabytes, in a session, outside of one, and their pieces", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const input = [{ type: "message", role: "user", content: "x".repeat(2_500_000) }] as const;
    const session = newSessionId();
    const storeSix = async (wanted: Partial<StoredTurn>) => {
      for (let count = 0; count < 6; count += 1) await store.commit({ turns: [makeTurn({ input, ...wanted })] });
    };

    await store.createSession(makeConversation({ id: session }));
    await storeSix({ session });
    const left = () => Number(look(file, "SELECT count(*) AS value FROM turns"));
    const seen = [left()];
    const progress = { isOver: false };
    void store.deleteSession("alice", session).then(() => (progress.isOver = true));
    while (!progress.isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      if (left() !== seen.at(-1)) seen.push(left());
    }
    assert.deepEqual(seen, [6, 4, 2, 0]);

    for (const [rules, count] of [
      [{ idleBefore: new Date(Date.now() + 1_000) }, "SELECT count(*) AS value FROM turns"],
      [{ piecesBefore: new Date() }, "SELECT count(*) AS value FROM turns WHERE pieces IS NOT NULL"],
    ] as const) {
      await storeSix({ told: fullTold });
      const steps: number[] = [];
      for (let more = true; more;) {
        ({ more } = await store.prune(rules));
        const value = Number(look(file, count));
        if (value !== steps.at(-1)) steps.push(value);
      }
      assert.deepEqual(steps, [4, 2, 0]);
    }
    await store.close();
  });

  test("is free for other processes for a moment between two steps of a deletion", async (context) => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const thread = await keepThread(store, 500);
    const left = () => Number(look(file, "SELECT count(*) AS value FROM turns WHERE session IS NOT NULL"));
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const deleted = store.deleteSession("alice", thread[0]!.session!);
    const seen = [];
    for (let step = 0; step < 3; step += 1) {
      // What reached the disk after the step is confirmed after it.
      for (let writes = 0; writes < 5; writes += 1) await store.commit({ turns: [makeTurn({})] });
      seen.push(left());
      context.mock.timers.tick(9);
      seen.push(left());
      context.mock.timers.tick(1);
    }
    context.mock.timers.reset();
    assert.deepEqual(seen, [300, 300, 100, 100, 0, 0]);
    assert.equal(await deleted, true);
    await store.close();
  });

  test("releases the space of a large turn, and that of items removed from one", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.prune({});
    const before = statSync(file).size;
    const input = [{ type: "message", role: "user", content: "x".repeat(5_000_000) }] as const;
    const [deleted, emptied] = [makeTurn({ input }), makeTurn({ input })];
    for (const turn of [deleted, emptied]) await store.commit({ turns: [turn] });
    await store.deleteTurn("alice", deleted.id);
    const between = statSync(file).size;
    assert.ok(between < before + 6_000_000, `${between} bytes after ${before}`);
    await store.replaceItems(emptied.id, [], []);
    assert.ok(statSync(file).size <= before * 2, `${statSync(file).size} bytes after ${before}`);
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.close();
  });

  test("makes no caller wait for the space of what others deleted", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const input = [{ type: "message", role: "user", content: "x".repeat(40_000_000) }] as const;
    const [large, small] = [makeTurn({ input }), makeTurn({})];
    await store.commit({ turns: [large] });
    await store.commit({ turns: [small], forget: [large.id] });
    assert.equal(await store.deleteTurn("alice", small.id), true);
    const left = statSync(file).size;
    assert.ok(left > 39_000_000, `${left} bytes: the rest is released later`);
    await store.deleteSession("alice", (await keepSession(store, {})).session!);
    assert.ok(statSync(file).size > 39_000_000, `${statSync(file).size} bytes after ${left}`);
    await pruneAll(store, {});
    assert.ok(statSync(file).size < 1_000_000, `${statSync(file).size} bytes`);
    await store.close();
  });

  test("deletes a sessionless thread in steps, and releases its space", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.prune({});
    const before = statSync(file).size;
    const root = makeTurn({});
    await store.commit({ turns: [root] });
    let parent = root.id;
    const thread = Array.from({ length: 500 }, () => {
      const turn = makeTurn({ parent });
      parent = turn.id;
      return turn;
    });
    await Promise.all(thread.map((turn) => store.commit({ turns: [turn] })));
    const left = () => Number(look(file, "SELECT count(*) AS value FROM turns"));
    const seen = [left()];
    const progress = { isOver: false };
    void store.deleteBelow("alice", root.id).then(() => (progress.isOver = true));
    while (!progress.isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      if (left() !== seen.at(-1)) seen.push(left());
      assert.equal(look(file, "SELECT count(*) AS value FROM turns WHERE gap = 1"), 0, "the last go first");
    }
    assert.deepEqual(seen, [501, 301, 101, 1]);
    assert.ok(statSync(file).size <= before * 2, `${statSync(file).size} bytes after ${before}`);
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.close();
  });

  test("keeps other threads cached, but not the followers of a deleted turn", async () => {
    const store = createSqliteStore({ file: newFile() });
    const [first, second] = await keepThread(store, 2);
    const other = await keepSession(store, {});
    const outside = makeTurn({ parent: second!.id });
    await store.commit({ turns: [outside] });
    assert.equal((await store.readPath(outside.id)).length, 3);
    await store.deleteSession("alice", first!.session!);
    assert.deepStrictEqual(await readTurns(store, outside.id), [{ ...outside, parent: undefined, gap: true }]);
    assert.equal(await store.recallPath(second!.id), undefined);
    assert.equal((await store.recallPath(other.id))?.length, 1);
    const [idle] = await keepThread(store, 1);
    await store.commit({ turns: [makeTurn({ session: idle!.session, parent: idle!.id })] });
    await store.prune({ maxSessionsPerOwner: 1 });
    assert.equal(await store.readSession(other.session!), undefined);
    assert.equal(await store.recallPath(other.id), undefined);
    assert.equal((await store.recallPath(idle!.id))?.length, 1);
    await store.close();
  });

  test("counts sessions in a run until no owner has too many, and not again for every step", async () => {
    const store = createSqliteStore({ file: newFile() });
    const rules = { maxSessionsPerOwner: 1 };
    const storeTwo = async () => [await keepSession(store, {}), await keepSession(store, {})];
    await storeTwo();
    assert.equal((await store.prune(rules)).sessions, 1);
    await storeTwo();
    assert.equal((await store.prune(rules)).sessions, 0);
    assert.equal((await store.prune({ ...rules })).sessions, 2);
    await store.close();
  });

  test("counts sessions again when a step was undone because of a failed write beside it", async () => {
    const store = createSqliteStore({ file: newFile() });
    const [, newest] = [await keepSession(store, {}), await keepSession(store, {})];
    const again = { id: newest.session!, owner: "alice", createdAt: new Date(), metadata: {} };
    let uses = 0;
    const pruning = store.prune({ maxSessionsPerOwner: 1, inUse: () => (uses++, new Set<string>()) });
    // Not before the step is in the same transaction.
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(store.createSession(again));
    assert.equal((await pruning).sessions, 1);
    assert.equal(uses, 3, "once to find them, and in two steps");
    await store.close();
  });

  test("caches nothing of what was pruned, even if a part of a session is still there", async () => {
    const store = createSqliteStore({ file: newFile() });
    const sessionless = makeTurn({ createdAt: new Date(0) });
    await store.commit({ turns: [sessionless] });
    const thread = await keepThread(store, 500);
    assert.equal((await store.recallPath(thread.at(-1)!.id))?.length, 500);
    assert.equal((await store.recallPath(sessionless.id))?.length, 1);
    assert.equal((await store.prune({ idleBefore: new Date(1) })).turns, 1);
    assert.equal(await store.recallPath(sessionless.id), undefined);
    assert.equal((await store.recallPath(thread.at(-1)!.id))?.length, 500);
    assert.equal((await store.prune({ idleBefore: new Date(Date.now() + 1_000) })).more, true);
    for (const turn of [thread[0]!, thread.at(-1)!]) assert.equal(await store.recallPath(turn.id), undefined);
    await store.close();
  });

  test("contains nothing of a turn that would recreate a session while it is being deleted", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const first = makeTurn({ session: newSessionId() });
    await store.commit({ turns: [first], session: toCreate(first, "hint") });
    const second = makeTurn({ session: first.session });
    const deleted = store.deleteSession("alice", first.session!);
    assert.equal(await store.commit({ turns: [second], session: toCreate(second, "hint") }), false);
    assert.equal(await deleted, true);
    assert.equal(look(file, "SELECT count(*) AS value FROM turns"), 0);
    await store.close();
  });

  for (const [length, stuck, isHidden] of [
    [3, 0, false],
    [500, 499, false],
    [500, 0, true],
  ] as const) {
    const fate = isHidden ? "is deleted, and the error says so," : "stays as it is";
    test(`tell the truth: a session of ${length} turns ${fate} if turn ${stuck} cannot be removed`, async () => {
      const file = newFile();
      const store = createSqliteStore({ file });
      const thread = await keepThread(store, length);
      const session = thread[0]!.session!;
      const other = new DatabaseSync(file);
      other.exec(`
        CREATE TRIGGER full BEFORE DELETE ON turns WHEN old.id = '${thread[stuck]!.id}'
        BEGIN SELECT RAISE(ABORT, 'There is no room.'); END`);
      const [answer] = await Promise.allSettled([store.deleteSession("alice", session)]);
      assert.equal(answer.status, "rejected");
      const said = messageOf(answer.reason);
      if (isHidden)
        assert.match(said, /^It is deleted, but .* the next pruning removes the rest\. There is no room\.$/);
      else assert.equal(said, "There is no room.");
      assert.equal((await store.readSession(session)) === undefined, isHidden);
      assert.equal((await readTurns(store, thread.at(-1)!.id)).length, isHidden ? 0 : length);
      other.exec("DROP TRIGGER full");
      other.close();
      assert.equal((await pruneAll(store, {})).sessions, isHidden ? 1 : 0);
      assert.equal(look(file, "SELECT count(*) AS value FROM turns"), isHidden ? 0 : length);
      await store.close();
    });
  }

  test("tell the truth: a turn that hundreds follow stays if it cannot be removed, although some of them have moved", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const [root] = await keepLoose(store, 1, new Date());
    const followers = Array.from({ length: 201 }, () => makeTurn({ parent: root!.id }));
    await Promise.all(followers.map((turn) => store.commit({ turns: [turn] })));
    const other = new DatabaseSync(file);
    other.exec(`
      CREATE TRIGGER full BEFORE DELETE ON turns WHEN old.id = '${root!.id}'
      BEGIN SELECT RAISE(ABORT, 'There is no room.'); END`);
    other.close();
    await assert.rejects(store.deleteTurn("alice", root!.id), { message: "There is no room." });
    assert.deepStrictEqual(await store.findTurn("alice", root!.id), root);
    assert.equal(look(file, "SELECT count(*) AS value FROM turns WHERE gap = 1"), 200);
    await store.close();
  });

  test("starts another session at once under the hint of one that is being deleted", async () => {
    const store = createSqliteStore({ file: ":memory:" });
    const first = makeTurn({ session: newSessionId() });
    await store.commit({ turns: [first], session: toCreate(first, "hint") });
    const second = makeTurn({ session: newSessionId() });
    const deleted = store.deleteSession("alice", first.session!);
    assert.equal(await store.commit({ turns: [second], session: toCreate(second, "hint") }), true);
    assert.equal(await deleted, true);
    assert.equal((await store.findSession("alice", "hint"))?.tip, second.id);
    await store.close();
  });

  test("prunes in short steps, and then releases the space on disk", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.prune({});
    const before = statSync(file).size;
    for (let count = 0; count < 5; count += 1) {
      const stored = Array.from({ length: 200 }, () => keepSession(store, { told: fullTold }));
      await Promise.all(stored);
    }
    const pruned = await pruneAll(store, { idleBefore: new Date(Date.now() + 1_000) });
    assert.deepEqual([pruned.sessions, pruned.turns], [1_000, 1_000]);
    assert.ok(pruned.calls > 5, `${pruned.calls} calls`);
    assert.ok(statSync(file).size <= before * 2, `${statSync(file).size} bytes after ${before}`);
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.close();
  });

  test("loses hundreds of old keys in several steps", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const [turn] = await keepLoose(store, 1, new Date());
    const other = new DatabaseSync(file);
    other.exec(`
      INSERT INTO keys (owner, hash, fingerprint, turn, created)
      SELECT 'alice', CAST(key AS BLOB), 'print', '${turn!.id}', 1 FROM json_each('[${"0,".repeat(500)}0]')`);
    other.close();
    const rules = { keysBefore: new Date(2) };
    assert.deepEqual([(await store.prune(rules)).more, (await store.prune(rules)).more], [true, false]);
    assert.equal(look(file, "SELECT count(*) AS value FROM keys"), 0);
    await store.close();
  });

  test("is read past hundreds of old sessionless trees that stay, to those behind them, if any", async () => {
    // Of trees of two turns that stay, 182 use up the budget of a step.
    for (const [staying, idle] of [
      [300, 1],
      [182, 0],
    ] as const) {
      const store = createSqliteStore({ file: newFile() });
      const roots = Array.from({ length: staying }, () => makeTurn({ createdAt: new Date(0) }));
      const turns = [...roots, ...roots.map(({ id }) => makeTurn({ parent: id, createdAt: new Date(9) }))];
      for (let count = 0; count < idle; count += 1) turns.push(makeTurn({ createdAt: new Date(1) }));
      await Promise.all(turns.map((turn) => store.commit({ turns: [turn] })));
      const rules = { idleBefore: new Date(5) };
      assert.deepEqual(
        [await store.prune(rules), await store.prune(rules)],
        [
          { sessions: 0, turns: 0, more: true },
          { sessions: 0, turns: idle, more: false },
        ],
      );
      await store.close();
    }
  });

  test("is read once for a sessionless tree that is pruned in many parts", async () => {
    const pruneThread = async (length: number) => {
      const store = createSqliteStore({ file: newFile() });
      await keepLoose(store, length, new Date(0));
      const before = process.threadCpuUsage().user;
      assert.equal((await pruneAll(store, { idleBefore: new Date(1) })).turns, length);
      const spent = (process.threadCpuUsage().user - before) / length;
      await store.close();
      return spent;
    };
    const [short, long] = [await pruneThread(1_500), await pruneThread(15_000)];
    assert.ok(long < 2.5 * short, `${long} µs per turn of a long thread, ${short} of a short one`);
  });

  test("loses abandoned threads in short steps, with their space, and caches nothing of them", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    await store.prune({});
    const before = statSync(file).size;
    const thread = await keepThread(store, 500);
    const { session, id: expectedTip } = thread.at(-1)!;
    const tip = makeTurn({ session, createdAt: new Date() });
    assert.equal(await store.commit({ turns: [tip], session: toMove(tip, expectedTip, "refuse") }), true);
    assert.equal((await store.recallPath(expectedTip))?.length, 500);
    const idleBefore = new Date(+thread[0]!.createdAt + 1);
    assert.equal((await store.prune({ idleBefore })).more, true);
    assert.equal(await store.recallPath(expectedTip), undefined);
    const left = Number(look(file, "SELECT count(*) AS value FROM turns"));
    assert.ok(left > 300, `${left} turns after the first step`);
    assert.equal((await pruneAll(store, { idleBefore })).turns, left - 1);
    assert.equal(look(file, "SELECT count(*) AS value FROM ends"), 0);
    assert.equal((await store.recallPath(tip.id))?.length, 1);
    assert.ok(statSync(file).size <= before * 2, `${statSync(file).size} bytes after ${before}`);
    assert.equal(statSync(`${file}-wal`).size, 0);
    await store.close();
  });

  test("has no entries for ends while a session has one thread, nor for deleted ends", async () => {
    const file = newFile();
    const store = createSqliteStore({ file });
    const count = () => look(file, "SELECT count(*) AS value FROM ends");
    const [root, , last] = await keepThread(store, 3);
    const alone = makeTurn({});
    await store.commit({ turns: [alone] });
    assert.equal(count(), 0);
    const branch = makeTurn({ session: root!.session, parent: root!.id });
    assert.equal(await store.commit({ turns: [branch], session: toMove(branch, last!.id, "refuse") }), true);
    assert.equal(count(), 1);
    await store.deleteSession("alice", root!.session!);
    assert.equal(count(), 0);
    await store.close();
  });

  test("shows nothing of a session whose deletion was interrupted, and prune finishes it", async () => {
    const file = newFile();
    const first = createSqliteStore({ file });
    const thread = await keepThread(first, 1_000);
    const deleted = first.deleteSession("alice", thread[0]!.session!);
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([assert.rejects(deleted, { code: "store_unavailable" }), first.close()]);
    assert.notEqual(look(file, "SELECT count(*) AS value FROM turns"), 0);
    const store = createSqliteStore({ file });
    const { session, id } = thread[0]!;
    assert.equal(await store.findSession("alice", "hint"), undefined);
    assert.equal(await store.readSession(session!), undefined);
    assert.equal(await store.findTurn("alice", id), undefined);
    assert.deepEqual(await readTurns(store, id), []);
    assert.deepEqual(await store.listSessions({ limit: 10 }), []);
    assert.equal((await gather(store.exportRecords())).length, 1);
    assert.equal(await store.updateMetadata("alice", session!, { topic: "gone" }), false);
    assert.equal(await store.deleteTurn("alice", id), false);
    assert.equal(await store.commit({ turns: [makeTurn({ parent: id })] }), false);
    await pruneAll(store, {});
    assert.equal(look(file, "SELECT count(*) AS value FROM turns"), 0);
    assert.equal(look(file, "SELECT count(*) AS value FROM sessions"), 0);
    await store.close();
  });
});

describe("two SQLite stores on one file", () => {
  async function openTwo() {
    const file = newFile();
    return [createSqliteStore({ file }), createSqliteStore({ file })] as const;
  }

  test("show nothing of what the other one deleted, and store nothing below it", async () => {
    const [gateway, operator] = await openTwo();
    const [first, second, third] = await keepThread(gateway, 3);
    assert.equal((await gateway.readPath(third!.id)).length, 3);
    await operator.deleteTurn("alice", second!.id);
    const moved = { ...third!, parent: first!.id, gap: true };
    assert.deepStrictEqual(await readTurns(gateway, third!.id), [first, moved]);
    await operator.deleteSession("alice", first!.session!);
    assert.deepEqual(await readTurns(gateway, third!.id), []);
    const late = makeTurn({ session: first!.session, parent: third!.id });
    const move = { ...toMove(late, third!.id, "branch"), hint: "hint" };
    assert.equal(await gateway.commit({ turns: [late], session: move }), false);
    assert.equal(await gateway.findSession("alice", "hint"), undefined);
    await Promise.all([gateway.close(), operator.close()]);
  });

  test("find a hint by the key that the other one imported", async () => {
    const source = createSqliteStore({ file: ":memory:" });
    const [turn] = await keepThread(source, 1);
    const [gateway, operator] = await openTwo();
    await operator.importRecords(source.exportRecords());
    assert.equal((await gateway.findSession("alice", "hint"))?.tip, turn!.id);
    assert.equal((await operator.findSession("alice", "hint"))?.tip, turn!.id);
    await Promise.all([gateway.close(), operator.close(), source.close()]);
  });
});
