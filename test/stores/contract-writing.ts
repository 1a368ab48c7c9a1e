/** What every store must know of idempotency keys, and of turns that run in the background. */
import assert from "node:assert/strict";
import type { It } from "./contract-said.ts";
import {
  findByDigest,
  fullTold,
  keepThread,
  makePair,
  makeTold,
  makeTurn,
  newDigest,
  newSessionId,
  newTurnId,
  readTurns,
  toCreate,
  toMove,
} from "./making.ts";
import { withoutTold } from "../../src/stores/paths.ts";

const failure = { code: "draining", message: "The gateway was stopped." } as const;

export function describeKeys(it: It): void {
  it("finds a turn by its owner's idempotency key", async (store, clock) => {
    const turn = makeTurn({});
    assert.equal(await store.findKey("alice", "key"), undefined);
    await store.commit({ turns: [turn], key: { key: "key", fingerprint: "print" } });
    const record = { fingerprint: "print", turnId: turn.id, createdAt: clock.time };
    assert.deepStrictEqual(await store.findKey("alice", "key"), record);
    assert.equal(await store.findKey("bob", "key"), undefined);
    assert.equal(await store.findKey("alice", "another"), undefined);
  });

  it("stores a key with the second of two turns, and none for a refused turn", async (store) => {
    const pair = makePair({});
    await store.commit({ turns: pair, key: { key: "pair", fingerprint: "print" } });
    assert.equal((await store.findKey("alice", "pair"))?.turnId, pair[1].id);
    const orphan = makeTurn({ parent: newTurnId() });
    assert.equal(await store.commit({ turns: [orphan], key: { key: "orphan", fingerprint: "print" } }), false);
    assert.equal(await store.findKey("alice", "orphan"), undefined);
  });

  it("replaces an older record of a key with a newer one", async (store, clock) => {
    const [first, second] = [makeTurn({}), makeTurn({})];
    await store.commit({ turns: [first], key: { key: "key", fingerprint: "one" } });
    clock.time = new Date(+clock.time + 1_000);
    await store.commit({ turns: [second], key: { key: "key", fingerprint: "two" } });
    const record = { fingerprint: "two", turnId: second.id, createdAt: clock.time };
    assert.deepStrictEqual(await store.findKey("alice", "key"), record);
    await store.deleteTurn("alice", first.id);
    assert.deepStrictEqual(await store.findKey("alice", "key"), record);
    await store.deleteTurn("alice", second.id);
    assert.equal(await store.findKey("alice", "key"), undefined);
  });
}

