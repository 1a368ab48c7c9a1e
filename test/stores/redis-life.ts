/** What is true of a store in Redis beyond the contract of all stores: others beside it, trouble, and what is left. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createConnection } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { setImmediate as breathe, setTimeout as wait } from "node:timers/promises";
import type { SessionStore } from "../../src/core/store.ts";
import { readAddress } from "../../src/stores/redis/address.ts";
import { openConnection } from "../../src/stores/redis/connection.ts";
import { createRedisStore, type RedisStoreOptions } from "../../src/stores/redis.ts";
import { findFreePort } from "../gateway.ts";
import { standStill } from "../still.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
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

/** A machine that is busy may take its time. */
const times = { leaseMs: 10_000, renewMs: 60, timeoutMs: 5_000, openingMs: 5_000 };
/** For tests in which a replica is to answer. */
const slow = { ...times, timeoutMs: 30_000, copyingMs: 20_000 };
/** For tests in which Redis is not to answer. */
const hasty = { ...times, timeoutMs: 400, openingMs: 800 };

async function open(context: TestContext, options: RedisStoreOptions): Promise<SessionStore> {
  const store = await createRedisStore({ times, warn: () => {}, now: createLeapingClock(), ...options });
  context.after(() => store.close());
  return store;
}

/** What comes by itself, after a while. */
async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await wait(5);
}

/** Each look at it is a second later, so that nobody waits for what is tried only once a second. */
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

export function describeBeside(server: () => RedisServer): void {
  describe("a gateway on Redis", () => {
    test("sees what others have changed just before a change of its own", async (context) => {
      const url = server().url();
      const [gateway, beside] = [await open(context, { url }), await open(context, { url })];
      const [first, last] = await keepThread(gateway, 2);
      const own = await keepSession(gateway, {});
      assert.equal((await readTurns(gateway, last!.id)).length, 2);
      await beside.deleteTurn("alice", first!.id);
      await gateway.deleteTurn("alice", own.id);
      assert.equal((await readTurns(gateway, last!.id)).length, 1);
    });

    test("is beside the command line, whose deletions it sees and whose archives it takes for its own", async (context) => {
      const url = server().url();
      const [gateway, beside] = [await open(context, { url }), await open(context, { url })];
      await gateway.claim();
      const other = createMemoryStore();
      const [kept] = await keepThread(other, 1);
      await beside.importRecords(replay(await gather(other.exportRecords())));
      assert.equal((await gateway.findSession("alice", "hint"))?.tip, kept!.id);
      const turn = await keepBelow(gateway, kept!, {});
      assert.equal((await readTurns(gateway, turn.id)).length, 2);
      await beside.deleteTurn("alice", kept!.id);
      assert.deepEqual(await readTurns(gateway, turn.id), [{ ...turn, parent: undefined, gap: true }]);
      await beside.deleteSession("alice", kept!.session!);
      assert.deepEqual(await readTurns(gateway, turn.id), []);
      assert.equal(await gateway.findSession("alice", "hint"), undefined);
    });
  });
}

