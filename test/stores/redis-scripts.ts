/**
 * What scripts do in moments that other tests do not reach: between two steps of an operation, or when a client is
 * gone.
 */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { SessionStore } from "../../src/core/store.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { readAddress } from "../../src/stores/redis/address.ts";
import { openConnection } from "../../src/stores/redis/connection.ts";
import type { Script } from "../../src/stores/redis/script.ts";
import * as scripts from "../../src/stores/redis/scripts.ts";
import { gather, keepLoose, keepThread, makeTurn, newTurnId, pruneAll, readTurns, toCreate, toMove } from "./making.ts";
import type { RedisServer } from "./redis-server.ts";

export function describeScripts(server: () => RedisServer): void {
  const open = async (context: TestContext, prefix: string): Promise<SessionStore> => {
    const store = await createRedisStore({ url: server().url(prefix), warn: () => {} });
    context.after(() => store.close());
    return store;
  };
  const run = (prefix: string, { text }: Script, ...args: readonly string[]): Promise<string> =>
    server().ask("EVAL", text, "1", `{${prefix}}:`, ...args);

  describe("Redis scripts", () => {
    test("renew the lease of the connection that holds it, and not that of an older one", async () => {
      assert.equal(await run("lease", scripts.renew, "gateway:2", "10000"), ":1\r\n");
      assert.equal(await run("lease", scripts.renew, "gateway:2", "20000"), ":1\r\n");
      assert.equal(await run("lease", scripts.renew, "gateway:1", "90000"), ":0\r\n");
      const left = Number((await server().ask("PTTL", "{lease}:lease:gateway")).slice(1));
      assert.ok(left > 10_000 && left <= 20_000);
    });

    test("admit the next in the queue if the one before it has not asked for a while", async () => {
      await server().ask("HSET", "{line}:secrets", "idempotency", "key");
      const enter = (who: string) => run("line", scripts.enter, "name", who, "10000", "100", "key", "");
      assert.equal(await enter("first"), ":1\r\n");
      assert.deepEqual([await enter("gone"), await enter("next")], [":0\r\n", ":0\r\n"]);
      await run("line", scripts.leave, "name", "first");
      await wait(110);
      assert.equal(await enter("next"), ":1\r\n");
    });

    test("append newcomers to the queue, even if the clock was set back since", async () => {
      await server().ask("HSET", "{clock}:secrets", "idempotency", "key");
      const enter = (who: string) => run("clock", scripts.enter, "name", who, "10000", "4000", "key", "");
      assert.deepEqual([await enter("first"), await enter("next")], [":1\r\n", ":0\r\n"]);
      await server().ask("ZADD", "{clock}:line:name", "XX", String((Date.now() + 60_000) * 1000), "next");
      for (const who of ["later", "last", "later"]) assert.equal(await enter(who), ":0\r\n");
      const line = await server().ask("ZRANGE", "{clock}:line:name", "0", "-1");
      assert.deepEqual(line.match(/[a-z]+/g), ["next", "later", "last"]);
    });

    test("notify those waiting for a name that it is free", async (context) => {
      await server().ask("HSET", "{freed}:secrets", "idempotency", "key");
      const times = { timeoutMs: 5_000, openingMs: 5_000, copyingMs: 1_000 };
      const address = readAddress(server().url("freed"));
      const connection = await openConnection({ address, scripts: [], ...times });
      context.after(() => connection.close());
      const freed = Promise.withResolvers<string>();
      await connection.listen({ "{freed}:freed": freed.resolve });
      for (const who of ["first", "next"]) await run("freed", scripts.enter, "name", who, "10000", "4000", "key", "");
      await run("freed", scripts.leave, "name", "first");
      assert.equal(await freed.promise, "name");
    });

    test("keep what is published under a name no longer than requested", async () => {
      await run("told", scripts.publish, "name", "one", "5000");
      const left = Number((await server().ask("PTTL", "{told}:told:name")).slice(1));
      assert.ok(left > 0 && left <= 5_000);
    });

    test("count no change, which would clear the caches of others, where nothing has changed", async (context) => {
      const store = await open(context, "changes");
      const before = await server().ask("GET", "{changes}:changes");
      await keepThread(store, 2);
      assert.equal(await server().ask("GET", "{changes}:changes"), before);
    });

    test("remove from a turn the reference to a key that is too old", async (context) => {
      const store = await open(context, "keys");
      const turn = makeTurn({});
      await store.commit({ turns: [turn], key: { key: "key", fingerprint: "print" } });
      const isNoted = () => server().ask("HEXISTS", `{keys}:t:${turn.id}`, "k");
      assert.equal(await isNoted(), ":1\r\n");
      await store.prune({ keysBefore: new Date("2100-01-01T00:00:00Z") });
      assert.equal(await isNoted(), ":0\r\n");
    });

    test("leave what is too old beyond five hundred keys and pieces to the next pruning", async (context) => {
      const store = await open(context, "old");
      const numbers = Array.from({ length: 501 }, (_, index) => String(index));
      const scored = numbers.flatMap((number) => ["1", number]);
      for (const set of ["keys", "pieces"]) await server().ask("ZADD", `{old}:${set}`, ...scored);
      for (const [bucket, own] of Map.groupBy(numbers, (number) => Math.floor(Number(number) / 100))) {
        await server().ask("HSET", `{old}:o:${bucket}`, ...own.flatMap((number) => [number, `resp_${number}`]));
      }
      for (const rules of [{ keysBefore: new Date(2) }, { piecesBefore: new Date(2) }]) {
        assert.equal((await store.prune(rules)).more, true);
        assert.equal((await store.prune(rules)).more, false);
      }
      assert.equal(await server().ask("EXISTS", "{old}:keys", "{old}:pieces"), ":0\r\n");
    });

    test("do not delete a sessionless turn that has a follower by now", async (context) => {
      const store = await open(context, "leaves");
      const [first, second] = await keepLoose(store, 2, new Date(0));
      assert.match(await run("leaves", scripts.removeLeaves, "", first!.id), /^\*3\r\n:0\r\n:0\r\n/);
      assert.match(await run("leaves", scripts.removeLeaves, "", second!.id, first!.id), /^\*3\r\n:2\r\n:2\r\n/);
    });

    test("do not delete a sessionless turn that a gateway has told to be in use by now", async (context) => {
      const store = await open(context, "using");
      const [first, second] = await keepLoose(store, 2, new Date(0));
      await run("using", scripts.renew, "gateway:1", "10000");
      await run("using", scripts.tellUse, "gateway:1", JSON.stringify([first!.id]));
      assert.match(await run("using", scripts.removeLeaves, "", second!.id, first!.id), /^\*3\r\n:1\r\n:1\r\n/);
      await run("using", scripts.tellUse, "gateway:1", "[]");
      assert.match(await run("using", scripts.removeLeaves, "", first!.id), /^\*3\r\n:1\r\n:1\r\n/);
    });

    test("delete the followers of a turn although it, and some of them, are gone by now", async (context) => {
      const store = await open(context, "below");
      const [, second, third] = await keepLoose(store, 3, new Date(0));
      assert.match(await run("below", scripts.removeBelow, "", newTurnId(), newTurnId(), second!.id), /^\*2\r\n/);
      assert.deepStrictEqual(await readTurns(store, third!.id), [{ ...third!, parent: undefined, gap: true }]);
    });

    test("do not note what an older connection tells to be in use", async () => {
      await run("late", scripts.renew, "gateway:2", "10000");
      await run("late", scripts.tellUse, "gateway:2", '["resp_2"]');
      assert.match(await run("late", scripts.tellUse, "gateway:1", '["resp_1"]'), /^-NOLEASE /);
      assert.equal(await server().ask("HGET", "{late}:used", "gateway"), '$10\r\n["resp_2"]\r\n');
    });

    test("list no more of a turn's followers than the next one can afford, and find them all", async (context) => {
      const store = await open(context, "many");
      const lengths = async (id: string) => {
        const asked = await Promise.all(["c", "f"].map((field) => server().ask("HSTRLEN", `{many}:t:${id}`, field)));
        return asked.map((reply) => Number(reply.slice(1)));
      };
      const [first, root] = await keepLoose(store, 2, new Date(0));
      const below = { parent: root!.id, createdAt: new Date(0) };
      const children = Array.from({ length: 300 }, () => makeTurn(below));
      await Promise.all(children.map((turn) => store.commit({ turns: [turn] })));
      const failed = Array.from({ length: 300 }, () => makeTurn({ ...below, status: "failed" }));
      await Promise.all(failed.map((turn) => store.begin(turn)));
      const of = await lengths(root!.id);
      assert.ok(
        of.every((length) => length >= 1_000 && length < 1_010),
        String(of),
      );
      assert.equal((await gather(store.exportRecords(first!.id))).length, 1 + 2 + 300 + 300);

      // One that is listed, and one that is not.
      for (const turn of [children[0]!, children[299]!]) assert.ok(await store.deleteTurn("alice", turn.id));
      assert.deepEqual(
        (await lengths(root!.id)).map((length) => length >= 1_000),
        [true, true],
      );
      const countOthers = async () => Number((await server().ask("SCARD", `{many}:tc:${root!.id}`)).slice(1));
      const others = await countOthers();
      assert.match(await run("many", scripts.deleteTurn, "", "alice", root!.id, "_shown", "10"), /:0\r\n$/);
      assert.equal(await countOthers(), others - 10);
      assert.ok(await store.findTurn("alice", root!.id));
      assert.ok(await store.deleteTurn("alice", root!.id));
      assert.equal(await server().ask("EXISTS", `{many}:tc:${root!.id}`, `{many}:tf:${root!.id}`), ":0\r\n");
      for (const turn of [children[1]!, children[298]!])
        assert.equal((await readTurns(store, turn.id))[0]!.id, first!.id);
      assert.equal((await pruneAll(store, { idleBefore: new Date(1) })).turns, 1 + 298 + 300);
      assert.equal(await server().ask("KEYS", "{many}:t*"), "*0\r\n");
    });

    test("show nothing of a session that is being deleted", async (context) => {
      const store = await open(context, "doomed");
      const key = { key: "key", fingerprint: "print" };
      const [first, last] = await keepThread(store, 2);
      const { session, id: parent } = last!;
      const keyed = makeTurn({ session, parent });
      assert.ok(await store.commit({ turns: [keyed], session: toMove(keyed, parent, "refuse"), key }));
      const running = makeTurn({ session, status: "running", output: [] });
      await store.begin(running);
      const exports = [undefined, session].map((wanted) => store.exportRecords(wanted)[Symbol.asyncIterator]());
      for (const records of exports) {
        for (const type of ["store", "session"]) assert.equal((await records.next()).value?.type, type);
      }
      await run("doomed", scripts.markSession, "", "alice", session!);
      for (const records of exports) {
        assert.equal((await records.next()).done, true, "an export that has told the session tells none of its turns");
      }
      assert.deepEqual(await readTurns(store, last!.id), []);
      for (const { id } of [first!, keyed, running]) assert.equal(await store.findTurn("alice", id), undefined);
      assert.equal(await store.findKey("alice", "key"), undefined);
      assert.equal(await store.deleteTurn("alice", first!.id), false);
      assert.equal(await store.end({ ...running, status: "failed" }), false);
      assert.equal(await store.commit({ turns: [{ ...running, status: "completed" }], begun: true }), false);
      assert.equal(await store.commit({ turns: [makeTurn({ parent })] }), false);
      const late = makeTurn({ session });
      assert.equal(await store.commit({ turns: [late], session: toCreate(late, "hint") }), false);
      const again = { id: session!, owner: "alice", createdAt: new Date(0), metadata: {}, tip: undefined };
      await assert.rejects(store.createSession(again), /is already stored/);
      assert.deepEqual(
        (await gather(store.exportRecords())).map(({ type }) => type),
        ["store"],
      );
    });
  });
}