export function describeBackground(it: It): void {
  it("finds a running turn by its id and key, and replaces it with the finished one", async (store) => {
    const [first] = await keepThread(store, 1);
    const running = makeTurn({ status: "running", output: [], usage: undefined, told: makeTold({ memo: "memo" }) });
    await store.begin(running, { key: "key", fingerprint: "print" });
    assert.deepStrictEqual(await store.findTurn("alice", running.id), running);
    assert.equal((await store.findKey("alice", "key"))?.turnId, running.id);
    const done = makeTurn({
      id: running.id,
      session: first!.session,
      parent: first!.id,
      digest: newDigest(),
      told: fullTold,
    });
    const move = toMove(done, first!.id, "refuse");
    assert.equal(await store.commit({ turns: [done], session: move, begun: true }), true);
    assert.deepStrictEqual(await store.findTurn("alice", done.id), done);
    assert.deepStrictEqual(await readTurns(store, done.id), [first!, done].map(withoutTold));
    assert.equal((await store.readSession(first!.session!))?.tip, done.id);
    assert.equal((await findByDigest(store, first!.session!, [done.digest!]))?.id, done.id);
    assert.equal((await store.findKey("alice", "key"))?.turnId, done.id);
    assert.equal(await store.endRunning(failure, new Date()), 0);
  });

  it("orders a background turn by when it finished", async (store) => {
    const session = newSessionId();
    const digest = newDigest();
    const running = makeTurn({ status: "running" });
    await store.begin(running);
    const first = makeTurn({ session, digest });
    await store.commit({ turns: [first], session: toCreate(first, "hint") });
    const done = { ...running, status: "completed", session, digest } as const;
    await store.commit({ turns: [done], session: toMove(done, first.id, "refuse"), begun: true });
    assert.equal((await findByDigest(store, session, [digest]))?.id, done.id);
  });

  it("stores a shown history together with the background turn after it", async (store) => {
    const [shown, turn] = makePair({ session: newSessionId() });
    await store.begin({ ...turn, status: "running", session: undefined, parent: undefined });
    assert.equal(await store.commit({ turns: [shown, turn], session: toCreate(turn, "hint"), begun: true }), true);
    assert.deepStrictEqual(await readTurns(store, turn.id), [shown, turn]);
  });

  it("returns a turn as it ended, even after it was read while it ran", async (store) => {
    for (const status of ["completed", "failed"] as const) {
      const running = makeTurn({ status: "running", output: [], usage: undefined, told: fullTold });
      await store.begin(running);
      assert.deepStrictEqual(await readTurns(store, running.id), [withoutTold(running)]);
      const over = makeTurn({ id: running.id, status });
      assert.equal(
        status === "failed" ? await store.end(over) : await store.commit({ turns: [over], begun: true }),
        true,
      );
      assert.deepStrictEqual(await readTurns(store, over.id), [over]);
      assert.deepStrictEqual(await store.findTurn("alice", over.id), over);
    }
  });

  it("refuses to finish a running turn that was deleted, is already over or is another owner's", async (store) => {
    const running = makeTurn({ status: "running" });
    await store.begin(running);
    const done = { ...running, status: "completed" } as const;
    assert.equal(await store.commit({ turns: [{ ...done, owner: "bob" }], begun: true }), false);
    assert.equal(await store.deleteTurn("alice", running.id), true);
    assert.equal(await store.commit({ turns: [done], begun: true }), false);
    assert.equal(await store.end({ ...running, status: "cancelled" }), false);
    assert.equal(await store.findTurn("alice", running.id), undefined);
    const over = makeTurn({});
    await store.commit({ turns: [over] });
    assert.equal(await store.commit({ turns: [{ ...over, output: [] }], begun: true }), false);
    assert.equal(await store.end({ ...over, status: "failed" }), false);
    assert.deepStrictEqual(await store.findTurn("alice", over.id), over);
  });

  it("accepts no follower of a running or failed turn", async (store) => {
    for (const status of ["running", "failed", "cancelled"] as const) {
      const turn = makeTurn({ status: "running" });
      await store.begin(turn);
      if (status !== "running") assert.equal(await store.end({ ...turn, status }), true);
      assert.equal((await store.findTurn("alice", turn.id))?.status, status);
      const next = makeTurn({ parent: turn.id });
      assert.equal(await store.commit({ turns: [next] }), false);
      assert.equal(await store.findTurn("alice", next.id), undefined);
    }
  });

  it("stores how a background turn ended, even if its place was deleted in the meantime", async (store) => {
    const [first] = await keepThread(store, 1);
    const running = makeTurn({ status: "running" });
    await store.begin(running);
    await store.deleteSession("alice", first!.session!);
    const ended = { ...running, status: "failed", session: first!.session, parent: first!.id, told: fullTold } as const;
    assert.equal(await store.end(ended), true);
    const outside = { ...ended, session: undefined, parent: undefined };
    assert.deepStrictEqual(await store.findTurn("alice", running.id), outside);
  });

  it("ends every running turn as failed, and returns how many there were", async (store) => {
    const endedAt = new Date("2026-02-04T00:00:00.000Z");
    const [one, other] = [
      makeTurn({ status: "running" }),
      makeTurn({ status: "running", owner: "bob", told: fullTold }),
    ];
    const done = makeTurn({});
    await store.begin(one, { key: "key", fingerprint: "print" });
    await store.begin(other);
    await store.commit({ turns: [done] });
    assert.equal(await store.endRunning(failure, endedAt), 2);
    const told = makeTold({ endedAt, failure });
    assert.deepStrictEqual(await store.findTurn("alice", one.id), { ...one, status: "failed", told });
    const otherTold = { ...fullTold, endedAt, failure };
    assert.deepStrictEqual(await store.findTurn("bob", other.id), { ...other, status: "failed", told: otherTold });
    assert.deepStrictEqual(await store.findTurn("alice", done.id), done);
    assert.equal((await store.findKey("alice", "key"))?.turnId, one.id);
    assert.equal(await store.endRunning(failure, endedAt), 0);
  });

  it("ends only those running turns that are abandoned", async (store) => {
    const [live, left] = [makeTurn({ status: "running" }), makeTurn({ status: "running" })];
    await store.begin(live);
    await store.begin(left);
    const asked: unknown[] = [];
    const isLeft = ({ id, createdAt }: Pick<typeof live, "id" | "createdAt">) => {
      asked.push([id, createdAt]);
      return id === left.id;
    };
    assert.equal(await store.endRunning(failure, new Date(9), isLeft), 1);
    assert.deepEqual(
      asked,
      [live, left].map(({ id, createdAt }) => [id, createdAt]),
    );
    assert.equal((await store.findTurn("alice", live.id))?.status, "running");
    assert.equal((await store.findTurn("alice", left.id))?.status, "failed");
  });

  it("rejects a running turn that is already stored", async (store) => {
    const turn = makeTurn({ status: "running" });
    await store.begin(turn);
    await assert.rejects(store.begin(turn));
  });
}
