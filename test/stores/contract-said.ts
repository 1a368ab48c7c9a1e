/**
 * What every store must know of the content: shown turns, callers that resend their history, and finding threads by it.
 */
import assert from "node:assert/strict";
import type { SessionStore } from "../../src/core/store.ts";
import {
  findByDigest,
  findByExchange,
  keepBelow,
  keepThread,
  makePair,
  makeTurn,
  newDigest,
  newSessionId,
  newTurnId,
  readTurns,
  toCreate,
  toMove,
} from "./making.ts";

export type It = (sentence: string, run: (store: SessionStore, clock: Clock) => Promise<void>) => void;

/** The store's clock, set by hand. */
export interface Clock {
  time: Date;
}

export function describeTwoTurns(it: It): void {
  it("stores a shown history and the turn that follows it together, and the tip is the second", async (store) => {
    const [shown, turn] = makePair({ session: newSessionId() });
    assert.equal(await store.commit({ turns: [shown, turn], session: toCreate(turn, "hint") }), true);
    assert.equal((await store.findSession("alice", "hint"))?.tip, turn.id);
    assert.deepStrictEqual(await readTurns(store, turn.id), [shown, turn]);
    const [next, last] = makePair({ session: turn.session, parent: turn.id });
    assert.equal(await store.commit({ turns: [next, last], session: toMove(last, turn.id, "refuse") }), true);
    assert.equal((await store.findSession("alice", "hint"))?.tip, last.id);
    assert.deepStrictEqual(await readTurns(store, last.id), [shown, turn, next, last]);
  });

  it("stores two turns as a branch and leaves the tip unchanged", async (store) => {
    const [first, second] = await keepThread(store, 2);
    const pair = makePair({ session: first!.session, parent: first!.id });
    assert.equal(await store.commit({ turns: pair, session: toMove(pair[1], first!.id, "branch") }), true);
    assert.equal((await store.findSession("alice", "hint"))?.tip, second!.id);
    assert.deepStrictEqual(await readTurns(store, pair[1].id), [first, ...pair]);
  });

  it("stores two sessionless turns", async (store) => {
    const pair = makePair({});
    assert.equal(await store.commit({ turns: pair }), true);
    assert.deepStrictEqual(await readTurns(store, pair[1].id), pair);
  });

  it("refuses two turns together when the tip has moved, the parent of the first is missing or the hint is taken", async (store) => {
    const [first, second] = await keepThread(store, 2);
    const late = makePair({ session: first!.session, parent: first!.id });
    const orphans = makePair({ session: first!.session, parent: newTurnId() });
    const others = makePair({ session: newSessionId() });
    const outcomes = [
      await store.commit({ turns: late, session: toMove(late[1], first!.id, "refuse") }),
      await store.commit({ turns: orphans, session: toMove(orphans[1], second!.id, "refuse") }),
      await store.commit({ turns: others, session: toCreate(others[1], "hint") }),
    ];
    assert.deepEqual(outcomes, [false, false, false]);
    for (const turn of [...late, ...orphans, ...others]) {
      assert.equal(await store.findTurn("alice", turn.id), undefined);
    }
    assert.equal((await store.findSession("alice", "hint"))?.tip, second!.id);
  });

  it("stores neither of two turns when the second is already stored", async (store) => {
    const [first] = await keepThread(store, 1);
    const shown = makeTurn({ session: first!.session, digest: newDigest() });
    const again = { ...first!, parent: shown.id };
    const move = { ...toMove(again, first!.id, "refuse"), resends: true };
    await assert.rejects(store.commit({ turns: [shown, again], session: move }));
    assert.equal(await store.findTurn("alice", shown.id), undefined);
    assert.equal(await findByDigest(store, first!.session!, [shown.digest!]), undefined);
    assert.equal((await store.readSession(first!.session!))?.resends, false);
  });
}

