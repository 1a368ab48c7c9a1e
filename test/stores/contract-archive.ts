/** What every store must provide to callers about conversations, and to the operator about everything. */
import assert from "node:assert/strict";
import type { Content, Part } from "../../src/core/item.ts";
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../src/core/store.ts";
import { createMemoryStore } from "./memory.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import type { It } from "./contract-said.ts";
import {
  everyItem,
  fullTold,
  gather,
  keepBelow,
  keepSession,
  keepThread,
  makeConversation,
  makeTurn,
  newDigest,
  newSessionId,
  newTurnId,
  readTurns,
  replay,
  toCreate,
  toMove,
} from "./making.ts";

export function describeConversations(it: It): void {
  it("creates a conversation, empty or with initial items", async (store) => {
    const empty = makeConversation({ metadata: { topic: "ü", "": "" } });
    await store.createSession(empty);
    assert.deepStrictEqual(await store.readSession(empty.id), empty);
    const shown = makeTurn({ session: newSessionId(), status: "shown", output: [] });
    const conversation = makeConversation({ id: shown.session!, tip: shown.id });
    await store.createSession(conversation, shown);
    assert.deepStrictEqual(await store.readSession(conversation.id), conversation);
    assert.deepStrictEqual(await readTurns(store, shown.id), [shown]);
    const turn = makeTurn({ session: shown.session, parent: shown.id });
    assert.equal(await store.commit({ turns: [turn], session: toMove(turn, shown.id, "refuse") }), true);
    assert.equal((await store.readSession(conversation.id))?.tip, turn.id);
    await assert.rejects(store.createSession(empty));
  });

  it("shows a hinted session as a conversation too, and updates its metadata", async (store, clock) => {
    const [first] = await keepThread(store, 1);
    const id = first!.session!;
    const conversation = { id, owner: "alice", createdAt: clock.time, metadata: {}, tip: first!.id, resends: false };
    assert.deepStrictEqual(await store.readSession(id), conversation);
    assert.equal(await store.updateMetadata("alice", id, { a: "1" }), true);
    assert.equal(await store.updateMetadata("alice", id, { b: "2" }), true);
    assert.deepStrictEqual(await store.readSession(id), { ...conversation, metadata: { b: "2" } });
    assert.equal(await store.updateMetadata("alice", newSessionId(), {}), false);
  });

  it("replaces the items of a turn, and marks it", async (store) => {
    const [first, second] = await keepThread(store, 2);
    await readTurns(store, second!.id);
    assert.equal(await store.replaceItems(first!.id, everyItem, []), true);
    const changed = { ...first!, input: everyItem, output: [], gap: true };
    assert.deepStrictEqual(await store.findTurn("alice", first!.id), changed);
    assert.deepStrictEqual(await readTurns(store, second!.id), [changed, second]);
    assert.equal(await store.replaceItems(newTurnId(), [], []), false);
  });
}

