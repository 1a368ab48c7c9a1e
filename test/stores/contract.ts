/** What every store must do, defined once: each store's test file runs it with its own way of opening one. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SessionStore, StoredTurn } from "../../src/core/store.ts";
import { describeArchive, describeConversations } from "./contract-archive.ts";
import { describeExport } from "./contract-export.ts";
import { describeAbandonedThreads } from "./contract-left.ts";
import { describeDeletion, describePrune } from "./contract-letting-go.ts";
import { describeSessionless } from "./contract-operator.ts";
import { describeOwners } from "./contract-owners.ts";
import { describeBackground, describeKeys } from "./contract-writing.ts";
import { type Clock, describeResends, describeSearch, describeTwoTurns } from "./contract-said.ts";
import {
  findByDigest,
  everyItem,
  findByExchange,
  fullTold,
  gather,
  keepThread,
  makeConversation,
  makeTold,
  makeTurn,
  newDigest,
  newSessionId,
  newTurnId,
  readTurns,
  replay,
  toCreate,
  toMove,
} from "./making.ts";
import { withoutTold } from "../../src/stores/paths.ts";

export function describeStore(name: string, open: (now?: () => Date) => SessionStore | Promise<SessionStore>): void {
  function it(sentence: string, run: (store: SessionStore, clock: Clock) => Promise<void>): void {
    test(sentence, async () => {
      const clock = { time: new Date("2026-02-03T04:05:06.789Z") };
      const store = await open(() => clock.time);
      try {
        await run(store, clock);
      } finally {
        await store.close();
      }
    });
  }

  describe(name, () => {
    it("finds nothing before the first commit", async (store) => {
      await store.check();
      assert.equal(await store.findSession("alice", "hint"), undefined);
      assert.equal(await store.findTurn("alice", newTurnId()), undefined);
      assert.deepEqual(await readTurns(store, newTurnId()), []);
      assert.equal(await findByDigest(store, newSessionId(), ["digest", "another"]), undefined);
      assert.equal(await findByDigest(store, newSessionId(), []), undefined);
      assert.deepEqual(await findByExchange(store, newSessionId(), "exchange"), []);
      assert.equal(await store.countThreads(newSessionId()), 0);
    });

    it("returns a turn as it was stored", async (store) => {
      const turn = makeTurn({ input: everyItem, output: everyItem, status: "incomplete" });
      assert.equal(await store.commit({ turns: [turn] }), true);
      assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
      assert.deepStrictEqual(await readTurns(store, turn.id), [turn]);
    });

    it("returns what was sent to the caller, with its dates, its pieces and its memo", async (store) => {
      for (const told of [makeTold({}), fullTold]) {
        const turn = makeTurn({ told, gap: true });
        await store.commit({ turns: [turn] });
        assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
        // A path contains the content, not how it was sent.
        assert.deepStrictEqual(await readTurns(store, turn.id), [withoutTold(turn)]);
      }
    });

    it("stores a turn without items, without usage and without parent", async (store) => {
      const turn = makeTurn({ input: [], output: [], usage: undefined });
      await store.commit({ turns: [turn] });
      assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
    });

    it("stores a turn that was only shown, with its digests", async (store) => {
      const turn = makeTurn({ output: [], status: "shown", digest: newDigest(), exchange: newDigest() });
      await store.commit({ turns: [turn] });
      assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
      assert.deepStrictEqual(await readTurns(store, turn.id), [turn]);
    });

    it("stores a turn of a megabyte", async (store) => {
      const turn = makeTurn({ output: [{ type: "message", role: "assistant", content: "ü€𝄞x".repeat(100_000) }] });
      await store.commit({ turns: [turn] });
      assert.deepStrictEqual(await store.findTurn("alice", turn.id), turn);
    });

    it("shows a turn to its owner only", async (store) => {
      const turn = makeTurn({ owner: "alice" });
      await store.commit({ turns: [turn] });
      assert.equal(await store.findTurn("bob", turn.id), undefined);
    });

    it("finds a session by its owner and hint together", async (store) => {
      const turn = makeTurn({ owner: "alice", session: newSessionId() });
      const move = toCreate(turn, "user-1");
      assert.equal(await store.commit({ turns: [turn], session: move }), true);
      assert.deepStrictEqual(await store.findSession("alice", "user-1"), {
        id: move.id,
        owner: "alice",
        tip: turn.id,
        resends: false,
      });
      assert.equal((await store.readSession(move.id))?.tip, turn.id);
      assert.equal(await store.readSession(newSessionId()), undefined);
      assert.equal(await store.findSession("bob", "user-1"), undefined);
      assert.equal(await store.findSession("alice", "user-2"), undefined);
    });

    it("keeps the sessions of two owners under one hint separate", async (store) => {
      const ofAlice = makeTurn({ owner: "alice", session: newSessionId() });
      const ofBob = makeTurn({ owner: "bob", session: newSessionId() });
      await store.commit({ turns: [ofAlice], session: toCreate(ofAlice, "same") });
      await store.commit({ turns: [ofBob], session: toCreate(ofBob, "same") });
      assert.equal((await store.findSession("alice", "same"))?.tip, ofAlice.id);
      assert.equal((await store.findSession("bob", "same"))?.tip, ofBob.id);
    });

    for (const [ownerA, hintA, ownerB, hintB] of [
      ["a", "b\nc", "a\nb", "c"],
      ["a", 'b","c', 'a","b', "c"],
      ["a", "\ud800", "a", "\ufffd"],
      ["a", "\0", "a", ""],
    ] as const) {
      it(`does not confuse ${JSON.stringify([ownerA, hintA])} with ${JSON.stringify([ownerB, hintB])}`, async (store) => {
        const turn = makeTurn({ owner: ownerA, session: newSessionId() });
        await store.commit({ turns: [turn], session: toCreate(turn, hintA) });
        assert.equal((await store.findSession(ownerA, hintA))?.tip, turn.id);
        assert.equal(await store.findSession(ownerB, hintB), undefined);
      });
    }

    it("moves the tip to each turn that expected the previous one", async (store) => {
      const thread = await keepThread(store, 3);
      assert.equal((await store.findSession("alice", "hint"))?.tip, thread[2]?.id);
      assert.deepStrictEqual(await readTurns(store, thread[2]!.id), thread);
      assert.deepStrictEqual(await readTurns(store, thread[1]!.id), thread.slice(0, 2));
    });

    it("stores nothing of a refused turn whose expected tip has moved", async (store) => {
      const [first, second] = await keepThread(store, 2);
      const late = makeTurn({ session: first!.session, parent: first!.id });
      const move = toMove(late, first!.id, "refuse");
      assert.equal(await store.commit({ turns: [late], session: move }), false);
      assert.deepStrictEqual(await readTurns(store, late.id), []);
      assert.equal(await store.findTurn("alice", late.id), undefined);
      assert.equal((await store.findSession("alice", "hint"))?.tip, second!.id);
    });

    it("stores a branch and leaves the tip unchanged", async (store) => {
      const [first, second] = await keepThread(store, 2);
      const branch = makeTurn({ session: first!.session, parent: first!.id });
      assert.equal(await store.commit({ turns: [branch], session: toMove(branch, first!.id, "branch") }), true);
      assert.equal((await store.findSession("alice", "hint"))?.tip, second!.id);
      assert.deepStrictEqual(await readTurns(store, branch.id), [first, branch]);
      assert.deepStrictEqual(await readTurns(store, second!.id), [first, second]);
    });

    it("accepts exactly one of two turns that expect the same tip in one tick", async (store) => {
      const [first] = await keepThread(store, 1);
      const rivals = [1, 2].map(() => makeTurn({ session: first!.session, parent: first!.id }));
      const results = await Promise.all(
        rivals.map((turn) => store.commit({ turns: [turn], session: toMove(turn, first!.id, "refuse") })),
      );
      assert.deepEqual(results, [true, false]);
      assert.equal((await store.findSession("alice", "hint"))?.tip, rivals[0]!.id);
      assert.equal(await store.findTurn("alice", rivals[1]!.id), undefined);
    });

    it("creates one session when two turns create it in one tick", async (store) => {
      const rivals = [1, 2].map(() => makeTurn({ session: newSessionId() }));
      const results = await Promise.all(
        rivals.map((turn) => store.commit({ turns: [turn], session: toCreate(turn, "hint") })),
      );
      assert.deepEqual(results, [true, false]);
      assert.deepStrictEqual(await store.findSession("alice", "hint"), {
        id: rivals[0]!.session,
        owner: "alice",
        tip: rivals[0]!.id,
        resends: false,
      });
      assert.equal(await store.findTurn("alice", rivals[1]!.id), undefined);
    });

    it("accepts a turn that follows the one committed just before it in the same tick", async (store) => {
      const session = newSessionId();
      const first = makeTurn({ session });
      const second = makeTurn({ session, parent: first.id });
      const results = await Promise.all([
        store.commit({ turns: [first], session: toCreate(first, "hint") }),
        store.commit({ turns: [second], session: toMove(second, first.id, "refuse") }),
      ]);
      assert.deepEqual(results, [true, true]);
      assert.deepStrictEqual(await readTurns(store, second.id), [first, second]);
    });

    it("stores a chain of sessionless turns", async (store) => {
      const first = makeTurn({});
      const second = makeTurn({ parent: first.id });
      await store.commit({ turns: [first] });
      await store.commit({ turns: [second] });
      assert.deepStrictEqual(await readTurns(store, second.id), [first, second]);
    });

    it("stores no turn of a session that does not exist or is another owner's", async (store) => {
      const [first] = await keepThread(store, 1);
      const stray = makeTurn({ session: newSessionId() });
      const foreign = makeTurn({ owner: "bob", session: first!.session });
      for (const otherwise of ["refuse", "branch"] as const) {
        assert.equal(await store.commit({ turns: [stray], session: toMove(stray, undefined, otherwise) }), false);
        assert.equal(await store.commit({ turns: [foreign], session: toMove(foreign, first!.id, otherwise) }), false);
      }
      assert.equal(await store.commit({ turns: [stray] }), false);
      assert.equal(await store.findTurn("alice", stray.id), undefined);
      assert.equal(await store.findTurn("bob", foreign.id), undefined);
      assert.equal((await store.findSession("alice", "hint"))?.tip, first!.id);
    });

    it("does not restore a session that was deleted together with the expected tip", async (store) => {
      const turn = makeTurn({ session: newSessionId() });
      const move = { ...toCreate(turn, "hint"), expectedTip: newTurnId() };
      assert.equal(await store.commit({ turns: [turn], session: move }), false);
      assert.equal(await store.findSession("alice", "hint"), undefined);
    });

    it("stores no turn whose parent does not exist or is another owner's", async (store) => {
      const ofBob = makeTurn({ owner: "bob" });
      await store.commit({ turns: [ofBob] });
      for (const parent of [newTurnId(), ofBob.id]) {
        const orphan = makeTurn({ parent });
        assert.equal(await store.commit({ turns: [orphan] }), false);
        assert.equal(await store.findTurn("alice", orphan.id), undefined);
      }
    });

    it("rejects a turn that is already stored, and stores the others of the same tick", async (store) => {
      const [first, second] = await keepThread(store, 2);
      const again: StoredTurn = { ...first!, parent: second!.id };
      const before = makeTurn({});
      const after = makeTurn({});
      const outcomes = await Promise.allSettled([
        store.commit({ turns: [before] }),
        store.commit({ turns: [again], session: toMove(again, second!.id, "refuse") }),
        store.commit({ turns: [after] }),
      ]);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["fulfilled", "rejected", "fulfilled"],
      );
      assert.deepStrictEqual(await store.findTurn("alice", first!.id), first);
      assert.equal((await store.findSession("alice", "hint"))?.tip, second!.id);
      assert.deepStrictEqual(await store.findTurn("alice", before.id), before);
      assert.deepStrictEqual(await store.findTurn("alice", after.id), after);
    });

    describeTwoTurns(it);
    describeResends(it);
    describeSearch(it);
    describeKeys(it);
    describeBackground(it);
    describeDeletion(it);
    describePrune(it);
    describeAbandonedThreads(it);
    describeConversations(it);
    describeArchive(it);
    describeExport(it);
    describeOwners(it);
    describeSessionless(it);

    it("creates the key of its seals on first use, and returns the same afterwards", async (store) => {
      const [one, ...others] = await store.sealKeys();
      assert.equal(Buffer.from(one, "base64url").length, 32);
      assert.deepEqual(others, []);
      assert.deepEqual(await store.sealKeys(), [one]);
    });

    it("reads a thread of ten thousand turns in order", async (store) => {
      const thread = await keepThread(store, 10_000);
      const path = await readTurns(store, thread.at(-1)!.id);
      assert.deepEqual(
        path.map(({ id }) => id),
        thread.map(({ id }) => id),
      );
    });

    test("stores what was committed before it closes, and refuses everything after", async () => {
      const store = await open();
      const turn = makeTurn({});
      const committed = store.commit({ turns: [turn] });
      await store.close();
      assert.equal(await committed, true);
      const unavailable = { name: "GatewayError", code: "store_unavailable" };
      await assert.rejects(store.commit({ turns: [makeTurn({})] }), unavailable);
      await assert.rejects(store.findTurn("alice", turn.id), unavailable);
      await assert.rejects(store.findSession("alice", "hint"), unavailable);
      await assert.rejects(store.readPath(turn.id), unavailable);
      await assert.rejects(findByDigest(store, "conv_1", ["digest"]), unavailable);
      await assert.rejects(store.findTwins("conv_1", "exchange", ["exchange"]), unavailable);
      await assert.rejects(store.countThreads("conv_1"), unavailable);
      await assert.rejects(store.check(), unavailable);
      await assert.rejects(store.findKey("alice", "key"), unavailable);
      await assert.rejects(store.begin(makeTurn({ status: "running" })), unavailable);
      await assert.rejects(store.end(turn), unavailable);
      await assert.rejects(store.endRunning({ code: "draining", message: "" }, new Date()), unavailable);
      await assert.rejects(store.deleteTurn("alice", turn.id), unavailable);
      await assert.rejects(store.deleteBelow("alice", turn.id), unavailable);
      await assert.rejects(store.deleteSession("alice", "conv_1"), unavailable);
      await assert.rejects(store.prune({}), unavailable);
      await assert.rejects(store.createSession(makeConversation({})), unavailable);
      await assert.rejects(store.readSession("conv_1"), unavailable);
      await assert.rejects(store.updateMetadata("alice", "conv_1", {}), unavailable);
      await assert.rejects(store.replaceItems(turn.id, [], []), unavailable);
      await assert.rejects(store.listSessions({ limit: 1 }), unavailable);
      await assert.rejects(store.listSessionless({ limit: 1 }), unavailable);
      await assert.rejects(gather(store.exportRecords()), unavailable);
      await assert.rejects(store.importRecords(replay([])), unavailable);
      await assert.rejects(store.sealKeys(), unavailable);
      await store.close();
    });
  });
}