export function describeResends(it: It): void {
  it("records with the first turn that a session's callers resend their history", async (store) => {
    const turn = makeTurn({ session: newSessionId() });
    await store.commit({ turns: [turn], session: { ...toCreate(turn, "hint"), resends: true } });
    assert.equal((await store.findSession("alice", "hint"))?.resends, true);
    assert.equal((await store.readSession(turn.session!))?.resends, true);
  });

  it("does not forget that a session's callers resend their history", async (store) => {
    const [first] = await keepThread(store, 1);
    let parent = first!.id;
    for (const [resends, expected] of [
      [false, false],
      [true, true],
      [false, true],
    ] as const) {
      const turn = makeTurn({ session: first!.session, parent });
      assert.equal(
        await store.commit({ turns: [turn], session: { ...toMove(turn, parent, "refuse"), resends } }),
        true,
      );
      assert.equal((await store.readSession(first!.session!))?.resends, expected);
      parent = turn.id;
    }
    const plain = makeTurn({ session: first!.session, parent });
    await store.commit({ turns: [plain] });
    assert.equal((await store.readSession(first!.session!))?.resends, true);
  });

  it("learns from a branch that callers resend their history, but not from a refused turn", async (store) => {
    const [first, second] = await keepThread(store, 2);
    for (const otherwise of ["refuse", "branch"] as const) {
      const turn = makeTurn({ session: first!.session, parent: first!.id });
      const move = { ...toMove(turn, first!.id, otherwise), resends: true };
      assert.equal(await store.commit({ turns: [turn], session: move }), otherwise === "branch");
      const { tip, resends } = (await store.readSession(first!.session!)) ?? {};
      assert.deepEqual([tip, resends], [second!.id, otherwise === "branch"]);
    }
  });

  it("stores a turn whose tip has moved as a branch where callers resend their history, if requested", async (store) => {
    const [first, second] = await keepThread(store, 2);
    for (const resends of [false, true]) {
      const shown = makeTurn({ session: first!.session, parent: first!.id });
      await store.commit({ turns: [shown], session: { ...toMove(shown, first!.id, "branch"), resends } });
      const turn = makeTurn({ session: first!.session, parent: first!.id });
      const move = toMove(turn, first!.id, "branch-if-resends");
      assert.equal(await store.commit({ turns: [turn], session: move }), resends);
      assert.equal((await store.readSession(first!.session!))?.tip, second!.id);
    }
  });
}

