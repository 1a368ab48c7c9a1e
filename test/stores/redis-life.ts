/** What applies to a store in Redis beyond the contract of all stores: other gateways, failures, and what remains. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createConnection } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { setImmediate as breathe, setTimeout as wait } from "node:timers/promises";
import type { ArchiveRecord, SessionStore } from "../../src/core/store.ts";
import { readAddress } from "../../src/stores/redis/address.ts";
import { openConnection } from "../../src/stores/redis/connection.ts";
import { plain } from "../../src/stores/redis/script.ts";
import { createRedisStore, type RedisStoreOptions } from "../../src/stores/redis.ts";
import { findFreePort } from "../gateway.ts";
import { standStill } from "../still.ts";
import { createMemoryStore } from "./memory.ts";
import {
  fullTold,
  gather,
  keepBelow,
  keepSession,
  keepThread,
  makeTurn,
  pruneAll,
  readTurns,
  replay,
  toMove,
} from "./making.ts";
import { startProxy } from "./redis-proxy.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

/** Generous, as the machine may be busy. */
const times = { leaseMs: 10_000, renewMs: 60, timeoutMs: 5_000, openingMs: 5_000 };
/** For tests in which a replica must answer. */
const slow = { ...times, timeoutMs: 30_000, copyingMs: 20_000 };
/** For tests in which Redis must not answer. */
const hasty = { ...times, timeoutMs: 400, openingMs: 800 };

async function open(context: TestContext, options: RedisStoreOptions): Promise<SessionStore> {
  const store = await createRedisStore({ times, warn: () => {}, now: createLeapingClock(), ...options });
  context.after(() => store.close());
  return store;
}

/** Polls for what happens by itself after a while. */
async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await wait(5);
}

/** Each reading is a second later, so that no test waits for what is tried only once a second. */
function createLeapingClock(): () => Date {
  let time = 0;
  return () => new Date((time += 1_000));
}

/** Deletes the lease of a store's only gateway. Returns its key. */
async function loseLease(server: RedisServer, prefix: string): Promise<string> {
  const [lease = ""] = /\{\S+?\}:lease:\S+/.exec(await server.ask("KEYS", `{${prefix}}:lease:*`)) ?? [];
  assert.equal(await server.ask("DEL", lease), ":1\r\n");
  return lease;
}

const works = (store: SessionStore) => () =>
  store.check().then(
    () => true,
    () => false,
  );

export function describeOtherGateways(server: () => RedisServer): void {
  describe("a gateway on Redis", () => {
    test("sees what others changed just before its own change, or before one that finds nothing to change", async (context) => {
      const url = server().url();
      const [gateway, beside] = [await open(context, { url }), await open(context, { url })];
      const own = await keepSession(gateway, {});
      // It is old and was an end, but is not abandoned.
      await keepBelow(gateway, await keepBelow(gateway, own, { createdAt: new Date(0) }), {});
      for (const change of [
        () => gateway.prune({ idleBefore: new Date(1) }),
        () => gateway.deleteTurn("alice", own.id),
      ]) {
        const first = await keepSession(gateway, {});
        const last = await keepBelow(gateway, first, {});
        assert.equal((await readTurns(gateway, last.id)).length, 2);
        await beside.deleteTurn("alice", first.id);
        await change();
        assert.equal((await readTurns(gateway, last.id)).length, 1);
      }
    });

    test("reads only the end of a thread that another continued", async (context) => {
      const url = server().url("continued");
      const [gateway, beside, cold] = await Promise.all([url, url, url].map((each) => open(context, { url: each })));
      const thread = await keepThread(gateway!, 100);
      let newest = thread.at(-1)!;
      assert.equal((await readTurns(beside!, newest.id)).length, 100);
      const countRead = async () =>
        Number(/cmdstat_hmget:calls=(\d+)/.exec(await server().ask("INFO", "commandstats"))?.[1]);
      const readBefore = await countRead();
      newest = await keepBelow(gateway!, newest, {});
      assert.equal((await readTurns(beside!, newest.id)).length, 101);
      newest = await keepBelow(gateway!, newest, {});
      assert.equal((await beside!.recallPath(newest.id))?.length, 102);
      assert.equal(await cold!.recallPath(newest.id), undefined);
      assert.ok((await countRead()) - readBefore < 40);
      assert.equal((await readTurns(cold!, newest.id)).length, 102);
    });

    test("sees the command line's deletions, and uses the archives that it imports", async (context) => {
      const url = server().url();
      const [gateway, beside] = [await open(context, { url }), await open(context, { url })];
      await gateway.claim();
      const other = createMemoryStore();
      const [stored] = await keepThread(other, 1);
      await beside.importRecords(replay(await gather(other.exportRecords())));
      assert.equal((await gateway.findSession("alice", "hint"))?.tip, stored!.id);
      const turn = await keepBelow(gateway, stored!, {});
      assert.equal((await readTurns(gateway, turn.id)).length, 2);
      await beside.deleteTurn("alice", stored!.id);
      assert.deepEqual(await readTurns(gateway, turn.id), [{ ...turn, parent: undefined, gap: true }]);
      await beside.deleteSession("alice", stored!.session!);
      assert.deepEqual(await readTurns(gateway, turn.id), []);
      assert.equal(await gateway.findSession("alice", "hint"), undefined);
    });
  });
}

