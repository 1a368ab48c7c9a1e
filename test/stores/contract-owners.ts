/** What no archive can bring into a store: a record of one owner that refers to another's. */
import assert from "node:assert/strict";
import type { ArchiveRecord, StoredTurn } from "../../src/core/store.ts";
import type { It } from "./contract-said.ts";
import {
  gather,
  keepBelow,
  keepThread,
  makeConversation,
  makeTurn,
  newDigest,
  newSessionId,
  newTurnId,
  replay,
  toCreate,
} from "./making.ts";

export function describeOwners(it: It): void {
  for (const [where, isThere] of [
    ["in the store", true],
    ["in the same archive", false],
  ] as const) {
    it(`imports nothing from an archive that refers from one owner to what another has ${where}`, async (store) => {
      const session = newSessionId();
      const secret = makeTurn({ session });
      if (isThere) await store.commit({ turns: [secret], session: toCreate(secret, "hint") });
      const ofAlice = isThere ? [] : [makeSession({ id: session, tip: secret.id }), toRecord(secret)];
      const [first] = await gather(store.exportRecords());
      const before = await gather(store.exportRecords());
      const own = makeTurn({ owner: "bob" });
      for (const [stray, words] of [
        [[makeSession({ id: "conv_stray", owner: "bob", tip: secret.id })], ["tip", "conv_stray", secret.id]],
        [[toRecord(makeTurn({ id: "resp_stray", owner: "bob", parent: secret.id }))], ["resp_stray", secret.id]],
        [[toRecord(makeTurn({ id: "resp_stray", owner: "bob", session }))], ["resp_stray", session]],
        [[toRecord(makeTurn({ id: "resp_stray", owner: "bob", session, status: "failed" }))], ["resp_stray", session]],
      ] as const) {
        const records = sort([first!, ...ofAlice, toRecord(own), ...stray]);
        await assert.rejects(store.importRecords(replay(records)), {
          code: "invalid_value",
          message: new RegExp(`mixes owners: .*${words.join(".*")}.*Nothing was imported`),
        });
        assert.deepStrictEqual(await gather(store.exportRecords()), before);
      }
    });
  }

  it("imports a session whose tip is a sessionless turn of its owner, as after the turns behind it were deleted", async (store) => {
    const sessionless = makeTurn({});
    const session = makeSession({ tip: sessionless.id });
    const [first] = await gather(store.exportRecords());
    await store.importRecords(replay([first!, session, toRecord(sessionless)]));
    assert.equal((await store.readSession(session.id))?.tip, sessionless.id);
    const gone = makeSession({ tip: newTurnId() });
    await store.importRecords(replay([first!, gone]));
    assert.deepEqual(
      [(await store.readSession(gone.id))?.owner, (await store.readSession(gone.id))?.tip],
      ["alice", undefined],
    );
  });

  it("imports a turn that follows one of another session of its owner", async (store) => {
    const [root] = await keepThread(store, 1);
    const session = makeSession({});
    const turn = makeTurn({ session: session.id, parent: root!.id });
    const [first] = await gather(store.exportRecords());
    assert.deepEqual(await store.importRecords(replay([first!, session, toRecord(turn)])), {
      sessions: 1,
      turns: 1,
      hintsTaken: 0,
    });
    assert.equal((await store.readPath(turn.id)).length, 2);
    await keepBelow(store, turn, {});
  });

  it("leaves a session unchanged that an archive lists under another owner", async (store) => {
    const conversation = makeConversation({});
    await store.createSession(conversation);
    const [first] = await gather(store.exportRecords());
    const before = await store.readSession(conversation.id);
    const own = makeTurn({ owner: "bob" });
    const same = makeSession({ id: conversation.id, owner: "bob", hint: newDigest(), tip: own.id });
    await store.importRecords(replay([first!, same, toRecord(own)]));
    assert.deepStrictEqual(await store.readSession(conversation.id), before);
    const exported = (await gather(store.exportRecords(conversation.id))).find(({ type }) => type === "session");
    assert.deepEqual(exported?.type === "session" && [exported.owner, exported.hint], ["alice", undefined]);
  });
}

type SessionRecord = Extract<ArchiveRecord, { type: "session" }>;

function makeSession(wanted: Partial<SessionRecord>): SessionRecord {
  const at = new Date("2026-02-03T04:00:00.000Z");
  const empty = { hint: undefined, tip: undefined, resends: false, metadata: {}, createdAt: at, updatedAt: at };
  return { type: "session", id: newSessionId(), owner: "alice", ...empty, ...wanted };
}

function toRecord(turn: StoredTurn): ArchiveRecord {
  return { type: "turn", turn };
}

/** Sessions before turns, as every archive has them. */
function sort(records: readonly ArchiveRecord[]): readonly ArchiveRecord[] {
  const order = ["store", "session", "turn"];
  return records.toSorted((one, other) => order.indexOf(one.type) - order.indexOf(other.type));
}
