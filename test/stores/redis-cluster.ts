/** A store in a Redis cluster: reachable through any node, and still available when it moves to another node. */
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { after, before, describe, test, type TestContext } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { inspectRedis } from "../../src/stores/redis/inspect.ts";
import { findFreePort } from "../gateway.ts";
import { describeStore } from "./contract.ts";
import { keepSession, keepThread, makeTurn, readTurns, toMove } from "./making.ts";
import { type RedisCluster, startCluster, until } from "./redis-nodes.ts";
import type { RedisServer } from "./redis-server.ts";

/** Generous, as the machine may be busy. */
const times = { leaseMs: 30_000, renewMs: 100, timeoutMs: 30_000, openingMs: 30_000, copyingMs: 20_000 };
const hasty = { ...times, copyingMs: 200 };
const never = new AbortController().signal;

export function describeCluster(server: () => RedisServer): void {
  describe("a Redis cluster", () => {
    let cluster: RedisCluster;
    before(async () => {
      cluster = await startCluster();
    });
    after(() => cluster.remove());

    async function open(context: TestContext, url: string, more: Partial<typeof times> = {}): Promise<SessionStore> {
      const store = await createRedisStore({ url, times: { ...times, ...more }, warn: () => {} });
      context.after(() => store.close());
      await store.claim();
      return store;
    }

    describeStore("the Redis store in a cluster", (now) =>
      createRedisStore({ url: `${cluster.url()}&replicas=1`, times, now }),
    );

    test("a store is reachable through every node, even while a listed one is down", async (context) => {
      const dead = `127.0.0.1:${await findFreePort()}`;
      const stored = await keepSession(await open(context, cluster.url("prefix=found")), {});
      for (const { port } of [...cluster.pair, ...cluster.others]) {
        const store = await open(context, `redis://${dead},127.0.0.1:${port}?prefix=found`);
        assert.deepEqual(await store.findTurn("alice", stored.id), stored);
      }
      assert.equal((await inspectRedis(cluster.url("prefix=found"))).version, "2");
    });

    test("the user name and the password apply to every node", async (context) => {
      const rights = ["~{mine}:*", "&{mine}:*", "+@all", "-@dangerous"];
      for (const node of [...cluster.pair, ...cluster.others]) {
        assert.equal(await node.ask("ACL", "SETUSER", "modest", "on", ">sesame", ...rights), "+OK\r\n");
      }
      const url = cluster.url("prefix=mine&replicas=1").replace("://", "://modest:sesame@");
      const store = await open(context, url);
      const thread = await keepThread(store, 2);
      assert.equal((await readTurns(store, thread[1]!.id)).length, 2);
      await store.peers!.cancel("run", "resp_1");
    });

    test("what only a single server supports is refused with a remedy", async () => {
      const { port } = cluster.others[0];
      await assert.rejects(createRedisStore({ url: `redis://127.0.0.1:${port}/3` }), {
        code: "store_unavailable",
        message: /:\d+\/3 cannot be opened: it is in a cluster, which has only database 0\. Leave out \/3/,
      });
      await assert.rejects(createRedisStore({ url: `redis://127.0.0.1:${server().port},127.0.0.1:${port}` }), {
        code: "store_unavailable",
        message: /cannot be opened: 127\.0\.0\.1:\d+ is not a cluster node, and only nodes of one cluster/,
      });
    });

    test("a turn that no replica has is not acknowledged, and is removed", async (context) => {
      const store = await open(context, cluster.url("prefix=copied&replicas=1"), hasty);
      const first = await keepSession(store, {});
      const turn = makeTurn({ session: first.session, parent: first.id });
      const tooFew = { code: "store_unavailable", message: /too few Redis replicas have what was written/ };
      const { replica } = await cluster.findPair();
      replica.signal("SIGSTOP");
      try {
        await assert.rejects(store.commit({ turns: [turn], session: toMove(turn, first.id, "refuse") }), tooFew);
        await assert.rejects(store.check(), tooFew);
        assert.equal(await store.findTurn("alice", turn.id), undefined);
        assert.equal((await store.readSession(first.session!))?.tip, first.id);
      } finally {
        replica.signal("SIGCONT");
      }
      await until(() => works(store));
    });

    test("a warning says that the replica may lack the last turns", async () => {
      const { losses } = await inspectRedis(cluster.url("prefix=warned"));
      assert.match(losses.join("\n"), /has a replica, which may lack the last turns.*Add replicas=1 to the URL/);
      assert.doesNotMatch(
        (await inspectRedis(cluster.url("prefix=warned&replicas=1"))).losses.join("\n"),
        /replicas=1/,
      );
    });

    test("turns continue while a replica takes over from its primary, and gateways still wait for each other", async (context) => {
      const url = cluster.url("prefix=planned");
      const gateways = [await open(context, url), await open(context, url)] as const;
      await takeTurns(gateways, () => cluster.failOver());
    });

    test("turns continue while the store moves to another node, and none is stored while only a part has moved", async (context) => {
      const url = cluster.url("prefix=moved");
      const gateways = [await open(context, url), await open(context, url)] as const;
      const [target] = cluster.others;
      let waiting: Promise<boolean> | undefined;
      const move = () =>
        cluster.moveSlot("moved", target, async () => {
          const keys = await target.ask("DBSIZE");
          waiting = gateways[0].commit({ turns: [makeTurn({})] });
          await assert.rejects(open(context, url, { timeoutMs: 200 }), /moving data to another node/);
          assert.equal(await target.ask("DBSIZE"), keys);
        });
      await takeTurns(gateways, move);
      assert.equal(await waiting, true);
    });

    test("acknowledged turns survive the death of the primary, and the gateways continue with its replica", async (context) => {
      const [url, careful] = [cluster.url("prefix=killed"), cluster.url("prefix=killed&replicas=1")];
      const peers = [await open(context, url), await open(context, url)] as const;
      const gateways = [await open(context, careful), await open(context, careful)] as const;
      const { primary, replica } = await cluster.findPair();
      for (const node of [...cluster.pair, ...cluster.others]) {
        await node.ask("CONFIG", "SET", "cluster-node-timeout", "1000");
      }
      const die = async () => {
        await primary.stop("SIGKILL");
        await until(async () => /role:master/.test(await replica.ask("INFO", "replication")));
        await until(() => receives(peers));
        // Without a replica of its own the new primary could not acknowledge anything.
        await primary.start();
      };
      await takeTurns(gateways, die, true);
      await takeTurns(gateways, async () => {});
    });
  });
}