export function describeArchive(it: It): void {
  it("lists sessions with the newest activity first, page by page", async (store, clock) => {
    const start = +clock.time;
    const turns = [];
    for (let index = 0; index < 5; index += 1) {
      clock.time = new Date(start + index * 40 * 60_000);
      turns.push(await keepSession(store, {}));
    }
    const ofBob = await keepSession(store, { owner: "bob" });
    clock.time = new Date(start + 86_400_000);
    const late = makeTurn({ session: turns[1]!.session });
    await store.commit({ turns: [late], session: toMove(late, turns[1]!.id, "refuse") });
    const order = [turns[1]!, ofBob, turns[4]!, turns[3]!, turns[2]!, turns[0]!].map(({ session }) => session!);
    assert.deepEqual(await listAll(store, undefined, 2), order);
    assert.deepEqual(await listAll(store, undefined, 100), order);
    assert.deepEqual(
      await listAll(store, "alice", 2),
      order.filter((id) => id !== ofBob.session),
    );
    assert.deepEqual(await listAll(store, "nobody", 2), []);
    const [first] = await store.listSessions({ limit: 1 });
    const times = { createdAt: new Date(start + 40 * 60_000), updatedAt: clock.time };
    const beginning = "Why is the sky blue?";
    assert.deepStrictEqual(first, { id: order[0], owner: "alice", ...times, turns: 2, beginning });
    await assert.rejects(store.listSessions({ after: newSessionId(), limit: 1 }), { code: "not_found" });
  });

  it("lists sessions with the beginning of their first text", async (store) => {
    const said = (content: Content): Partial<StoredTurn> => ({
      input: [
        { type: "message", role: "system", content: "Be brief." },
        { type: "message", role: "user", content },
        { type: "message", role: "user", content: "Later." },
      ],
    });
    const image: Part = { type: "image", url: "https://example.com/a.png" };
    const cases: readonly (readonly [Partial<StoredTurn>, string | undefined])[] = [
      [said("  What grows\n\tin the shade? "), "What grows in the shade?"],
      [said([image, { type: "text", text: "What is it?" }]), "What is it?"],
      [said([image]), undefined],
      [said(`${"é".repeat(119)}🌱🌱`), `${"é".repeat(119)}…`],
      [said(`${" ".repeat(2_000)}What grows?`), "What grows?"],
      [said("half a pair: \ud83c"), "half a pair: \ud83c"],
      [{ input: [] }, undefined],
    ];
    for (const [turn, beginning] of cases) {
      const { session } = await keepSession(store, turn);
      const listed = await store.listSessions({ limit: 100 });
      assert.ok(listed.some(({ id }) => id === session));
      assert.equal(listed.find(({ id }) => id === session)?.beginning, beginning);
    }
  });

  it("lists a session that starts with a long text without it, as reading it would take too long", async (store) => {
    // Brackets, quotes and two-byte characters, as the limit is in bytes of JSON.
    const asked = (length: number) => [{ type: "message", role: "user", content: "ü".repeat(length) } as const];
    const around = JSON.stringify(asked(0)).length;
    const short = await keepSession(store, { input: asked(Math.floor((99_999 - around) / 2)) });
    const long = await keepSession(store, { input: asked(Math.ceil((100_000 - around) / 2)) });
    const last = await keepSession(store, { input: [...asked(3), ...asked(2_000_000)] });
    const listed = await store.listSessions({ limit: 3 });
    assert.deepEqual(
      [short, long, last].map(({ session }) => listed.find(({ id }) => id === session)?.beginning),
      [`${"ü".repeat(120)}…`, undefined, undefined],
    );
  });

  it("exports everything in an order that every other store can import", async (store, clock) => {
    await fill(store);
    clock.time = new Date(+clock.time + 5_000);
    const [session] = await store.listSessions({ limit: 1 });
    await store.updateMetadata("alice", session!.id, { a: "1" });
    const records = await gather(store.exportRecords());
    assert.deepEqual([...new Set(records.map(({ type }) => type))], ["store", "session", "turn"]);
    for (const other of [createMemoryStore(), createSqliteStore({ file: ":memory:" })]) {
      const counts = { sessions: 3, turns: records.length - 4, hintsTaken: 0 };
      assert.deepEqual(await other.importRecords(replay(records)), counts);
      assert.deepStrictEqual(await gather(other.exportRecords()), records);
      assert.equal((await other.findSession("alice", "hint"))?.id, (await store.findSession("alice", "hint"))?.id);
      assert.deepEqual(await other.importRecords(replay(records)), { sessions: 0, turns: 0, hintsTaken: 0 });
      assert.deepStrictEqual(await gather(other.exportRecords()), records);
      await other.close();
    }
  });

  it("exports one session alone", async (store) => {
    await fill(store);
    const { id } = (await store.findSession("alice", "hint"))!;
    const records = await gather(store.exportRecords(id));
    assert.deepEqual(
      records.map(({ type }) => type),
      ["store", "session", ...Array.from({ length: 45 }, () => "turn")],
    );
    assert.ok(records.every((record) => record.type !== "turn" || record.turn.session === id));
    await assert.rejects(gather(store.exportRecords(newSessionId())), { code: "not_found" });
  });

  it("continues while an export is read slowly, and the export stays consistent", async (store) => {
    const thread = await keepThread(store, 100);
    const records = [];
    for await (const record of store.exportRecords()) {
      records.push(record);
      if (records.length === 1) await keepSession(store, {});
      if (records.length === 10) {
        await keepSession(store, {});
        await store.deleteTurn("alice", thread[2]!.id);
        await store.deleteTurn("alice", thread[50]!.id);
      }
    }
    const other = createMemoryStore();
    assert.deepEqual(await other.importRecords(replay(records)), { sessions: 1, turns: 99, hintsTaken: 0 });
    assert.equal((await other.readPath(thread[99]!.id)).length, 99);
  });

  it("reads only a few megabytes of an export ahead of its reader", async (store) => {
    const session = newSessionId();
    const turns: StoredTurn[] = [];
    for (let count = 0; count < 5; count += 1) {
      const input = [{ type: "message", role: "user", content: "x".repeat(2_500_000) } as const];
      const turn = makeTurn({ session, parent: turns.at(-1)?.id, input });
      const move = turns.length === 0 ? toCreate(turn, "hint") : toMove(turn, turns.at(-1)!.id, "refuse");
      await store.commit({ turns: [turn], session: move });
      turns.push(turn);
    }
    for (const wanted of [undefined, session]) {
      const told = [];
      const last = turns.pop()!;
      for await (const record of store.exportRecords(wanted)) {
        if (record.type !== "turn") continue;
        if (told.length === 0) await store.deleteTurn("alice", last.id);
        told.push(record.turn.id);
      }
      assert.deepEqual(
        told,
        turns.map(({ id }) => id),
      );
    }
  });

  it("adds the key of its seals to its archive, and adopts that of an archive if it has none", async (store) => {
    const other = createMemoryStore();
    const [secret] = await other.sealKeys();
    assert.deepEqual(sealKeysOf(await gather(store.exportRecords())), []);
    await store.importRecords(other.exportRecords());
    assert.deepEqual(await store.sealKeys(), [secret]);
    assert.deepEqual(sealKeysOf(await gather(store.exportRecords())), [secret]);
  });

  it("keeps its own key of seals, and adds those of imported archives", async (store) => {
    const [own] = await store.sealKeys();
    const others = [];
    for (const source of [createMemoryStore(), createMemoryStore()]) {
      others.push((await source.sealKeys())[0]);
      for (let times = 0; times < 2; times += 1) await store.importRecords(source.exportRecords());
    }
    const known = [own, ...others.toSorted()];
    assert.deepEqual(await store.sealKeys(), known);
    const records = await gather(store.exportRecords());
    assert.deepEqual(sealKeysOf(records), known);
    await store.importRecords(replay(records));
    assert.deepEqual(await store.sealKeys(), known);
    await store.importRecords(replay(records.map((record) => ({ ...record, sealKeys: undefined }))));
    assert.deepEqual(await store.sealKeys(), known);
  });

  it("imports what it lacks and leaves what it has", async (store) => {
    const [first, second] = await keepThread(store, 2);
    const records = await gather(store.exportRecords());
    await store.deleteTurn("alice", second!.id);
    await store.updateMetadata("alice", first!.session!, { now: "1" });
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 0, turns: 1, hintsTaken: 0 });
    assert.deepStrictEqual(await readTurns(store, second!.id), [first, second]);
    assert.equal((await store.readSession(first!.session!))?.tip, first!.id);
    await store.deleteSession("alice", first!.session!);
    const [again] = await keepThread(store, 1);
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 1, turns: 2, hintsTaken: 1 });
    assert.equal((await store.findSession("alice", "hint"))?.tip, again!.id);
    assert.equal((await store.readSession(first!.session!))?.tip, second!.id);
  });

  it("gives a session without a tip the tip of the archive", async (store) => {
    const [first] = await keepThread(store, 1);
    const archive = await gather(store.exportRecords());
    await store.deleteTurn("alice", first!.id);
    assert.equal((await store.findSession("alice", "hint"))?.tip, undefined);
    assert.equal((await store.importRecords(replay(archive))).turns, 1);
    assert.equal((await store.findSession("alice", "hint"))?.tip, first!.id);
  });

  it("imports nothing from an archive whose hints use a different key", async (store) => {
    const other = createMemoryStore();
    await fill(other);
    const records = await gather(other.exportRecords());
    const [first] = await keepThread(store, 1);
    const before = await gather(store.exportRecords());
    await assert.rejects(store.importRecords(replay(records)), {
      code: "invalid_value",
      message: /different key.*Nothing was imported.*empty/s,
    });
    assert.deepStrictEqual(await gather(store.exportRecords()), before);
    const withoutHints = records.map((record) => (record.type === "session" ? { ...record, hint: undefined } : record));
    assert.equal((await store.importRecords(replay(withoutHints))).sessions, 3);
    const imported = await gather(store.exportRecords());
    assert.deepEqual(await store.importRecords(replay(records)), { sessions: 0, turns: 0, hintsTaken: 0 });
    assert.deepStrictEqual(await gather(store.exportRecords()), imported);
    assert.equal((await store.findSession("alice", "hint"))?.tip, first!.id);
  });

  it("imports nothing from an incomplete archive", async (store) => {
    const other = createMemoryStore();
    await keepThread(other, 3);
    const records = await gather(other.exportRecords());
    const before = await gather(store.exportRecords());
    const [first, session, root, child, ...rest] = records;
    const isTurnedRound = [first!, session!, child!, root!, ...rest];
    const isDoubled = [first!, ...records];
    for (const broken of [...[0, 1, 2].map((missing) => records.toSpliced(missing, 1)), isTurnedRound, isDoubled]) {
      await assert.rejects(store.importRecords(replay(broken)), { code: "invalid_value", message: /is incomplete/ });
      assert.deepStrictEqual(await gather(store.exportRecords()), before);
    }
    async function* breakOff() {
      yield* records;
      throw new Error("the line went dead");
    }
    await assert.rejects(store.importRecords(breakOff()), /went dead/);
    assert.deepStrictEqual(await gather(store.exportRecords()), before);
  });
}