export function describeSearch(it: It): void {
  it("finds a turn by the first of the digests that any turn of the session has", async (store) => {
    const [root] = await keepThread(store, 1);
    const [short, long] = [newDigest(), newDigest()];
    const early = await keepBelow(store, root!, { digest: short });
    const late = await keepBelow(store, early, { digest: long });
    const unknown = Array.from({ length: 9_998 }, newDigest);
    for (const [digests, found] of [
      [[long], { id: late.id, index: 0, hasChildren: false }],
      [[long, short], { id: late.id, index: 0, hasChildren: false }],
      [[short, long], { id: early.id, index: 0, hasChildren: true }],
      [[newDigest(), short, long], { id: early.id, index: 1, hasChildren: true }],
      [[...unknown, long, short], { id: late.id, index: 9_998, hasChildren: false }],
      [[...unknown, newDigest(), short], { id: early.id, index: 9_999, hasChildren: true }],
      [unknown, undefined],
    ] as const) {
      assert.deepStrictEqual(await findByDigest(store, root!.session!, digests), found);
    }
  });

  it("prefers, among turns with one digest, one without followers, and then the newest", async (store) => {
    const [root] = await keepThread(store, 1);
    const digest = newDigest();
    const find = (digests: readonly string[]) => findByDigest(store, root!.session!, digests);
    const twins = [];
    for (let count = 0; count < 3; count += 1) twins.push(await keepBelow(store, root!, { digest }));
    const order = [
      [twins[2]!, false],
      [twins[1]!, false],
      [twins[0]!, false],
      [twins[2]!, true],
    ] as const;
    for (const [twin, hasChildren] of order) {
      assert.deepStrictEqual(await find([digest]), { id: twin.id, index: 0, hasChildren });
      assert.deepStrictEqual(await find([newDigest(), digest]), { id: twin.id, index: 1, hasChildren });
      if (!hasChildren) await keepBelow(store, twin, {});
    }
  });

  it("returns the eight newest turns with one digest, the newest first, and whether they have followers", async (store) => {
    const [root] = await keepThread(store, 1);
    const digest = newDigest();
    const find = async () => (await store.findTwins(root!.session!, "digest", [digest]))?.twins;
    const twins: { id: string; hasChildren: boolean }[] = [];
    for (let count = 1; count <= 10; count += 1) {
      const twin = await keepBelow(store, root!, { digest });
      const hasChildren = count % 3 === 0;
      if (hasChildren) await keepBelow(store, twin, {});
      twins.unshift({ id: twin.id, hasChildren });
      assert.deepStrictEqual(await find(), twins.slice(0, 8));
    }
    assert.equal(await store.findTwins(root!.session!, "digest", [newDigest()]), undefined);
    assert.equal(await store.findTwins(newSessionId(), "digest", [digest]), undefined);
  });

  it("finds by digest and by exchange only turns of the session", async (store) => {
    const [root] = await keepThread(store, 1);
    const marks = { digest: newDigest(), exchange: newDigest() };
    const turn = await keepBelow(store, root!, marks);
    const other = makeTurn({ session: newSessionId(), ...marks });
    await store.commit({ turns: [other], session: toCreate(other, "another hint") });
    await store.commit({ turns: [makeTurn(marks)] });
    for (const { id, session } of [turn, other]) {
      assert.equal((await findByDigest(store, session!, [marks.digest]))?.id, id);
      assert.equal((await findByDigest(store, session!, [newDigest(), marks.digest]))?.id, id);
      assert.deepEqual(await findByExchange(store, session!, marks.exchange), [id]);
    }
    assert.equal(await findByDigest(store, newSessionId(), [marks.digest, marks.digest]), undefined);
    assert.deepEqual(await findByExchange(store, newSessionId(), marks.exchange), []);
  });

  it("finds both turns of a commit, and that the second follows the first", async (store) => {
    const [shown, turn] = makePair({ session: newSessionId(), digest: newDigest() });
    const marked = { ...turn, digest: newDigest(), exchange: newDigest() };
    await store.commit({ turns: [shown, marked], session: toCreate(turn, "hint") });
    const find = (digest: string | undefined) => findByDigest(store, turn.session!, [digest!]);
    assert.deepStrictEqual(await find(shown.digest), { id: shown.id, index: 0, hasChildren: true });
    assert.deepStrictEqual(await find(marked.digest), { id: turn.id, index: 0, hasChildren: false });
    assert.deepEqual(await findByExchange(store, turn.session!, marked.exchange), [turn.id]);
  });

  it("returns the eight newest turns that end with an exchange, the newest first", async (store) => {
    const [root] = await keepThread(store, 1);
    const exchange = newDigest();
    const ids: string[] = [];
    for (let count = 1; count <= 10; count += 1) {
      ids.unshift((await keepBelow(store, root!, { exchange })).id);
      await keepBelow(store, root!, { exchange: newDigest() });
      assert.deepEqual(await findByExchange(store, root!.session!, exchange), ids.slice(0, 8));
    }
  });

  it("ignores failed turns in searches and thread counts", async (store) => {
    const [root] = await keepThread(store, 1);
    const turn = await keepBelow(store, root!, { digest: newDigest() });
    for (const parent of [undefined, turn.id]) {
      const failed = makeTurn({ status: "failed", session: root!.session, parent });
      await store.begin({ ...failed, status: "running", session: undefined, parent: undefined });
      assert.equal(await store.end(failed), true);
    }
    assert.equal((await findByDigest(store, root!.session!, [turn.digest!]))?.hasChildren, false);
    assert.equal(await store.countThreads(root!.session!), 1);
  });

  it("counts the threads of a session up to two, by their ends", async (store) => {
    const [root, second] = await keepThread(store, 3);
    const counts = [await store.countThreads(root!.session!)];
    for (const parent of [second!.id, undefined]) {
      assert.equal(await store.commit({ turns: [makeTurn({ session: root!.session, parent })] }), true);
      counts.push(await store.countThreads(root!.session!));
    }
    assert.deepEqual(counts, [1, 2, 2]);
    await store.commit({ turns: [makeTurn({})] });
    assert.equal(await store.countThreads(newSessionId()), 0);
  });
}