export function describeFailures(server: () => RedisServer): void {
  const unreachable = { code: "store_unavailable", retryAfterSeconds: 1, message: /Redis cannot be reached/ };

  describe("failures of Redis", () => {
    test("a commit whose answer was lost is stored once, and its caller gets the result", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const store = await open(context, { url: `redis://127.0.0.1:${proxy.port}?prefix=lost` });
      await store.claim();
      const [first] = await keepThread(store, 1);
      const turn = makeTurn({ session: first!.session, parent: first!.id });
      const move = { id: first!.session!, expectedTip: first!.id, otherwise: "refuse", resends: false } as const;
      proxy.mode = "lose";
      assert.equal(await store.commit({ turns: [turn], session: move }), true);
      assert.deepEqual(await readTurns(store, turn.id), [first, turn]);
      assert.equal((await gather(store.exportRecords())).length, 4);
    });

    test("a command sent as the connection is lost is answered on the next one", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const store = await open(context, { url: `redis://127.0.0.1:${proxy.port}?prefix=blink` });
      await store.claim();
      const before = await keepSession(store, {});
      proxy.mode = "lose";
      assert.deepEqual(await store.findTurn("alice", before.id), before);
      proxy.mode = "refuse";
      proxy.cut();
      await until(async () => !(await works(store)()));
      const turn = makeTurn({ session: before.session, parent: before.id });
      const asked = [store.commit({ turns: [turn] }), store.findTurn("alice", before.id)] as const;
      proxy.mode = "pass";
      assert.deepEqual(await Promise.all(asked), [true, before]);
      assert.deepEqual(await readTurns(store, turn.id), [before, turn]);
    });

    test("a write that was lost with its connection is no reason to refuse turns on the next one", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const url = `redis://127.0.0.1:${proxy.port}?prefix=anew`;
      const store = await open(context, { url, now: () => new Date(0) });
      await store.claim();
      const promised = makeTurn({ status: "running", output: [] });
      proxy.mode = "lose";
      await assert.rejects(store.begin(promised), unreachable);
      assert.equal((await store.findTurn("alice", promised.id))?.status, "running");
      await store.check();
    });

    test("a commit whose answer never came is undone when Redis is back, as its caller was told that it failed", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const store = await open(context, { url: `redis://127.0.0.1:${proxy.port}?prefix=doubt`, times: hasty });
      const observer = await open(context, { url: server().url("doubt") });
      await store.claim();
      const [first] = await keepThread(store, 1);
      const turn = makeTurn({ session: first!.session, parent: first!.id });
      const move = { id: first!.session!, expectedTip: first!.id, otherwise: "refuse", resends: false } as const;
      const promised = makeTurn({ status: "running", output: [] });
      await store.begin(promised);
      proxy.mode = "refuse";
      await Promise.all([
        assert.rejects(store.commit({ turns: [turn], session: move }), unreachable),
        assert.rejects(store.commit({ turns: [{ ...promised, status: "completed" }], begun: true }), unreachable),
      ]);
      await assert.rejects(store.check(), unreachable);
      assert.equal((await observer.findSession("alice", "hint"))?.tip, turn.id);
      proxy.mode = "pass";
      await until(works(store));
      assert.equal((await store.findSession("alice", "hint"))?.tip, first!.id);
      assert.equal(await store.findTurn("alice", turn.id), undefined);
      const stored = await store.findTurn("alice", promised.id);
      assert.equal(stored?.status, "completed", "what was acknowledged before is not undone");
    });

    test("a commit whose answer is lost while waiting for replicas fails, and nothing else does", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const url = `redis://127.0.0.1:${proxy.port}?prefix=copies&replicas=1`;
      const store = await open(context, { url, times: { ...times, copyingMs: 50 } });
      proxy.mode = "lose";
      const message = /too few Redis replicas have what was written/;
      await assert.rejects(store.commit({ turns: [makeTurn({})] }), { code: "store_unavailable", message });
      await store.close();
    });

    test("a write that too few replicas have is given up at once, not sent again", async (context) => {
      const address = readAddress(`${server().url("alone")}&replicas=1`);
      const connection = await openConnection({ address, scripts: [], ...times, copyingMs: 20 });
      context.after(() => connection.close());
      const sent: boolean[] = [];
      const write = {
        toArgs: (mayBeDone: boolean) => (sent.push(mayBeDone), []),
        retake: async () => false,
        abandon: context.mock.fn(),
      };
      await assert.rejects(connection.runDurably(plain("return 1"), write), { code: "store_unavailable" });
      assert.deepEqual([sent, write.abandon.mock.callCount()], [[false], 1]);
    });

    test("a commit is undone if Redis does not permit the gateway to wait for its copies", async (context) => {
      const rights = ["~{uncopied}:*", "&{uncopied}:*", "+@all", "-@dangerous", "-wait"];
      await server().ask("ACL", "SETUSER", "lonely", "on", ">sesame", ...rights);
      const url = `redis://lonely:sesame@127.0.0.1:${server().port}?prefix=uncopied`;
      const store = await open(context, { url: `${url}&replicas=1` });
      const turn = makeTurn({});
      await assert.rejects(store.commit({ turns: [turn] }), { code: "store_unavailable" });
      assert.equal(await store.findTurn("alice", turn.id), undefined);
    });

    test("a commit that was in transit for too long has no effect", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const store = await open(context, { url: `redis://127.0.0.1:${proxy.port}?prefix=late`, times: hasty });
      await store.claim();
      const first = await keepSession(store, {});
      const turn = makeTurn({ session: first.session, parent: first.id });
      proxy.mode = "hold";
      await assert.rejects(store.commit({ turns: [turn] }), unreachable);
      proxy.mode = "pass";
      await until(works(store));
      await proxy.deliver();
      assert.equal(await store.findTurn("alice", turn.id), undefined);
    });

    test("an answer that arrived while the gateway itself was blocked is received", async (context) => {
      const address = readAddress(server().url());
      const connection = await openConnection({ address, scripts: [], ...hasty, copyingMs: 400 });
      context.after(() => connection.close());
      const answer = connection.send(["PING"]);
      await new Promise((resolve) => setImmediate(resolve));
      standStill(2 * hasty.timeoutMs);
      assert.equal(await answer, "PONG");
    });

    test("a gateway that is blocked again and again still connects to Redis and gets its answers", async (context) => {
      const starved = { ...times, timeoutMs: 40 };
      const holding = setInterval(() => standStill(2 * starved.timeoutMs), 1);
      context.after(() => clearInterval(holding));
      const store = await open(context, { url: server().url(), times: starved });
      await store.claim();
      const turn = makeTurn({});
      await store.commit({ turns: [turn] });
      assert.deepEqual(await store.findTurn("alice", turn.id), turn);
    });

    test("connecting to a server that accepts no connection times out", async (context) => {
      const full = await startRedis("--tcp-backlog", "1");
      context.after(() => full.remove());
      full.signal("SIGSTOP");
      const waiting = Array.from({ length: 3 }, () => createConnection(full.port, "127.0.0.1").on("error", () => {}));
      context.after(() => waiting.forEach((socket) => socket.destroy()));
      await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, "connect")));
      await assert.rejects(
        open(context, { url: full.url(), times: hasty }),
        /Redis has not answered for 400 ms\. Check/,
      );
    });

    test("commands to a server that hangs time out, and nothing that it did not answer is stored", async (context) => {
      const store = await open(context, { url: server().url(), times: hasty });
      await store.claim();
      const before = await keepSession(store, {});
      server().signal("SIGSTOP");
      const turn = makeTurn({ session: before.session, parent: before.id });
      try {
        await Promise.all([
          assert.rejects(store.commit({ turns: [turn] }), unreachable),
          assert.rejects(
            open(context, { url: server().url(), times: hasty }),
            /Redis has not answered for 400 ms\. Check/,
          ),
        ]);
      } finally {
        server().signal("SIGCONT");
      }
      await until(works(store));
      assert.equal(await store.findTurn("alice", turn.id), undefined);
      assert.deepEqual(await store.findTurn("alice", before.id), before);
    });

    test("acknowledged turns survive the death of Redis, and the gateway continues by itself", async (context) => {
      const own = await startRedis("--appendonly", "yes", "--appendfsync", "always");
      context.after(() => own.remove());
      const store = await open(context, { url: own.url("aof"), times: { ...times, timeoutMs: 1_000 } });
      await store.claim();
      const thread = await keepThread(store, 20);
      await own.stop("SIGKILL");
      await assert.rejects(store.commit({ turns: [makeTurn({})] }), unreachable);
      await assert.rejects(store.findTurn("alice", thread[0]!.id), unreachable);
      await own.start();
      await until(works(store));
      assert.deepEqual(await store.findTurn("alice", thread[19]!.id), thread[19]);
      const next = await keepBelow(store, thread[19]!, {});
      await store.close();
      const again = await open(context, { url: own.url("aof") });
      assert.equal((await readTurns(again, next.id)).length, 21);
    });

    test("what Redis has lost is not cached by the gateway either", async (context) => {
      const own = await startRedis();
      context.after(() => own.remove());
      const store = await open(context, { url: own.url() });
      const [first] = await keepThread(store, 1);
      assert.deepEqual(await readTurns(store, first!.id), [first]);
      await own.stop("SIGKILL");
      await own.start();
      await until(works(store));
      assert.deepEqual(await readTurns(store, first!.id), []);
    });

    const refusals: readonly (readonly [what: string, begin: string[], end: string[], says: RegExp])[] = [
      ["is full", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"], /Redis is out of memory/],
      [
        "evicts the lease",
        ["CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "volatile-lru"],
        ["CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction"],
        /Redis is out of memory and evicts the gateway's keys\. Set `maxmemory-policy noeviction`/,
      ],
      ["is a replica", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"], /Redis is a read-only replica/],
    ];
    for (const [what, begin, end, message] of refusals) {
      test(`while Redis ${what} nothing is stored, and the error says why; then it continues`, async (context) => {
        let time = 0;
        const url = server().url(what.replaceAll(" ", "-"));
        const store = await open(context, { url, now: () => new Date(time), times: { ...times, renewMs: 60_000 } });
        await store.claim();
        const before = makeTurn({});
        await store.commit({ turns: [before] });
        await store.check();
        // As after a long time.
        await loseLease(server(), what.replaceAll(" ", "-"));
        assert.equal(await server().ask(...begin), "+OK\r\n");
        try {
          await assert.rejects(store.commit({ turns: [makeTurn({})] }), { code: "store_unavailable", message });
          await assert.rejects(store.check(), { code: "store_unavailable", message });
          time += 1_000;
          await assert.rejects(store.check(), { code: "store_unavailable", message });
          assert.deepEqual(await store.findTurn("alice", before.id), before);
        } finally {
          await server().ask(...end);
        }
        time += 1_000;
        await store.check();
        await store.commit({ turns: [makeTurn({})] });
      });
    }

    test("missing keys, as after an eviction, are reported", async (context) => {
      const store = await open(context, { url: server().url("evicted") });
      const [, second] = await keepThread(store, 3);
      await server().ask("DEL", `{evicted}:t:${second!.id}`);
      const message = /some of its data is missing.* Set `maxmemory-policy noeviction` .*import an archive/;
      await assert.rejects(gather(store.exportRecords()), { code: "store_unavailable", message });
    });

    test("deletions work while Redis is full, and the lease is kept", async (context) => {
      const store = await open(context, { url: server().url("full") });
      await store.claim();
      const [first, second, third] = await keepThread(store, 3);
      await keepBelow(store, second!, {});
      await server().ask("SET", "{full}:version", "1");
      await server().ask("CONFIG", "SET", "maxmemory", "1");
      try {
        const lease = await loseLease(server(), "full");
        await until(async () => (await server().ask("EXISTS", lease)) === ":1\r\n");
        assert.equal(await store.deleteTurn("alice", third!.id), true);
        // As the command line does.
        const beside = await open(context, { url: server().url("full") });
        assert.equal(await beside.deleteTurn("alice", second!.id), true);
        const none = createRedisStore({ url: server().url("none"), times });
        await assert.rejects(none, { message: /OOM.* Give Redis more memory, or name another server/ });
        assert.equal(await store.deleteSession("alice", first!.session!), true);
      } finally {
        await server().ask("CONFIG", "SET", "maxmemory", "0");
      }
      await open(context, { url: server().url("full") });
      assert.equal(await server().ask("GET", "{full}:version"), "$1\r\n2\r\n");
    });

    test("a connection to a server that became a replica is closed, as its name may resolve to another by then", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const store = await open(context, { url: `redis://127.0.0.1:${proxy.port}?prefix=moved`, times: hasty });
      await server().ask("REPLICAOF", "127.0.0.1", "1");
      try {
        await assert.rejects(store.commit({ turns: [makeTurn({})] }), { message: /is a read-only replica/ });
        await until(async () => proxy.connections === 2);
      } finally {
        await server().ask("REPLICAOF", "NO", "ONE");
      }
      await until(works(store));
    });

    test("a connection to the new primary is not closed because of the replica before it", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const address = readAddress(`redis://127.0.0.1:${proxy.port}`);
      const connection = await openConnection({ address, scripts: [], ...hasty, copyingMs: 400 });
      context.after(() => connection.close());
      await server().ask("REPLICAOF", "127.0.0.1", "1");
      try {
        await assert.rejects(connection.send(["SET", "successor", "1"]), { message: /is a read-only replica/ });
      } finally {
        await server().ask("REPLICAOF", "NO", "ONE");
      }
      proxy.cut();
      await until(async () => proxy.connections === 2 && connection.isReady());
      // For longer than the timeout after which the replica is left.
      for (let waited = 0; waited < 2 * hasty.timeoutMs; waited += 100) {
        await connection.send(["BLPOP", "nothing", "0.1"]);
      }
      assert.equal(proxy.connections, 2);
    });

    test("a turn that waits for a replica is stored once when its primary is demoted for a while", async (context) => {
      const own = await startRedis("--repl-diskless-sync-delay", "0");
      const replica = await startRedis("--replicaof", `127.0.0.1 ${own.port}`);
      context.after(() => Promise.all([own.remove(), replica.remove()]));
      await until(async () => /master_link_status:up/.test(await replica.ask("INFO", "replication")));
      const store = await open(context, { url: `${own.url()}&replicas=1`, times: slow });
      const first = await keepSession(store, {});
      const turn = makeTurn({ session: first.session, parent: first.id });
      replica.signal("SIGSTOP");
      const stored = store.commit({ turns: [turn], session: toMove(turn, first.id, "refuse") });
      await until(async () => /cmd=wait/.test(await own.ask("CLIENT", "LIST")));
      await own.ask("REPLICAOF", "127.0.0.1", "1");
      await own.ask("REPLICAOF", "NO", "ONE");
      replica.signal("SIGCONT");
      assert.equal(await stored, true);
      assert.deepEqual(await readTurns(store, turn.id), [first, turn]);
      assert.equal((await gather(store.exportRecords())).length, 4);
    });

    test("a lease that Redis has lost, as by FLUSHALL, is acquired again by the next write", async (context) => {
      const store = await open(context, { url: server().url("emptied"), times: { ...times, renewMs: 60_000 } });
      await store.claim();
      await loseLease(server(), "emptied");
      const turn = await keepSession(store, {});
      assert.deepEqual(await readTurns(store, turn.id), [turn]);
      await store.check();
    });

    test("scripts that Redis has forgotten are sent again", async (context) => {
      const store = await open(context, { url: server().url() });
      await server().ask("SCRIPT", "FLUSH");
      const [first] = await keepThread(store, 3);
      assert.equal((await store.findSession("alice", "hint"))?.id, first!.session);
    });

    test("a warning names settings that could lose turns", async (context) => {
      const warnings: string[] = [];
      const warn = (message: string) => warnings.push(message);
      await server().ask("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru");
      // As with managed servers.
      await server().ask("ACL", "SETUSER", "managed", "on", ">word", "~*", "&*", "+@all", "-config");
      try {
        const store = await open(context, { url: server().url(), warn });
        assert.deepEqual(warnings, []);
        await store.claim();
        const managed = await open(context, { url: server().url().replace("//", "//managed:word@"), warn });
        await managed.claim();
      } finally {
        await server().ask("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
      }
      assert.match(warnings[0]!, /`appendonly yes`.*`appendfsync always`/);
      assert.match(warnings[1]!, /allkeys-lru.*noeviction/);
      assert.deepEqual(warnings.slice(2), [warnings[1]]);
    });
  });
}

