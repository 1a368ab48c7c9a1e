/** What every store must remove from a session that continues: abandoned threads. */
import assert from "node:assert/strict";
import type { SessionStore, StoredTurn } from "../../src/core/store.ts";
import type { It } from "./contract-said.ts";
import {
  findByDigest,
  findByExchange,
  fullTold,
  gather,
  keepBelow,
  keepSession,
  makeTurn,
  newDigest,
  pruneAll,
  readTurns,
  replay,
  toMove,
} from "./making.ts";

export function describeAbandonedThreads(it: It): void {
  const at = (hours: number) => new Date(Date.UTC(2026, 1, 3, hours, 30));

  it("prunes an abandoned thread, from its end up to where a younger one branches off", async (store, clock) => {
    clock.time = at(0);
    const root = await keepSession(store, { createdAt: at(0) });
    const marks = { digest: newDigest(), exchange: newDigest() };
    const shared = await keepBelow(store, root, { createdAt: at(0) });
    const [middle, young] = [
      await keepBelow(store, shared, { createdAt: at(1) }),
      await keepBelow(store, shared, { createdAt: at(5) }),
    ];
    const last = makeTurn({ session: root.session, parent: middle.id, createdAt: at(2), told: fullTold, ...marks });
    assert.equal(await store.commit({ turns: [last], key: { key: "key", fingerprint: "print" } }), true);
    const other = makeTurn({ session: root.session, createdAt: at(1) });
    const below = await keepNext(store, other, root);
    clock.time = at(6);
    const tip = await keepNext(store, makeTurn({ session: root.session, createdAt: at(3) }), below);
    assert.equal((await readTurns(store, last.id)).length, 4);
    assert.equal(await store.countThreads(root.session!), 2);

    const pruned = await pruneAll(store, { idleBefore: at(4), keysBefore: at(0) });
    assert.deepEqual([pruned.sessions, pruned.turns], [0, 3]);
    for (const { id } of [middle, last, other]) {
      assert.equal(await store.findTurn("alice", id), undefined);
      assert.deepEqual(await readTurns(store, id), []);
    }
    assert.equal(await store.findKey("alice", "key"), undefined);
    assert.equal(await findByDigest(store, root.session!, [marks.digest]), undefined);
    assert.deepEqual(await findByExchange(store, root.session!, marks.exchange), []);
    assert.deepStrictEqual(await readTurns(store, young.id), [root, shared, young]);
    assert.deepStrictEqual(await readTurns(store, tip.id), [tip]);
    assert.equal((await store.readSession(root.session!))?.tip, tip.id);
    assert.equal(await store.commit({ turns: [makeTurn({ session: root.session, parent: last.id })] }), false);
    assert.equal((await pruneAll(store, { idleBefore: at(4) })).turns, 0);
    assert.equal((await pruneAll(store, { idleBefore: new Date(+at(5) + 1) })).turns, 3);
    assert.equal(await store.countThreads(root.session!), 1);
  });

  it("never prunes the current thread of an active session by age, nor what a running turn continues", async (store, clock) => {
    clock.time = at(0);
    const root = await keepSession(store, { createdAt: at(0) });
    const current = await keepNext(store, makeTurn({ session: root.session, parent: root.id, createdAt: at(0) }), root);
    const branch = await keepBelow(store, current, { createdAt: at(0) });
    const waiting = await keepBelow(store, root, { createdAt: at(0) });
    const running = makeTurn({ session: root.session, parent: waiting.id, status: "running", createdAt: at(0) });
    await store.begin(running);
    const old = [branch];
    const unthreaded = [];
    for (const status of ["failed", "cancelled"] as const) {
      const spoiled = await keepBelow(store, root, { createdAt: at(0) });
      old.push(spoiled, await keepBelow(store, spoiled, { createdAt: at(0) }));
      unthreaded.push(makeTurn({ session: root.session, parent: spoiled.id, status, createdAt: at(5) }));
    }
    for (const turn of unthreaded) await store.begin(turn);
    clock.time = at(6);
    await keepBelow(store, root, { createdAt: at(6) });

    assert.equal((await pruneAll(store, { idleBefore: at(5) })).turns, old.length);
    for (const { id } of old) assert.equal(await store.findTurn("alice", id), undefined);
    for (const turn of unthreaded) {
      assert.deepStrictEqual(await store.findTurn("alice", turn.id), { ...turn, parent: undefined, gap: true });
    }
    assert.deepStrictEqual(await readTurns(store, current.id), [root, current]);
    assert.deepStrictEqual(await readTurns(store, waiting.id), [root, waiting]);

    assert.equal(await store.end({ ...running, status: "cancelled", createdAt: at(5) }), true);
    assert.equal((await pruneAll(store, { idleBefore: at(5) })).turns, 1);
    assert.equal(await store.findTurn("alice", waiting.id), undefined);
    assert.equal((await store.readSession(root.session!))?.tip, current.id);
  });

  it("prunes what became the end of a thread when the turn after it was deleted, or the tip moved away", async (store, clock) => {
    clock.time = at(6);
    const root = await keepSession(store, { createdAt: at(0) });
    const branch = await keepBelow(store, root, { createdAt: at(0) });
    const fresh = await keepBelow(store, branch, { createdAt: at(5) });
    // As after a clock was set back.
    await keepBelow(store, fresh, { createdAt: at(0) });
    assert.equal((await pruneAll(store, { idleBefore: at(5) })).turns, 1);
    const tip = await keepNext(store, makeTurn({ session: root.session, createdAt: at(6) }), root);
    assert.equal((await pruneAll(store, { idleBefore: at(5) })).turns, 0);
    assert.equal(await store.deleteTurn("alice", fresh.id), true);
    assert.equal((await pruneAll(store, { idleBefore: at(5) })).turns, 2);
    const left = await gather(store.exportRecords(root.session));
    assert.deepEqual(
      left.flatMap((record) => (record.type === "turn" ? [record.turn.id] : [])),
      [tip.id],
    );
  });

  it("prunes threads of an archive that were abandoned before it was imported", async (store, clock) => {
    clock.time = at(0);
    const tip = await keepSession(store, { createdAt: at(0) });
    const archive = await gather(store.exportRecords());
    const old = makeTurn({ session: tip.session, createdAt: at(0) });
    const next = makeTurn({ session: tip.session, parent: old.id, createdAt: at(1) });
    const outside = makeTurn({ createdAt: at(0) });
    const [leaf, fresh] = [0, 6].map((hours) => makeTurn({ parent: outside.id, createdAt: at(hours) }));
    const added = [old, next, outside, leaf!, fresh!].map((turn) => ({ type: "turn", turn }) as const);
    assert.equal((await store.importRecords(replay([...archive, ...added]))).turns, 5);
    clock.time = at(6);
    const current = await keepNext(store, makeTurn({ session: tip.session, parent: tip.id }), tip);
    assert.equal((await pruneAll(store, { idleBefore: at(4) })).turns, 2);
    assert.deepStrictEqual(await readTurns(store, current.id), [tip, current]);
    assert.deepStrictEqual(await readTurns(store, leaf!.id), [outside, leaf]);
  });

  it("prunes hundreds of abandoned threads in one session, and a long one", async (store, clock) => {
    clock.time = at(0);
    let tip = await keepSession(store, { createdAt: at(0) });
    const commits: Promise<StoredTurn>[] = [];
    const grow = (parent?: string): void => {
      const next = makeTurn({ session: tip.session, parent, createdAt: at(0) });
      commits.push(keepNext(store, next, tip));
      tip = next;
    };
    for (let count = 0; count < 300; count += 1) {
      grow();
      grow(tip.id);
    }
    for (let count = 0; count < 500; count += 1) grow(tip.id);
    // In one tick: a store may write them together.
    await Promise.all(commits);
    clock.time = at(6);
    const current = await keepNext(store, makeTurn({ session: tip.session, createdAt: at(6) }), tip);
    const pruned = await pruneAll(store, { idleBefore: at(5) });
    assert.deepEqual([pruned.sessions, pruned.turns], [0, 1_101]);
    const left = (await gather(store.exportRecords())).filter(({ type }) => type === "turn");
    assert.equal(left.length, 1);
    assert.equal((await store.readSession(current.session!))?.tip, current.id);
  });
}

/** Commits a turn that becomes its session's tip. */
async function keepNext(store: SessionStore, turn: StoredTurn, tip: StoredTurn): Promise<StoredTurn> {
  assert.equal(await store.commit({ turns: [turn], session: toMove(turn, tip.id, "refuse") }), true);
  return turn;
}