/**
 * Two gateways run turn after turn in one session while something happens; then exactly what was acknowledged is there.
 */
async function takeTurns(
  gateways: readonly [SessionStore, SessionStore],
  happen: () => Promise<void>,
  mayFail = false,
): Promise<void> {
  const first = await keepSession(gateways[0], {});
  const session = first.session!;
  const stored = new Set([first.id]);
  const over = new AbortController();

  async function take(store: SessionStore): Promise<void> {
    const leave = await store.peers!.enter(session, never);
    try {
      const tip = (await store.readSession(session))?.tip;
      const turn = makeTurn({ session, parent: tip });
      const isStored = await store.commit({ turns: [turn], session: toMove(turn, tip, "refuse") });
      if (isStored) stored.add(turn.id);
      assert.ok(isStored || mayFail, "they wait for each other, so none finds another's turn in its place");
    } finally {
      leave();
    }
  }

  async function takeUntilOver(store: SessionStore): Promise<void> {
    do {
      await take(store).catch(async (thrown: unknown) => {
        if (!mayFail || !(thrown instanceof GatewayError) || thrown.code !== "store_unavailable") throw thrown;
        await wait(20);
      });
    } while (!over.signal.aborted);
  }

  const taking = Promise.all(gateways.map(takeUntilOver));
  await Promise.race([happen(), taking]);
  await Promise.all(gateways.map((store) => until(() => works(store))));
  over.abort();
  await taking;
  for (const store of gateways) {
    const path = await readTurns(store, (await store.readSession(session))?.tip ?? "");
    assert.deepEqual(path.map(({ id }) => id).toSorted(), [...stored].toSorted());
    assert.ok(path.length > 2);
  }
}

/** Whether one receives the other's cancellation. */
async function receives([one, other]: readonly [SessionStore, SessionStore]): Promise<boolean> {
  let isReceived = false;
  one.peers!.onCancel(() => (isReceived = true));
  await other.peers!.cancel("run", "resp_1").catch(() => {});
  return isReceived;
}

function works(store: SessionStore): Promise<boolean> {
  return store.check().then(
    () => true,
    () => false,
  );
}