export function describeOpening(server: () => RedisServer): void {
  describe("opening a store in Redis", () => {
    test("reports in one sentence that nothing answers, and does not retry forever", async () => {
      const url = `redis://me:hunter2@127.0.0.1:${await findFreePort()}/3`;
      await assert.rejects(createRedisStore({ url, times: hasty }), ({ message }: Error) => {
        assert.match(message, /^The session store redis:\/\/127\.0\.0\.1:\d+\/3 cannot be opened: .*ECONNREFUSED/);
        return !message.includes("hunter2");
      });
    });

    test("reports at once that a password is wrong or missing, without showing it", async (context) => {
      const own = await startRedis("--requirepass", "sesame");
      context.after(() => own.remove());
      const at = `127.0.0.1:${own.port}`;
      for (const [credentials, code] of [
        [":hunter2@", "WRONGPASS"],
        ["me:hunter2@", "WRONGPASS"],
        ["", "NOAUTH"],
      ]) {
        await assert.rejects(createRedisStore({ url: `redis://${credentials}${at}` }), ({ message }: Error) => {
          assert.match(message, new RegExp(`cannot be opened: ${code}.*name and password`));
          return !message.includes("hunter2");
        });
      }
      const store = await open(context, { url: `redis://default:sesame@${at}` });
      await store.commit({ turns: [makeTurn({})] });
    });

    test("needs a user with its keys, its channels and the commands that are not dangerous", async (context) => {
      const rights = ["~{mine}:*", "&{mine}:*", "+@all", "-@dangerous"];
      await server().ask("ACL", "SETUSER", "modest", "on", ">a/b@c", ...rights);
      const store = await open(context, { url: `redis://modest:a%2Fb%40c@127.0.0.1:${server().port}?prefix=mine` });
      await store.claim();
      const thread = await keepThread(store, 3);
      await store.check();
      await store.deleteTurn("alice", thread[1]!.id);
      assert.equal((await readTurns(store, thread[2]!.id)).length, 2);
      await assert.rejects(createRedisStore({ url: `redis://modest:a%2Fb%40c@127.0.0.1:${server().port}` }), /NOPERM/);
    });

    test("refuses what a newer release wrote, and leaves it unchanged", async () => {
      await server().ask("SET", "{newer}:version", "3");
      await assert.rejects(createRedisStore({ url: server().url("newer") }), {
        code: "store_unavailable",
        message: /schema version 3, and this release knows versions up to 2\. Start the newer release/,
      });
      assert.equal(await server().ask("KEYS", "{newer}*"), "*1\r\n$15\r\n{newer}:version\r\n");
    });

    test("takes over what an older release wrote, and marks it so that the older one refuses it", async (context) => {
      const url = server().url("older");
      const older = await open(context, { url });
      const [turn] = await keepThread(older, 1);
      await older.close();
      await server().ask("SET", "{older}:version", "1");
      const store = await open(context, { url });
      assert.equal((await store.findSession("alice", "hint"))?.tip, turn!.id);
      assert.equal(await server().ask("GET", "{older}:version"), "$1\r\n2\r\n");
    });

    test("continues an archive that was partly imported, and its sessions continue", async (context) => {
      const store = await open(context, { url: server().url("half") });
      await store.claim();
      const thread = await keepThread(store, 3);
      const archive = await gather(store.exportRecords());
      const session = await store.findSession("alice", "hint");
      const last = thread.at(-1)!.id;
      // What a gateway leaves behind when it dies: its sessions, some of their turns, and no tip.
      await store.deleteTurn("alice", last);
      await server().ask("HDEL", `{half}:s:${session!.id}`, "tip");
      assert.equal((await store.findSession("alice", "hint"))?.tip, undefined);
      const records = async function* () {
        yield* archive;
      };
      assert.deepEqual(await store.importRecords(records()), { sessions: 0, turns: 1, hintsTaken: 0 });
      assert.equal((await store.findSession("alice", "hint"))?.tip, last);
      assert.equal((await readTurns(store, last)).length, 3);
    });

    test("says nothing of a partial import if an archive breaks off before any of it is imported", async (context) => {
      const store = await open(context, { url: server().url("unread") });
      async function* breakOff() {
        yield* [] as ArchiveRecord[];
        // As when the gateway stops while somebody uploads an archive.
        await store.close();
        throw new Error("the line went dead");
      }
      await assert.rejects(store.importRecords(breakOff()), /went dead/);
    });

    test("separates stores by their prefixes, and by their databases", async (context) => {
      const { port } = server();
      const urls = [server().url("a"), server().url("b"), `redis://127.0.0.1:${port}/1?prefix=a`];
      const stores = await Promise.all(urls.map((url) => open(context, { url })));
      for (const store of stores) await store.claim();
      const threads = await Promise.all(stores.map((store) => keepThread(store, 2)));
      for (const [index, store] of stores.entries()) {
        const records = await gather(store.exportRecords());
        assert.equal(records.length, 4);
        assert.equal((await store.findSession("alice", "hint"))?.tip, threads[index]![1]!.id);
      }
    });
  });
}

