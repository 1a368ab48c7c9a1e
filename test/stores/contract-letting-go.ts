/**
 * What every store must remove: deleted turns and sessions, forgotten beginnings, and what the rules no longer retain.
 */
import assert from "node:assert/strict";
import type { Item } from "../../src/core/item.ts";
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../src/core/store.ts";
import { createMemoryStore } from "./memory.ts";
import type { It } from "./contract-said.ts";
import {
  findByDigest,
  findByExchange,
  fullTold,
  gather,
  keepBelow,
  keepLoose,
  keepSession,
  keepThread,
  makeConversation,
  makePair,
  makeTold,
  makeTurn,
  newDigest,
  newSessionId,
  newTurnId,
  pruneAll,
  readTurns,
  replay,
  toCreate,
  toMove,
} from "./making.ts";

export function describeDeletion(it: It): void {
  it("removes a turn from its thread: its followers follow its parent, with a gap", async (store) => {
    const [first, second, third] = await keepThread(store, 3);
    await readTurns(store, third!.id);
    const branch = await keepBelow(store, second!, {});
    assert.equal(await store.deleteTurn("alice", second!.id), true);
    assert.equal(await store.findTurn("alice", second!.id), undefined);
    for (const child of [third!, branch]) {
      const moved = { ...child, parent: first!.id, gap: true };
      assert.deepStrictEqual(await store.findTurn("alice", child.id), moved);
      assert.deepStrictEqual(await readTurns(store, child.id), [first, moved]);
    }
    assert.deepEqual(await readTurns(store, second!.id), []);
    assert.equal((await store.findSession("alice", "hint"))?.tip, third!.id);
    assert.equal(await store.deleteTurn("alice", second!.id), false);
  });

  it("deletes with a turn the history shown before it, unless something else follows that", async (store) => {
    for (const status of ["completed", "failed"] as const) {
      const id = newTurnId();
      const [shown, turn] = makePair({ id: `${id}_shown`, session: newSessionId() });
      const asked = { ...turn, id };
      assert.equal(await store.commit({ turns: [shown, asked], session: toCreate(asked, status) }), true);
      const branch = await keepBelow(store, shown, { status });
      const next = await keepBelow(store, asked, {});
      assert.equal(await store.deleteTurn("alice", id), true);
      assert.deepStrictEqual(await readTurns(store, branch.id), [shown, branch]);
      assert.deepStrictEqual(await readTurns(store, next.id), [shown, { ...next, parent: shown.id, gap: true }]);
    }

    const other = newTurnId();
    const [base, below] = makePair({ id: `${other}_shown`, session: newSessionId() });
    const second = { ...below, id: other };
    assert.equal(await store.commit({ turns: [base, second], session: toCreate(second, "another") }), true);
    const last = await keepBelow(store, second, {});
    assert.equal(await store.deleteTurn("alice", other), true);
    assert.equal(await store.findTurn("alice", base.id), undefined);
    assert.deepStrictEqual(await readTurns(store, last.id), [{ ...last, parent: undefined, gap: true }]);
    assert.equal((await store.findSession("alice", "another"))?.tip, undefined);
  });

  it("deletes a turn that hundreds follow with the history shown before it, and keeps all of them", async (store) => {
    const first = await keepSession(store, {});
    const id = newTurnId();
    const [shown, turn] = makePair({ id: `${id}_shown`, session: first.session, parent: first.id });
    assert.equal(await store.commit({ turns: [shown, { ...turn, id }] }), true);
    const followers = Array.from({ length: 300 }, () => makeTurn({ session: first.session, parent: id }));
    await Promise.all(followers.map((each) => store.commit({ turns: [each] })));
    assert.equal(await store.deleteTurn("alice", id), true);
    for (const gone of [id, shown.id]) assert.equal(await store.findTurn("alice", gone), undefined);
    const found = await Promise.all(followers.map((each) => store.findTurn("alice", each.id)));
    assert.ok(found.every((each) => each?.parent === first.id && each.gap === true));
  });

  it("moves a session's tip to the parent of the deleted turn, and to nothing from a root", async (store) => {
    const [first, second] = await keepThread(store, 2);
    await store.deleteTurn("alice", second!.id);
    assert.equal((await store.findSession("alice", "hint"))?.tip, first!.id);
    await store.deleteTurn("alice", first!.id);
    assert.deepStrictEqual(await store.findSession("alice", "hint"), {
      id: first!.session,
      owner: "alice",
      tip: undefined,
      resends: false,
    });
    const next = makeTurn({ session: first!.session });
    assert.equal(await store.commit({ turns: [next], session: toMove(next, undefined, "refuse") }), true);
    assert.equal((await store.findSession("alice", "hint"))?.tip, next.id);
  });

  it("makes the followers of a deleted root roots, and no longer finds deleted turns by their content", async (store) => {
    const [root] = await keepThread(store, 1);
    const marks = { digest: newDigest(), exchange: newDigest() };
    const turn = await keepBelow(store, root!, marks);
    const child = await keepBelow(store, turn, { digest: newDigest() });
    await store.deleteTurn("alice", turn.id);
    assert.equal(await findByDigest(store, root!.session!, [marks.digest]), undefined);
    assert.deepEqual(await findByExchange(store, root!.session!, marks.exchange), []);
    await store.deleteTurn("alice", root!.id);
    assert.deepStrictEqual(await readTurns(store, child.id), [{ ...child, parent: undefined, gap: true }]);
    assert.equal((await findByDigest(store, root!.session!, [child.digest!]))?.id, child.id);
    assert.equal(await store.countThreads(root!.session!), 1);
  });

  it("deletes nothing that belongs to another owner", async (store) => {
    const [first] = await keepThread(store, 1);
    assert.equal(await store.deleteTurn("bob", first!.id), false);
    assert.equal(await store.deleteSession("bob", first!.session!), false);
    assert.equal(await store.updateMetadata("bob", first!.session!, { a: "1" }), false);
    assert.deepEqual((await store.readSession(first!.session!))?.metadata, {});
    assert.deepStrictEqual(await store.findTurn("alice", first!.id), first);
  });

  it("deletes a session with all of its turns, and its hint starts over", async (store) => {
    const thread = await keepThread(store, 3);
    const sessionId = thread[0]!.session!;
    const keyed = makeTurn({ session: sessionId, digest: newDigest(), exchange: newDigest() });
    await store.commit({ turns: [keyed], key: { key: "key", fingerprint: "print" } });
    const other = await keepSession(store, {});
    const deleteIt = () => store.deleteSession("alice", sessionId);
    assert.deepEqual(await Promise.all([deleteIt(), deleteIt()]), [true, false]);
    assert.equal(await store.findSession("alice", "hint"), undefined);
    assert.equal(await store.readSession(sessionId), undefined);
    assert.equal(await store.findKey("alice", "key"), undefined);
    assert.equal(await findByDigest(store, sessionId, [keyed.digest!]), undefined);
    assert.deepEqual(await findByExchange(store, sessionId, keyed.exchange!), []);
    assert.equal(await store.countThreads(sessionId), 0);
    for (const { id } of [...thread, keyed]) {
      assert.equal(await store.findTurn("alice", id), undefined);
      assert.deepEqual(await readTurns(store, id), []);
    }
    assert.equal(await deleteIt(), false);
    assert.deepStrictEqual(await store.findTurn("alice", other.id), other);
    const [again] = await keepThread(store, 1);
    assert.equal((await store.findSession("alice", "hint"))?.tip, again!.id);
  });

  it("deletes a session's failed and running turns with it, and does not list them in it", async (store) => {
    const conversation = makeConversation({});
    await store.createSession(conversation);
    const session = conversation.id;
    const unthreaded = (["failed", "cancelled", "running"] as const).map((status) =>
      makeTurn({ status, session, input: [{ type: "message", role: "user", content: status }] }),
    );
    for (const turn of unthreaded) await store.begin(turn, { key: turn.status, fingerprint: "print" });
    const said = makeTurn({ session, digest: newDigest() });
    assert.equal(await store.commit({ turns: [said], session: toMove(said, undefined, "refuse") }), true);
    for (const turn of unthreaded) assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
    const [listed] = await store.listSessions({ limit: 1 });
    assert.deepEqual([listed?.turns, listed?.beginning], [1, "Why is the sky blue?"]);
    assert.equal(await store.countThreads(session), 1);
    const turnsIn = (records: readonly ArchiveRecord[]) =>
      records.flatMap((record) => (record.type === "turn" ? [record.turn.id] : []));
    assert.deepEqual(turnsIn(await gather(store.exportRecords(session))), [said.id]);
    assert.deepEqual(
      turnsIn(await gather(store.exportRecords())).toSorted(),
      [...unthreaded, said].map(({ id }) => id).toSorted(),
    );
    const [, , running] = unthreaded;
    const deletion = store.deleteSession("alice", session);
    const late = store.end({ ...running!, status: "failed" });
    assert.deepEqual([await deletion, await late], [true, false]);
    assert.equal(await store.commit({ turns: [{ ...running!, session: undefined }], begun: true }), false);
    for (const { id, status } of [...unthreaded, said]) {
      assert.equal(await store.findTurn("alice", id), undefined);
      assert.equal(await store.findKey("alice", status), undefined);
    }
    assert.deepEqual(turnsIn(await gather(store.exportRecords())), []);
    assert.equal(await store.endRunning({ code: "draining", message: "It stopped." }, new Date()), 0);
  });

  it("stores a failed turn of a missing session outside of sessions", async (store) => {
    const turn = makeTurn({ status: "failed", session: newSessionId(), told: makeTold({}) });
    await store.begin(turn);
    assert.deepStrictEqual(await store.findTurn("alice", turn.id), { ...turn, session: undefined });
  });

  it("stores no turn of a session that was deleted while the turn ran", async (store) => {
    const [first] = await keepThread(store, 1);
    const late = makeTurn({ session: first!.session, parent: first!.id });
    const [, kept] = await Promise.all([
      store.deleteSession("alice", first!.session!),
      store.commit({ turns: [late], session: { ...toMove(late, first!.id, "branch"), hint: "hint" } }),
    ]);
    assert.equal(kept, false);
    assert.equal(await store.findTurn("alice", late.id), undefined);
    assert.equal(await store.findSession("alice", "hint"), undefined);
  });

  it("does not cache a turn that was stored and deleted in one tick", async (store) => {
    const turn = makeTurn({});
    const outcome = await Promise.all([store.commit({ turns: [turn] }), store.deleteTurn("alice", turn.id)]);
    assert.deepEqual(outcome, [true, true]);
    assert.deepEqual(await readTurns(store, turn.id), []);
  });

  it("forgets the beginning of a thread that has grown too long", async (store) => {
    const [first, second, third] = await keepThread(store, 3);
    const branch = await keepBelow(store, first!, {});
    await readTurns(store, third!.id);
    const turn = makeTurn({ session: first!.session, parent: third!.id });
    const commit = {
      turns: [turn] as const,
      session: toMove(turn, third!.id, "refuse"),
      forget: [first!.id, second!.id],
    };
    assert.equal(await store.commit(commit), true);
    const root = { ...third!, parent: undefined, gap: true };
    assert.deepStrictEqual(await readTurns(store, turn.id), [root, turn]);
    assert.deepStrictEqual(await readTurns(store, branch.id), [{ ...branch, parent: undefined, gap: true }]);
    for (const { id } of [first!, second!]) assert.equal(await store.findTurn("alice", id), undefined);
  });

  it("knows how many characters a thread has as JSON, also when some of it was deleted", async (store) => {
    const [first, second, third] = await keepThread(store, 3);
    const escaped: Item = { type: "message", role: "user", content: '\u0001"\n漢' };
    const fourth = await keepBelow(store, third!, { input: [escaped] });
    const sizesOf = async (tip: StoredTurn) => (await store.readPath(tip.id)).track.sizes;
    const expected = (...turns: readonly StoredTurn[]) => {
      let size = 0;
      return turns.map(({ input, output }) => (size += JSON.stringify(input).length + JSON.stringify(output).length));
    };
    assert.deepEqual(await sizesOf(fourth), expected(first!, second!, third!, fourth));
    const branch = await keepBelow(store, second!, { output: [] });
    assert.deepEqual(await sizesOf(branch), expected(first!, second!, branch));
    await store.replaceItems(second!.id, [escaped], []);
    const replaced = { ...second!, input: [escaped], output: [] };
    assert.deepEqual(await sizesOf(fourth), expected(first!, replaced, third!, fourth));
    const last = makeTurn({ session: first!.session, parent: fourth.id });
    await store.commit({ turns: [last], forget: [first!.id] });
    assert.deepEqual(await sizesOf(last), expected(replaced, third!, fourth, last));
    assert.deepEqual(await sizesOf(branch), expected(replaced, branch));
  });

  it("leaves a session without a tip when its tip is forgotten by a branch", async (store) => {
    const [first] = await keepThread(store, 1);
    const branch = makeTurn({ session: first!.session, parent: first!.id });
    const move = toMove(branch, newTurnId(), "branch");
    assert.equal(await store.commit({ turns: [branch], session: move, forget: [first!.id] }), true);
    assert.equal((await store.readSession(first!.session!))?.tip, undefined);
  });

  it("forgets everything before a turn, including its parent, but nothing for another owner or a refused turn", async (store) => {
    const [first] = await keepThread(store, 1);
    const ofBob = makeTurn({ owner: "bob" });
    await store.commit({ turns: [ofBob] });
    const turn = makeTurn({ session: first!.session, parent: first!.id });
    const forget = [first!.id, ofBob.id, newTurnId()];
    assert.equal(await store.commit({ turns: [turn], session: toMove(turn, newTurnId(), "refuse"), forget }), false);
    assert.deepStrictEqual(await store.findTurn("alice", first!.id), first);
    assert.equal(await store.commit({ turns: [turn], session: toMove(turn, first!.id, "refuse"), forget }), true);
    assert.deepStrictEqual(await readTurns(store, turn.id), [{ ...turn, parent: undefined, gap: true }]);
    assert.deepStrictEqual(await store.findTurn("bob", ofBob.id), ofBob);
  });
}

