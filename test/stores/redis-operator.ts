/** What the operator asks of a store in Redis while others work on it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { SessionStore } from "../../src/core/store.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { gather, keepBelow, keepLoose, keepSession, keepThread, makeTurn, newTurnId, pruneAll } from "./making.ts";
import type { RedisServer } from "./redis-server.ts";

export function describeOperator(server: () => RedisServer): void {
  const open = async (context: TestContext, prefix: string): Promise<SessionStore> => {
    const store = await createRedisStore({ url: server().url(prefix), warn: () => {} });
    context.after(() => store.close());
    return store;
  };

  const during = async (work: () => Promise<unknown>) => {
    const before = await countCalls(server());
    await work();
    const after = await countCalls(server());
    return { reads: after.reads - before.reads, scripts: after.scripts - before.scripts };
  };

  test("sessionless turns are listed in short steps, and only the requested trees are traversed", async (context) => {
    const store = await createRedisStore({ url: server().url(), warn: () => {} });
    context.after(() => store.close());
    for (let tree = 0; tree < 30; tree += 1) {
      let parent: string | undefined;
      const turns = Array.from({ length: 20 }, () => {
        const turn = makeTurn({ parent, owner: tree === 0 ? "bob" : "alice" });
        parent = turn.id;
        return turn;
      });
      await Promise.all(turns.map((turn) => store.commit({ turns: [turn] })));
    }
    const first = await during(() => store.listSessionless({ limit: 1 }));
    assert.ok(first.reads < 100, `${first.reads} reads for one tree`);
    const ofBob = await during(async () =>
      assert.equal((await store.listSessionless({ owner: "bob", limit: 1 })).length, 1),
    );
    assert.ok(ofBob.reads < 150, `${ofBob.reads} reads for one tree of bob`);
    const all = await during(async () => {
      const page = await store.listSessionless({ limit: 100 });
      assert.deepEqual([page.length, new Set(page.map(({ turns }) => turns))], [30, new Set([20])]);
    });
    assert.equal(all.scripts, 3, "each of them through at most 200 turns");
  });

  test("each sessionless tree is listed once, even if another begins meanwhile", async (context) => {
    const store = await open(context, "listed-once");
    const [older] = await keepLoose(store, 1, new Date(1));
    const [newer] = await keepLoose(store, 200, new Date(2));
    const listed = store.listSessionless({ limit: 2 });
    await keepLoose(store, 1, new Date(3));
    assert.deepEqual(
      (await listed).map(({ id }) => id),
      [newer!.id, older!.id],
    );
  });

  test("no sessionless tree is left out if another of the same time, the last of a step, is deleted meanwhile", async (context) => {
    const store = await open(context, "same-time");
    const turns = Array.from({ length: 102 }, () => makeTurn({}));
    await Promise.all(turns.map((turn) => store.commit({ turns: [turn] })));
    const ids = turns.map(({ id }) => id).toSorted();
    const listed = store.listSessionless({ limit: 200 });
    await store.deleteTurn("alice", ids[2]!);
    assert.deepEqual((await listed).map(({ id }) => id).toSorted(), ids);
  });

  test("what began with many words is listed in short steps, too", async (context) => {
    const store = await open(context, "wordy");
    const input = [{ type: "message", role: "user", content: "x".repeat(90_000) } as const];
    const turns = await Promise.all(
      Array.from({ length: 25 }, (_, at) => keepSession(store, { input, createdAt: new Date(at) })),
    );
    const sessionless = turns.map(({ createdAt }) => makeTurn({ input, createdAt }));
    await Promise.all(sessionless.map((turn) => store.commit({ turns: [turn] })));
    const sessions = turns.map(({ session }) => session);
    const roots = sessionless.map(({ id }) => id);
    for (const [list, ids, steps] of [
      [store.listSessions, sessions, 3],
      [store.listSessionless, roots, 2],
    ] as const) {
      const { scripts } = await during(async () => {
        const found = await list({ limit: 24 });
        assert.deepEqual(
          found.map(({ id }) => id),
          ids.toReversed().slice(0, 24),
        );
      });
      assert.equal(scripts, steps, "two of them each with about a million bytes");
    }
  });

  test("each session is listed once, even if some are continued meanwhile", async (context) => {
    const store = await open(context, "moving");
    const times = Array.from({ length: 102 }, (_, at) => new Date(at));
    const turns = await Promise.all(times.map((createdAt) => keepSession(store, { createdAt })));
    const listed = store.listSessions({ limit: 200 });
    for (const at of [0, 2, 100]) await keepBelow(store, turns[at]!, { session: turns[at]!.session });
    assert.deepEqual(
      (await listed).map(({ id }) => id),
      turns.map(({ session }) => session).toReversed(),
    );
  });

  test("a page of sessions is full even if its last is deleted meanwhile", async (context) => {
    const store = await open(context, "deleted");
    const times = Array.from({ length: 103 }, (_, at) => new Date(at));
    const turns = await Promise.all(times.map((createdAt) => keepSession(store, { createdAt })));
    const ids = turns.map(({ session }) => session!).toReversed();
    const listed = store.listSessions({ limit: 102 });
    assert.equal(await store.deleteSession("alice", ids[101]!), true);
    assert.deepEqual(
      (await listed).map(({ id }) => id),
      ids.toSpliced(101, 1),
    );
  });

  test("a sessionless tree is listed, exported and deleted in short steps, however large it is", async (context) => {
    const store = await open(context, "large");
    const thread = await keepLoose(store, 1_500, new Date(0));
    const [first, last] = [thread[0]!, thread.at(-1)!];
    const wide = Array.from({ length: 1_000 }, () => makeTurn({ parent: first.id, createdAt: new Date(1) }));
    await Promise.all(wide.map((turn) => store.commit({ turns: [turn] })));
    // Past the store, whose steps are counted.
    const isThere = async (id: string) => (await server().ask("EXISTS", `{large}:t:${id}`)) === ":1\r\n";
    const countExported = async (id: string) => (await gather(store.exportRecords(id))).length;
    const works: readonly (() => Promise<unknown>)[] = [
      async () => {
        const [tree] = await store.listSessionless({ limit: 1 });
        assert.deepEqual([tree?.id, tree?.turns, tree?.updatedAt], [first.id, 2_500, new Date(1)]);
      },
      async () => assert.equal(await countExported(first.id), 1 + 2_500),
      async () => assert.equal(await countExported(last.id), 1 + 1_500),
      async () => {
        const progress = { isOver: false };
        const deleted = store.deleteBelow("alice", first.id).finally(() => (progress.isOver = true));
        while (!progress.isOver) {
          const isBegun = await isThere(thread[1]!.id);
          assert.ok(isBegun || !(await isThere(last.id)), "the last go first");
        }
        assert.equal(await deleted, 2_499);
      },
    ];
    for (const work of works) {
      const { reads, scripts } = await during(work);
      assert.ok(reads / scripts < 3_000, `${reads} reads in ${scripts} steps`);
    }
  });

  test("what is deleted from an archive during its import stays deleted, and the rest is there", async (context) => {
    const [from, to, beside] = [await open(context, "from"), await open(context, "to"), await open(context, "to")];
    const thread = await keepThread(from, 2_000);
    const sessionless = await keepLoose(from, 2_000, new Date(0));
    const stays = makeTurn({});
    await from.commit({ turns: [stays] });
    const deleteEarly = async () => {
      while (!(await beside.deleteSession("alice", thread[0]!.session!)));
      while ((await beside.prune({ idleBefore: new Date(1) })).turns === 0);
    };
    await Promise.all([to.importRecords(from.exportRecords()), deleteEarly()]);
    await pruneAll(to, { idleBefore: new Date(1) });
    for (const { id } of [thread.at(-1)!, sessionless.at(-1)!]) assert.equal(await to.findTurn("alice", id), undefined);
    assert.equal((await to.findTurn("alice", stays.id))?.id, stays.id);
  });

  test("deleting existing turns while their archive is imported again does not abort the import", async (context) => {
    const [from, to, beside] = [
      await open(context, "whence"),
      await open(context, "whither"),
      await open(context, "whither"),
    ];
    const begins = makeTurn({});
    await from.commit({ turns: [begins] });
    const thread = await keepLoose(from, 3_000, new Date(0));
    await to.importRecords(from.exportRecords());
    for (let round = 0; round < 2; round += 1) {
      await to.deleteTurn("alice", begins.id);
      const deleteEarly = async () => {
        while ((await beside.findTurn("alice", begins.id)) === undefined);
        await beside.deleteBelow("alice", thread[0]!.id);
      };
      await Promise.all([to.importRecords(from.exportRecords()), deleteEarly()]);
      await to.importRecords(from.exportRecords());
    }
  });

  test("the input of running turns is not read to see whether they are abandoned", async (context) => {
    const store = await createRedisStore({ url: server().url(), warn: () => {} });
    context.after(() => store.close());
    const input = [{ type: "message", role: "user", content: "x".repeat(1_000_000) } as const];
    await store.begin(makeTurn({ status: "running", output: [], input }));
    const countSent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await server().ask("INFO", "stats"))![1]);
    const before = await countSent();
    await store.endRunning({ code: "interrupted", message: "It was stopped." }, new Date(), () => false);
    assert.ok((await countSent()) - before < 100_000);
  });

  test("two gateways that prune one tree delete each of its turns once", async (context) => {
    const url = server().url();
    const stores = [await createRedisStore({ url, warn: () => {} }), await createRedisStore({ url, warn: () => {} })];
    for (const store of stores) context.after(() => store.close());
    await keepLoose(stores[0]!, 1_000, new Date(0));
    const gone = await Promise.all(stores.map((store) => pruneAll(store, { idleBefore: new Date(1) })));
    assert.equal(gone[0]!.turns + gone[1]!.turns, 1_000);
  });

  test("a sessionless tree that is pruned in many parts is traversed once", async (context) => {
    const pruneThread = async (length: number) => {
      const store = await createRedisStore({ url: server().url(), warn: () => {} });
      context.after(() => store.close());
      await keepLoose(store, length, new Date(0));
      const before = await countCalls(server());
      assert.equal((await pruneAll(store, { idleBefore: new Date(1) })).turns, length);
      return ((await countCalls(server())).reads - before.reads) / length;
    };
    const [short, long] = [await pruneThread(500), await pruneThread(3_000)];
    assert.ok(long < 1.5 * short, `${long} reads per turn of a long thread, ${short} of a short one`);
  });

  test("a sessionless tree of which a part is pruned is examined again if very many turns have come since", async (context) => {
    const store = await open(context, "since");
    const [root] = await keepLoose(store, 1, new Date(0));
    const side = await keepBelow(store, root!, { createdAt: new Date(0) });
    const thread = Array.from({ length: 220 }, () => newTurnId()).map((id, at, ids) =>
      makeTurn({ id, parent: ids[at - 1] ?? root!.id, createdAt: new Date(0) }),
    );
    await Promise.all(thread.map((turn) => store.commit({ turns: [turn] })));
    const rules = { idleBefore: new Date(1) };
    assert.equal((await store.prune(rules)).turns, 200);
    await keepBelow(store, side, {});
    await server().ask("INCRBY", "{since}:count", "2000");
    assert.equal((await pruneAll(store, rules)).turns, 0);
  });

  test("threads that running turns continue are passed over once, however many abandoned ones are pruned", async (context) => {
    const pruneBeside = async (count: number) => {
      const store = await createRedisStore({ url: server().url(), warn: () => {} });
      context.after(() => store.close());
      const active = await keepSession(store, {});
      // Each begins before those in use, and ends after them.
      for (let index = 0; index < 20; index += 1) {
        const first = await keepBelow(store, active, { createdAt: new Date(0) });
        await keepBelow(store, first, { createdAt: new Date(2) });
      }
      const used = Array.from({ length: count }, () => keepBelow(store, active, { createdAt: new Date(1) }));
      const inUse = new Set((await Promise.all(used)).map(({ id }) => id));
      const { reads } = await during(async () => {
        const pruned = await pruneAll(store, { idleBefore: new Date(3), inUse: () => inUse });
        assert.equal(pruned.turns, 40);
      });
      for (const id of inUse) assert.equal((await store.readPath(id)).length, 2);
      return reads;
    };
    const [few, many] = [await pruneBeside(1), await pruneBeside(100)];
    assert.ok(many < few + 1_000, `${many} reads beside a hundred threads in use, ${few} beside one`);
  });
}

/** How often Redis has read a field, and run a script. */
async function countCalls(server: RedisServer): Promise<{ readonly reads: number; readonly scripts: number }> {
  const stats = await server.ask("INFO", "commandstats");
  const count = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return { reads: count("hget") + count("hmget"), scripts: count("evalsha") };
}