export function describeTrouble(server: () => RedisServer): void {
  const unreachable = { code: "store_unavailable", retryAfterSeconds: 1, message: /Redis cannot be reached/ };

  describe("trouble with Redis", () => {
    test("a commit whose answer was lost is kept once, and its caller hears of it", async (context) => {
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

    test("what is asked when a connection is just lost is answered on the next one", async (context) => {
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

    test("a commit whose answer never came is taken back when Redis is, as its caller was told that it failed", async (context) => {
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
      const kept = await store.findTurn("alice", promised.id);
      assert.equal(kept?.status, "completed", "what was promised before is not taken back");
    });

    test("a commit whose answer is lost while replicas are waited for fails, and nothing else does", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const url = `redis://127.0.0.1:${proxy.port}?prefix=copies&replicas=1`;
      const store = await open(context, { url, times: { ...times, copyingMs: 50 } });
      proxy.mode = "lose";
      const message = /too few Redis replicas have what was written/;
      await assert.rejects(store.commit({ turns: [makeTurn({})] }), { code: "store_unavailable", message });
      await store.close();
    });

    test("a commit is taken out if Redis does not let the gateway ask for its copies", async (context) => {
      const rights = ["~{uncopied}:*", "&{uncopied}:*", "+@all", "-@dangerous", "-wait"];
      await server().ask("ACL", "SETUSER", "lonely", "on", ">sesame", ...rights);
      const url = `redis://lonely:sesame@127.0.0.1:${server().port}?prefix=uncopied`;
      const store = await open(context, { url: `${url}&replicas=1` });
      const turn = makeTurn({});
      await assert.rejects(store.commit({ turns: [turn] }), { code: "store_unavailable" });
      assert.equal(await store.findTurn("alice", turn.id), undefined);
    });

    test("a commit that was on its way for too long arrives in vain", async (context) => {
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

    test("what was answered while the gateway itself stood still is heard", async (context) => {
      const address = readAddress(server().url());
      const connection = await openConnection({ address, scripts: [], onReady: () => {}, ...hasty, copyingMs: 400 });
      context.after(() => connection.close());
      const answer = connection.send(["PING"]);
      await new Promise((resolve) => setImmediate(resolve));
      standStill(2 * hasty.timeoutMs);
      assert.equal(await answer, "PONG");
    });

    test("Redis is found and heard by a gateway that stands still itself, again and again", async (context) => {
      const starved = { ...times, timeoutMs: 40 };
      const holding = setInterval(() => standStill(2 * starved.timeoutMs), 1);
      context.after(() => clearInterval(holding));
      const store = await open(context, { url: server().url(), times: starved });
      await store.claim();
      const turn = makeTurn({});
      await store.commit({ turns: [turn] });
      assert.deepEqual(await store.findTurn("alice", turn.id), turn);
    });

    test("a server that takes no connection is left after a while", async (context) => {
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

    test("a server that stands still is left after a while, and nothing that it did not answer is kept", async (context) => {
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

    test("what was acknowledged is there after Redis was killed, and the gateway goes on by itself", async (context) => {
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

    test("what Redis has lost is not remembered by the gateway either", async (context) => {
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
      test(`while Redis ${what} nothing is kept, and it is known why; then it goes on`, async (context) => {
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

    test("that keys are missing, as after an eviction, is told", async (context) => {
      const store = await open(context, { url: server().url("evicted") });
      const [, second] = await keepThread(store, 3);
      await server().ask("DEL", `{evicted}:t:${second!.id}`);
      const message = /some of its data is missing.* Set `maxmemory-policy noeviction` .*import an archive/;
      await assert.rejects(gather(store.exportRecords()), { code: "store_unavailable", message });
    });

    test("what gives room works while Redis is full, and the lease is kept", async (context) => {
      const store = await open(context, { url: server().url("full") });
      await store.claim();
      const [first, second, third] = await keepThread(store, 3);
      await keepBelow(store, second!, {});
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
    });

    test("a server that became a replica is left, as its name may lead to another by then", async (context) => {
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

    test("a successor that was found meanwhile is not left for what the replica before it has said", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const address = readAddress(`redis://127.0.0.1:${proxy.port}`);
      const connection = await openConnection({ address, scripts: [], onReady: () => {}, ...hasty, copyingMs: 400 });
      context.after(() => connection.close());
      await server().ask("REPLICAOF", "127.0.0.1", "1");
      try {
        await assert.rejects(connection.send(["SET", "successor", "1"]), { message: /is a read-only replica/ });
      } finally {
        await server().ask("REPLICAOF", "NO", "ONE");
      }
      proxy.cut();
      await until(async () => proxy.connections === 2 && connection.isReady());
      // For longer than the replica would have been left after.
      for (let waited = 0; waited < 2 * hasty.timeoutMs; waited += 100) {
        await connection.send(["BLPOP", "nothing", "0.1"]);
      }
      assert.equal(proxy.connections, 2);
    });

    test("a turn that waits for a replica is kept once when its primary is not one any more for a while", async (context) => {
      const own = await startRedis("--repl-diskless-sync-delay", "0");
      const replica = await startRedis("--replicaof", `127.0.0.1 ${own.port}`);
      context.after(() => Promise.all([own.remove(), replica.remove()]));
      await until(async () => /master_link_status:up/.test(await replica.ask("INFO", "replication")));
      const store = await open(context, { url: `${own.url()}&replicas=1`, times: slow });
      const first = await keepSession(store, {});
      const turn = makeTurn({ session: first.session, parent: first.id });
      replica.signal("SIGSTOP");
      const kept = store.commit({ turns: [turn], session: toMove(turn, first.id, "refuse") });
      await until(async () => /cmd=wait/.test(await own.ask("CLIENT", "LIST")));
      await own.ask("REPLICAOF", "127.0.0.1", "1");
      await own.ask("REPLICAOF", "NO", "ONE");
      replica.signal("SIGCONT");
      assert.equal(await kept, true);
      assert.deepEqual(await readTurns(store, turn.id), [first, turn]);
      assert.equal((await gather(store.exportRecords())).length, 4);
    });

    test("a lease that Redis has lost, as by FLUSHALL, is taken again by the next write", async (context) => {
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

    test("a warning tells of settings with which turns could be lost", async (context) => {
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
    test("says in one sentence where nothing answers, and does not try for ever", async () => {
      const url = `redis://me:hunter2@127.0.0.1:${await findFreePort()}/3`;
      await assert.rejects(createRedisStore({ url, times: hasty }), ({ message }: Error) => {
        assert.match(message, /^The session store redis:\/\/127\.0\.0\.1:\d+\/3 cannot be opened: .*ECONNREFUSED/);
        return !message.includes("hunter2");
      });
    });

    test("says at once that a password is wrong or missing, and does not tell it", async (context) => {
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

    test("refuses what a newer release wrote, and leaves it as it is", async () => {
      await server().ask("SET", "{newer}:version", "2");
      await assert.rejects(createRedisStore({ url: server().url("newer") }), {
        code: "store_unavailable",
        message: /schema version 2, and this release knows versions up to 1\. Start the newer release/,
      });
      assert.equal(await server().ask("KEYS", "{newer}*"), "*1\r\n$15\r\n{newer}:version\r\n");
    });

    test("goes on with an archive that was taken in by half, and with it go the sessions", async (context) => {
      const store = await open(context, { url: server().url("half") });
      await store.claim();
      const thread = await keepThread(store, 3);
      const archive = await gather(store.exportRecords());
      const session = await store.findSession("alice", "hint");
      const last = thread.at(-1)!.id;
      // What is there when a gateway dies: its sessions, some of their turns, and no tip.
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

    test("keeps stores apart by their prefixes, and by their databases", async (context) => {
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
  test("of everything that was deleted nothing is left in Redis", async (context) => {
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

  test("a path that is not at hand is read in parts, whole and in order", async (context) => {
    const store = await open(context, { url: server().url(), maxRecentSize: 0 });
    const thread = await keepThread(store, 1_201);
    assert.deepEqual(await readTurns(store, thread.at(-1)!.id), thread);
  });

  test("a turn that goes between two parts of a path takes nothing else of it along", async (context) => {
    const store = await open(context, { url: server().url(), maxRecentSize: 0 });
    const thread = await keepThread(store, 700);
    const path = readTurns(store, thread[699]!.id);
    // By then it has asked for the first 500, and not for the others.
    await breathe();
    await store.deleteTurn("alice", thread[199]!.id);
    assert.deepEqual(
      (await path).map(({ id }) => id),
      thread.toSpliced(199, 1).map(({ id }) => id),
    );
  });
}