export function describeLeftovers(server: () => RedisServer): void {
  test("nothing that was deleted remains in Redis", async (context) => {
    let time = new Date("2026-02-03T04:00:00Z");
    const store = await open(context, { url: server().url("left"), now: () => time });
    const keys = async () => (await server().ask("KEYS", "{left}:*")).match(/\{left\}:\S+/g)!.toSorted();
    await store.commit({ turns: [makeTurn({})] });
    await pruneAll(store, { idleBefore: new Date("2027-01-01T00:00:00Z") });
    const before = await keys();
    const thread = await keepThread(store, 150);
    for (let count = 0; count < 3; count += 1) {
      const marks = { digest: `digest ${count % 2}`, exchange: `exchange ${count % 2}`, told: fullTold };
      const turn = await keepBelow(store, thread[count]!, marks);
      await keepBelow(store, turn, { owner: "alice" });
    }
    const keyed = makeTurn({ told: fullTold });
    await store.commit({ turns: [keyed], key: { key: "key", fingerprint: "print" } });
    await keepBelow(store, keyed, {});
    const running = makeTurn({ status: "running" });
    await store.begin(running, { key: "another", fingerprint: "print" });
    await store.end({ ...running, status: "failed", session: thread[0]!.session, parent: thread[0]!.id });
    await store.deleteTurn("alice", thread[1]!.id);
    await keepSession(store, { owner: "bob" });
    time = new Date("2026-02-04T04:00:00Z");
    await pruneAll(store, { idleBefore: new Date("2027-01-01T00:00:00Z"), keysBefore: time, piecesBefore: time });
    assert.deepEqual(await keys(), before);
  });

  test("a path that is not cached is read in parts, complete and in order", async (context) => {
    const store = await open(context, { url: server().url(), maxRecentSize: 0 });
    const thread = await keepThread(store, 1_201);
    assert.deepEqual(await readTurns(store, thread.at(-1)!.id), thread);
  });

  test("a turn that is deleted between two parts of a path removes nothing else from it", async (context) => {
    const store = await open(context, { url: server().url(), maxRecentSize: 0 });
    const thread = await keepThread(store, 700);
    const path = readTurns(store, thread[699]!.id);
    // By then it has requested the first 500, but not the others.
    await breathe();
    await store.deleteTurn("alice", thread[199]!.id);
    assert.deepEqual(
      (await path).map(({ id }) => id),
      thread.toSpliced(199, 1).map(({ id }) => id),
    );
  });
}