function sealKeysOf(records: readonly ArchiveRecord[]): readonly string[] | undefined {
  const [first] = records;
  return first?.type === "store" ? first.sealKeys : undefined;
}

/** Three sessions of two owners, with branches, gaps and every kind of turn, and sessionless turns. */
async function fill(store: SessionStore): Promise<void> {
  const [root] = await keepThread(store, 40);
  for (let count = 0; count < 4; count += 1) {
    await keepBelow(store, root!, { digest: newDigest(), exchange: newDigest(), told: fullTold, output: everyItem });
  }
  const shown = makeTurn({ session: newSessionId(), owner: "bob", status: "shown", usage: undefined });
  await store.createSession(makeConversation({ id: shown.session!, owner: "bob", metadata: { b: "2" } }), shown);
  const single = await keepSession(store, { owner: "bob" });
  await keepBelow(store, single, { owner: "bob", session: single.session, input: everyItem });
  const running = makeTurn({ status: "running", told: fullTold });
  await store.begin(running);
  const sessionless = makeTurn({});
  await store.commit({ turns: [sessionless], key: { key: "key", fingerprint: "print" } });
  const middle = await keepBelow(store, sessionless, {});
  await keepBelow(store, middle, {});
  await store.deleteTurn("alice", middle.id);
  await store.commit({
    turns: [{ ...running, status: "incomplete", session: root!.session, parent: root!.id }],
    begun: true,
  });
}

async function listAll(store: SessionStore, owner: string | undefined, limit: number): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const page = await store.listSessions({ owner, limit, after: ids.at(-1) });
    if (page.length === 0) return ids;
    ids.push(...page.map(({ id }) => id));
  }
}
