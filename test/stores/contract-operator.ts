/** What every store must report to its operator about sessionless turns, and about the owners of sessions. */
import assert from "node:assert/strict";
import type { ArchiveRecord, SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "./memory.ts";
import type { It } from "./contract-said.ts";
import {
  gather,
  keepBelow,
  keepSession,
  keepThread,
  makeTurn,
  newSessionId,
  newTurnId,
  readTurns,
  replay,
  toCreate,
  toMove,
} from "./making.ts";

export function describeSessionless(it: It): void {
  it("lists sessionless turns, the newest first and page by page", async (store) => {
    await keepThread(store, 2);
    const roots = [];
    for (let minute = 0; minute < 4; minute += 1) {
      const createdAt = new Date(Date.parse("2026-02-03T04:00:00Z") + minute * 60_000);
      const root = makeTurn({ createdAt, owner: minute === 2 ? "bob" : "alice" });
      assert.ok(await store.commit({ turns: [root] }));
      roots.unshift(root);
    }
    const [newest, ofBob, older] = roots;
    const createdAt = new Date("2026-02-03T05:00:00Z");
    const child = await keepBelow(store, older!, {});
    await keepBelow(store, child, { createdAt });
    await keepBelow(store, older!, { status: "failed" });
    const ids = roots.map(({ id }) => id);
    assert.deepEqual(await listAll(store, undefined, 3), ids);
    assert.deepEqual(await listAll(store, undefined, 1), ids);
    assert.deepEqual(
      await listAll(store, "alice", 1),
      ids.filter((id) => id !== ofBob!.id),
    );
    for (const owner of ["nobody", ""]) assert.deepEqual(await store.listSessionless({ owner, limit: 1 }), []);
    const [told] = await store.listSessionless({ after: ofBob!.id, limit: 1 });
    const times = { createdAt: older!.createdAt, updatedAt: createdAt };
    const beginning = "Why is the sky blue?";
    assert.deepStrictEqual(told, { id: older!.id, owner: "alice", ...times, turns: 4, beginning });
    assert.equal((await store.listSessionless({ limit: 1 }))[0]?.id, newest!.id);
    for (const after of [newTurnId(), child.id]) {
      await assert.rejects(store.listSessionless({ after, limit: 1 }), { code: "not_found" });
    }
  });

  it("deletes all followers of a sessionless turn; those in a session then follow the turn itself", async (store) => {
    const root = makeTurn({});
    await store.commit({ turns: [root], key: { key: "root", fingerprint: "print" } });
    const [stem, beside] = [await keepBelow(store, root, {}), await keepBelow(store, root, {})];
    const below = [await keepBelow(store, stem, {}), await keepBelow(store, stem, { status: "failed" })];
    const long = Array.from({ length: 450 }, () => newTurnId()).map((id, at, ids) =>
      makeTurn({ id, parent: ids[at - 1] ?? below[0]!.id }),
    );
    const key = { key: "below", fingerprint: "print" };
    await Promise.all(long.map((turn, at) => store.commit({ turns: [turn], ...(at === 100 ? { key } : {}) })));
    const inSession = makeTurn({ session: newSessionId(), parent: long[200]!.id });
    await store.commit({ turns: [inSession], session: toCreate(inSession, "hint") });
    await store.commit({ turns: [makeTurn({ parent: inSession.id })] });
    await readTurns(store, inSession.id);

    assert.equal(await store.deleteBelow("bob", stem.id), 0);
    assert.equal(await store.deleteBelow("alice", newTurnId()), 0);
    assert.equal(await store.deleteBelow("alice", inSession.id), 0);
    assert.equal(await store.deleteBelow("alice", stem.id), 452);
    for (const { id } of [...below, ...long]) assert.equal(await store.findTurn("alice", id), undefined);
    assert.equal(await store.findKey("alice", "below"), undefined);
    assert.notEqual(await store.findKey("alice", "root"), undefined);
    const moved = { ...inSession, parent: stem.id, gap: true };
    assert.deepStrictEqual(await readTurns(store, inSession.id), [root, stem, moved]);
    assert.deepStrictEqual(await readTurns(store, beside.id), [root, beside]);
    assert.equal((await store.findSession("alice", "hint"))?.tip, inSession.id);
    assert.equal((await store.listSessionless({ limit: 2 }))[0]?.turns, 3);
    assert.equal(await store.deleteBelow("alice", stem.id), 0);
  });

  it("exports a sessionless turn with everything before it and all of its followers", async (store) => {
    const root = makeTurn({});
    await store.commit({ turns: [root] });
    await store.commit({ turns: [makeTurn({})] });
    const other = await keepBelow(store, root, {});
    const middle = await keepBelow(store, root, {});
    const [left, right] = [await keepBelow(store, middle, {}), await keepBelow(store, middle, { status: "failed" })];
    const leaf = await keepBelow(store, left, {});
    const records = await gather(store.exportRecords(middle.id));
    assert.deepEqual(
      records.map(({ type }) => type),
      ["store", "turn", "turn", "turn", "turn", "turn"],
    );
    assert.deepEqual(idsOf(records).toSorted(), [root, middle, left, right, leaf].map(({ id }) => id).toSorted());
    assert.deepEqual(idsOf(await gather(store.exportRecords(other.id))), [root.id, other.id]);
    const elsewhere = createMemoryStore();
    assert.equal((await elsewhere.importRecords(replay(records))).turns, 5);
    assert.deepStrictEqual(await elsewhere.findTurn("alice", leaf.id), await store.findTurn("alice", leaf.id));
    const [inSession] = await keepThread(store, 1);
    for (const id of [inSession!.id, newTurnId()]) {
      await assert.rejects(gather(store.exportRecords(id)), { code: "not_found" });
    }
  });

  it("lists the sessions under a hint, for every owner or for one", async (store) => {
    const made = [];
    for (const owner of ["alice", "bob"]) {
      const turn = await keepSession(store, { owner });
      const named = makeTurn({ owner, session: `conv_${owner}` });
      await store.commit({ turns: [named], session: toCreate(named, "user:ann") });
      made.push(turn.session);
    }
    const list = async (owner: string | undefined, hint: string) =>
      (await store.listSessions({ owner, hint, limit: 10 })).map(({ id }) => id).toSorted();
    assert.deepEqual(await list(undefined, "user:ann"), ["conv_alice", "conv_bob"]);
    assert.deepEqual(await list("bob", "user:ann"), ["conv_bob"]);
    for (const owner of ["nobody", ""]) {
      assert.deepEqual(await list(owner, "user:ann"), []);
      assert.deepEqual(await store.listSessions({ owner, limit: 10 }), []);
    }
    assert.deepEqual(await list(undefined, "user:ben"), []);
    const [first] = await store.listSessions({ hint: "user:ann", limit: 1 });
    const rest = await store.listSessions({ hint: "user:ann", limit: 10, after: first!.id });
    assert.deepEqual([first!.id, ...rest.map(({ id }) => id)].toSorted(), ["conv_alice", "conv_bob"]);
    assert.deepEqual([first?.turns, first?.beginning], [1, "Why is the sky blue?"]);
    await store.deleteSession("bob", "conv_bob");
    assert.deepEqual(await list(undefined, "user:ann"), ["conv_alice"]);
  });

  it("gives a session its hint back when the archive is imported again and the hint is free", async (store) => {
    const [first, second] = await keepThread(store, 2);
    const records = await gather(store.exportRecords());
    await store.deleteSession("alice", first!.session!);
    const [since] = await keepThread(store, 1);
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 1, turns: 2, hintsTaken: 1 });
    assert.equal((await store.findSession("alice", "hint"))?.id, since!.session);
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 0, turns: 0, hintsTaken: 1 });
    await store.deleteSession("alice", since!.session!);
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 0, turns: 0, hintsTaken: 0 });
    assert.deepEqual(await store.findSession("alice", "hint"), {
      id: first!.session,
      owner: "alice",
      tip: second!.id,
      resends: false,
    });
    const turn = makeTurn({ session: first!.session, parent: second!.id });
    assert.ok(await store.commit({ turns: [turn], session: toMove(turn, second!.id, "refuse") }));
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 0, turns: 0, hintsTaken: 0 });
  });
}

function idsOf(records: readonly ArchiveRecord[]): readonly string[] {
  return records.flatMap((record) => (record.type === "turn" ? [record.turn.id] : []));
}

async function listAll(store: SessionStore, owner: string | undefined, limit: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await store.listSessionless({ owner, limit, after: ids.at(-1) });
    if (page.length === 0) return ids;
    ids.push(...page.map(({ id }) => id));
  }
}
