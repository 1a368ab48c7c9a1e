/**
 * What every store must export while others write: an archive that can be imported, and nothing that was not requested.
 */
import assert from "node:assert/strict";
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../src/core/store.ts";
import { createMemoryStore } from "./memory.ts";
import type { It } from "./contract-said.ts";
import { gather, keepBelow, keepSession, keepThread, makeTurn, replay, toMove } from "./making.ts";

export function describeExport(it: It): void {
  it("exports a consistent archive when the newest session is deleted and another one created meanwhile", async (store) => {
    const thread = await keepThread(store, 5);
    const newest = await keepSession(store, {});
    const records = await exportWhile(store, undefined, async (told) => {
      if (told.length !== 3) return;
      await store.deleteSession("alice", newest.session!);
      await keepSession(store, { owner: "bob" });
    });
    const other = createMemoryStore();
    assert.equal((await other.importRecords(replay(records))).turns, 5);
    assert.equal((await other.readPath(thread.at(-1)!.id)).length, 5);
  });

  it("exports a consistent archive when the newest turns of a session are deleted and it continues meanwhile", async (store) => {
    const thread = await keepThread(store, 34);
    const records = await exportWhile(store, undefined, async (told) => {
      if (told.length !== 34) return;
      for (const { id } of thread.splice(-4).toReversed()) await store.deleteTurn("alice", id);
      for (let count = 0; count < 4; count += 1) thread.push(await storeNext(store, thread.at(-1)!));
    });
    const other = createMemoryStore();
    await other.importRecords(replay(records));
    assert.equal((await other.readPath(thread[29]!.id)).length, 30);
  });

  it("exports nothing of a session that is deleted before the export reaches it", async (store) => {
    for (const isAlone of [true, false]) {
      const [first] = await keepThread(store, 2);
      const records = await exportWhile(store, isAlone ? first!.session : undefined, async () => {
        await store.deleteSession("alice", first!.session!);
      });
      assert.deepEqual(
        records.map(({ type }) => type),
        ["store"],
      );
    }
  });

  it("exports with one session nothing that was added after one of its turns was deleted", async (store) => {
    const thread = await keepThread(store, 40);
    const records = await exportWhile(store, thread[0]!.session, async (told) => {
      if (told.length !== 3) return;
      await store.deleteTurn("alice", thread.pop()!.id);
      await keepSession(store, { owner: "bob" });
    });
    assert.deepEqual(
      turnsOf(records).map(({ id }) => id),
      thread.map(({ id }) => id),
    );
  });

  it("exports with a sessionless turn nothing that was added after one of its followers was deleted", async (store) => {
    const root = makeTurn({});
    await store.commit({ turns: [root] });
    const thread = [root];
    for (let count = 0; count < 40; count += 1) thread.push(await keepBelow(store, thread.at(-1)!, {}));
    const records = await exportWhile(store, root.id, async (told) => {
      if (told.length !== 3) return;
      await store.deleteTurn("alice", thread.pop()!.id);
      await store.commit({ turns: [makeTurn({ owner: "bob" })] });
    });
    assert.deepEqual(
      turnsOf(records).map(({ id }) => id),
      thread.map(({ id }) => id),
    );
  });

  it("exports with a sessionless turn the path to it and its followers, and nothing else", async (store) => {
    const root = makeTurn({});
    await store.commit({ turns: [root] });
    const thread = [root];
    for (let count = 0; count < 4; count += 1) thread.push(await keepBelow(store, thread.at(-1)!, {}));
    await keepBelow(store, thread[1]!, {});
    assert.deepEqual(
      turnsOf(await gather(store.exportRecords(thread[3]!.id))).map(({ id }) => id),
      thread.map(({ id }) => id),
    );
  });

  it("exports each of thousands of sessions with the same time, and lists each once", async (store) => {
    const sessions = Array.from({ length: 2_100 }, (_, index): ArchiveRecord => ({
      type: "session",
      id: `conv_${index}`,
      owner: index % 2 === 0 ? "alice" : "bob",
      hint: undefined,
      tip: undefined,
      resends: false,
      metadata: {},
      createdAt: new Date(1_000),
      updatedAt: new Date(2_000),
    }));
    const [first] = await gather(store.exportRecords());
    await store.importRecords(replay([first!, ...sessions]));
    const exported = (await gather(store.exportRecords())).flatMap((record) =>
      record.type === "session" ? [record.id] : [],
    );
    assert.deepEqual([exported.length, new Set(exported).size], [2_100, 2_100]);
    for (const [owner, count] of [
      [undefined, 2_100],
      ["alice", 1_050],
    ] as const) {
      const listed: string[] = [];
      for (let more = true; more;) {
        const page = await store.listSessions({ owner, limit: 100, after: listed.at(-1) });
        listed.push(...page.map(({ id }) => id));
        more = page.length > 0;
      }
      assert.deepEqual([listed.length, new Set(listed).size], [count, count]);
    }
  });
}

/** Does something else between two records, as happens while a store is read slowly. */
async function exportWhile(
  store: SessionStore,
  wanted: string | undefined,
  live: (told: readonly ArchiveRecord[]) => Promise<void>,
): Promise<readonly ArchiveRecord[]> {
  const told: ArchiveRecord[] = [];
  for await (const record of store.exportRecords(wanted)) {
    told.push(record);
    await live(told);
  }
  return told;
}

function turnsOf(records: readonly ArchiveRecord[]): readonly StoredTurn[] {
  return records.flatMap((record) => (record.type === "turn" ? [record.turn] : []));
}

async function storeNext(store: SessionStore, tip: StoredTurn): Promise<StoredTurn> {
  const turn = makeTurn({ session: tip.session, parent: tip.id });
  assert.equal(await store.commit({ turns: [turn], session: toMove(turn, tip.id, "refuse") }), true);
  return turn;
}