export function describePrune(it: It): void {
  const at = (hours: number) => new Date(Date.UTC(2026, 1, 3, hours, 30));

  it("keeps a cached thread when there was nothing to delete", async (store) => {
    const [, second] = await keepThread(store, 2);
    const atHand = await store.recallPath(second!.id);
    assert.equal(await store.deleteSession("alice", newSessionId()), false);
    assert.equal(await store.deleteSession("bob", second!.session!), false);
    assert.equal(await store.deleteTurn("bob", second!.id), false);
    const [before, maxSessionsPerOwner] = [new Date(0), 1];
    await store.prune({ idleBefore: before, keysBefore: before, piecesBefore: before, maxSessionsPerOwner });
    assert.deepEqual(await store.recallPath(second!.id), atHand);
  });

  it("prunes the sessions that have been idle since then, and no others", async (store, clock) => {
    clock.time = at(0);
    const [old, used] = [await keepSession(store, {}), await keepSession(store, {})];
    await store.createSession(makeConversation({ createdAt: at(0) }));
    clock.time = at(2);
    const late = makeTurn({ session: used.session, parent: used.id });
    await store.commit({ turns: [late], session: toMove(late, used.id, "refuse") });
    const fresh = await keepSession(store, {});
    assert.deepEqual(await pruneAll(store, {}), { sessions: 0, turns: 0, calls: 1, more: false });
    const pruned = await pruneAll(store, { idleBefore: new Date(+at(2)) });
    assert.deepEqual([pruned.sessions, pruned.turns], [2, 1]);
    assert.equal(await store.readSession(old.session!), undefined);
    assert.deepEqual(await readTurns(store, old.id), []);
    assert.deepStrictEqual(await readTurns(store, late.id), [used, late]);
    assert.equal((await store.readSession(fresh.session!))?.tip, fresh.id);
  });

  it("prunes no turn of an active session, even if a sessionless one is its parent", async (store, clock) => {
    clock.time = at(0);
    const source = createMemoryStore({ now: () => at(9) });
    const above = makeTurn({ createdAt: at(0) });
    await source.commit({ turns: [above] });
    const used = await keepSession(source, { createdAt: at(0) });
    const records = (await gather(source.exportRecords())).map((record) =>
      record.type === "turn" && record.turn.id === used.id
        ? { ...record, turn: { ...record.turn, parent: above.id } }
        : record,
    );
    // Parents come first.
    const rank = (record: ArchiveRecord) => Number(record.type === "turn" && record.turn.id === used.id);
    await store.importRecords(replay(records.toSorted((one, other) => rank(one) - rank(other))));
    await pruneAll(store, { idleBefore: at(5) });
    assert.equal((await store.findTurn("alice", used.id))?.id, used.id);
    assert.equal((await store.readSession(used.session!))?.tip, used.id);
  });

  it("prunes sessionless turns when nothing in their tree is new", async (store) => {
    const root = (wanted: object) => makeTurn({ createdAt: at(0), ...wanted });
    const [alone, alive, dead, fresh, running] = [
      root({}),
      root({}),
      root({}),
      root({ createdAt: at(5) }),
      root({ status: "running" }),
    ];
    for (const turn of [alone, alive, dead, fresh]) await store.commit({ turns: [turn] });
    await store.begin(running);
    const middle = await keepBelow(store, alive, { createdAt: at(1) });
    const leaf = await keepBelow(store, middle, { createdAt: at(5) });
    const side = await keepBelow(store, alive, { createdAt: at(1) });
    const deadLeaf = await keepBelow(store, dead, { createdAt: at(1) });
    const inSession = await keepSession(store, { createdAt: at(0) });
    const pruned = await pruneAll(store, { idleBefore: at(5) });
    assert.deepEqual([pruned.turns, pruned.sessions], [4, 1]);
    const left = [];
    for (const turn of [alone, alive, dead, fresh, running, middle, leaf, side, deadLeaf, inSession]) {
      if ((await store.findTurn("alice", turn.id)) !== undefined) left.push(turn.id);
    }
    assert.deepEqual(
      left,
      [alive, fresh, running, middle, leaf, side].map(({ id }) => id),
    );
    assert.deepStrictEqual(await readTurns(store, leaf.id), [alive, middle, leaf]);
    assert.equal((await pruneAll(store, { idleBefore: at(6) })).turns, 5);
  });

  it("stops pruning a sessionless tree that someone continues meanwhile", async (store) => {
    const thread = await keepLoose(store, 600, at(0));
    const { more } = await store.prune({ idleBefore: at(1) });
    if (!more) return assertNothingLeft(store);
    const next = await keepBelow(store, thread[150]!, { createdAt: at(2) });
    await pruneAll(store, { idleBefore: at(1) });
    assert.deepStrictEqual(await readTurns(store, next.id), [...thread.slice(0, 151), next]);
  });

  for (const [why, rules, continues] of [
    ["that someone continues elsewhere meanwhile", { idleBefore: at(1) }, true],
    ["that other rules retain meanwhile", { idleBefore: at(-1) }, false],
  ] as const) {
    it(`stops pruning a sessionless tree ${why}`, async (store) => {
      const root = makeTurn({ createdAt: at(0) });
      const thread = [root];
      for (const start of [root, root]) {
        let parent = start.id;
        for (let count = 0; count < 300; count += 1) {
          const turn = makeTurn({ parent, createdAt: at(0) });
          parent = turn.id;
          thread.push(turn);
        }
      }
      await Promise.all(thread.map((turn) => store.commit({ turns: [turn] })));
      const { more } = await store.prune({ idleBefore: at(1) });
      if (!more) return assertNothingLeft(store);
      if (continues) await keepBelow(store, thread[20]!, { createdAt: at(2) });
      const left = (await gather(store.exportRecords())).length;
      await pruneAll(store, rules);
      assert.equal((await gather(store.exportRecords())).length, left);
    });
  }

  it("prunes failed turns by their own age, even in a session that stays active", async (store, clock) => {
    clock.time = at(0);
    const [idle, root] = [await keepSession(store, {}), await keepSession(store, {})];
    const beside = ({ session }: StoredTurn, status: StoredTurn["status"], hours: number) =>
      makeTurn({ status, session, createdAt: at(hours) });
    const [failed, cancelled] = [beside(root, "failed", 0), beside(root, "cancelled", 1)];
    const [fresh, running] = [beside(root, "failed", 5), beside(root, "running", 0)];
    const [ofIdle, outside] = [beside(idle, "failed", 0), makeTurn({ status: "cancelled", createdAt: at(0) })];
    for (const turn of [failed, cancelled, fresh, running, ofIdle, outside]) {
      await store.begin(turn, { key: turn.id, fingerprint: "print" });
    }
    const below = beside(root, "running", 0);
    await store.begin(below);
    assert.equal(await store.end({ ...below, status: "failed", parent: root.id }), true);
    clock.time = at(5);
    const next = makeTurn({ session: root.session, parent: root.id, createdAt: at(0) });
    assert.equal(await store.commit({ turns: [next], session: toMove(next, root.id, "refuse") }), true);

    assert.equal((await pruneAll(store, { maxSessionsPerOwner: 10 })).turns, 0);
    const pruned = await pruneAll(store, { idleBefore: at(5) });
    assert.deepEqual([pruned.sessions, pruned.turns], [1, 6]);
    for (const turn of [failed, cancelled, below, outside, ofIdle]) {
      assert.equal(await store.findTurn("alice", turn.id), undefined);
      assert.equal(await store.findKey("alice", turn.id), undefined);
    }
    for (const turn of [fresh, running]) assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
    assert.deepStrictEqual(await readTurns(store, next.id), [root, next]);
    assert.equal((await store.readSession(root.session!))?.tip, next.id);
    assert.equal(await store.deleteSession("alice", root.session!), true);
    assert.deepEqual(await pruneAll(store, { idleBefore: at(9) }), { sessions: 0, turns: 0, calls: 1, more: false });
  });

  it("prunes hundreds of failed turns, but none that has followers", async (store, clock) => {
    clock.time = at(5);
    const root = await keepSession(store, {});
    const unthreaded = (wanted: Partial<StoredTurn>): StoredTurn =>
      makeTurn({ status: "failed", session: root.session, createdAt: at(0), ...wanted });
    const followed = unthreaded({});
    const follower = makeTurn({ session: root.session, parent: followed.id });
    const archive = await gather(store.exportRecords());
    const added = [followed, follower].map((turn) => ({ type: "turn", turn }) as const);
    assert.equal((await store.importRecords(replay([...archive, ...added]))).turns, 2);
    await Promise.all(Array.from({ length: 450 }, () => store.begin(unthreaded({}))));
    assert.equal((await pruneAll(store, { idleBefore: at(1) })).turns, 450);
    assert.deepStrictEqual(await readTurns(store, follower.id), [followed, follower]);
    const left = (await gather(store.exportRecords())).filter(({ type }) => type === "turn");
    assert.equal(left.length, 3);
  });

  it("prunes the least recently used sessions of an owner that has too many", async (store, clock) => {
    const kept = [];
    for (let hour = 0; hour < 6; hour += 1) {
      clock.time = new Date(+at(0) + hour * 600_000);
      kept.push(await keepSession(store, {}));
    }
    const ofBob = await keepSession(store, { owner: "bob" });
    clock.time = at(9);
    const late = makeTurn({ session: kept[0]!.session });
    await store.commit({ turns: [late], session: toMove(late, kept[0]!.id, "refuse") });
    const pruned = await pruneAll(store, { maxSessionsPerOwner: 3 });
    assert.deepEqual([pruned.sessions, pruned.turns], [3, 3]);
    const found = await Promise.all(kept.map(({ session }) => store.readSession(session!)));
    assert.deepEqual(
      found.map((session) => session !== undefined),
      [true, false, false, false, true, true],
    );
    assert.notEqual(await store.readSession(ofBob.session!), undefined);
  });

  it("prunes neither a session that a running turn continues, nor the turn it follows", async (store, clock) => {
    clock.time = at(0);
    const [idle, resumed, other] = [
      await keepSession(store, {}),
      await keepSession(store, {}),
      await keepSession(store, {}),
    ];
    const loose = await keepLoose(store, 3, at(0));
    clock.time = at(6);
    const active = await keepSession(store, { createdAt: at(0) });
    const branch = await keepBelow(store, active, { createdAt: at(0) });
    await keepBelow(store, branch, { createdAt: at(0) });
    const fork = await keepBelow(store, active, { createdAt: at(0) });
    const used = [resumed.session!, resumed.id, loose[1]!.id, active.session!, branch.id, fork.id];
    const inUse = new Set(used);
    const newest = await keepSession(store, {});
    assert.equal((await pruneAll(store, { maxSessionsPerOwner: 3, inUse: () => inUse })).sessions, 2);
    for (const { session } of [idle, other]) assert.equal(await store.readSession(session!), undefined);
    assert.equal(await store.deleteSession("alice", newest.session!), true);

    const rules = { idleBefore: at(5), maxSessionsPerOwner: 1, inUse: () => inUse };
    const pruned = await pruneAll(store, rules);
    assert.deepEqual([pruned.sessions, pruned.turns], [0, 1]);
    for (const turn of [resumed, loose[2]!, fork]) await keepBelow(store, turn, { createdAt: at(6) });
    assert.deepStrictEqual(await readTurns(store, branch.id), [active, branch]);
    inUse.clear();
    clock.time = at(9);
    const later = await pruneAll(store, { idleBefore: at(5) });
    assert.deepEqual([later.sessions, later.turns], [0, 1]);
  });

  it("stops pruning a sessionless tree that a running turn begins to continue", async (store) => {
    const thread = await keepLoose(store, 600, at(0));
    const inUse = new Set<string>();
    const rules = { idleBefore: at(1), inUse: () => inUse };
    const { more } = await store.prune(rules);
    if (!more) return assertNothingLeft(store);
    inUse.add(thread[150]!.id);
    const left = (await gather(store.exportRecords())).length;
    await pruneAll(store, rules);
    assert.equal((await gather(store.exportRecords())).length, left);
  });

  it("prunes keys and pieces only by their age", async (store, clock) => {
    const keep = async (key: string, endedAt: Date) => {
      clock.time = endedAt;
      const turn = makeTurn({ told: { ...fullTold, endedAt } });
      await store.commit({ turns: [turn], key: { key, fingerprint: "print" } });
      return turn;
    };
    const [old, fresh] = [await keep("old", at(0)), await keep("fresh", at(5))];
    await store.commit({ turns: [makeTurn({ told: makeTold({}) })] });
    const undated = makeTurn({ told: { ...fullTold, endedAt: undefined } });
    assert.equal(await store.commit({ turns: [undated] }), true);
    await readTurns(store, old.id);
    await pruneAll(store, { keysBefore: at(5), piecesBefore: at(5) });
    assert.equal(await store.findKey("alice", "old"), undefined);
    assert.equal((await store.findKey("alice", "fresh"))?.turnId, fresh.id);
    const { pieces: _, ...told } = old.told!;
    assert.deepStrictEqual(await store.findTurn("alice", old.id), { ...old, told });
    for (const turn of [fresh, undated]) assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
  });

  it("prunes a thread of a thousand turns, in a session and outside of one", async (store, clock) => {
    clock.time = at(0);
    const thread = await keepThread(store, 1_000);
    const sessionless = await keepLoose(store, 1_000, at(0));
    const pruned = await pruneAll(store, { idleBefore: at(1) });
    assert.deepEqual([pruned.sessions, pruned.turns], [1, 2_000]);
    assert.equal(await store.findTurn("alice", thread[0]!.id), undefined);
    assert.equal(await store.findTurn("alice", sessionless[0]!.id), undefined);
  });
}

/** A store that prunes all of a tree at once has nothing left to continue. */
async function assertNothingLeft(store: SessionStore): Promise<void> {
  const turns = (await gather(store.exportRecords())).filter(({ type }) => type === "turn");
  assert.deepEqual(turns, []);
}
