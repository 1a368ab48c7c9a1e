/**
 * Several gateways on one Redis: whose turn it is, what they receive from each other, and what happens when one dies.
 */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Event } from "../../src/core/event.ts";
import { interrupted } from "../../src/core/frame/replay.ts";
import { nameOfRun, type Peers } from "../../src/core/peers.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { inspectRedis } from "../../src/stores/redis/inspect.ts";
import { startGateway, token } from "../gateway.ts";
import { makeTurn } from "./making.ts";
import { startProxy } from "./redis-proxy.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

/** Long enough for a busy machine to keep its names, and short enough not to delay a test. */
const times = { leaseMs: 1_500, renewMs: 300, timeoutMs: 5_000, openingMs: 5_000 };
const never = new AbortController().signal;

async function openStores(context: TestContext, urls: readonly string[]) {
  const stores = await Promise.all(urls.map((url) => createRedisStore({ url, times, warn: () => {} })));
  for (const store of stores) {
    context.after(() => store.close());
    await store.claim();
  }
  return stores.map((store) => ({ store, peers: store.peers! }));
}

async function openTwo(context: TestContext, server: RedisServer) {
  const url = server.url();
  const [one, other] = await openStores(context, [url, url]);
  return { one: one!, other: other! };
}

/** One with its own times behind a proxy that can cut it off, and one without. */
async function openApart(context: TestContext, server: RedisServer, prefix: string, own: Partial<typeof times>) {
  const proxy = await startProxy(server.port);
  context.after(() => proxy.close());
  const url = `redis://127.0.0.1:${proxy.port}?prefix=${prefix}`;
  const store = await createRedisStore({ url, times: { ...times, ...own }, warn: () => {} });
  context.after(() => store.close());
  await store.claim();
  const [other] = await openStores(context, [server.url(prefix)]);
  return { proxy, store, other: other! };
}

const said = (text: string): Event => ({ type: "item-delta", index: 0, kind: "text", part: 0, text });

/** Subscribes until so many batches have arrived. */
async function receiveBatches(peers: Peers, name: string, count: number): Promise<void> {
  let received = 0;
  for await (const _ of peers.subscribe(name, never)) {
    received += 1;
    if (received === count) return;
  }
}

export function describePeers(server: () => RedisServer): void {
  describe("gateways on one Redis", () => {
    test("hold a name one after the other, in the order in which they came", async (context) => {
      const { one, other } = await openTwo(context, server());
      const leave = await one.peers.enter("thread", never);
      const order: string[] = [];
      const come = async (who: string, { enter }: Peers): Promise<void> => {
        const go = await enter("thread", never);
        order.push(who);
        go();
      };
      const waiting: Promise<void>[] = [];
      for (const [who, { peers }] of [
        ["a", other],
        ["b", one],
        ["c", other],
      ] as const) {
        waiting.push(come(who, peers));
        await wait(20);
      }
      assert.deepEqual(order, []);
      assert.equal(await other.peers.isTaken("thread"), true);
      leave();
      await Promise.all(waiting);
      assert.deepEqual(order, ["a", "b", "c"]);
      // The last of them releases it over its own connection.
      while (await one.peers.isTaken("thread")) await wait(5);
    });

    test("hold a name for as long as they need it", async (context) => {
      const { one, other } = await openTwo(context, server());
      const leave = await one.peers.enter("thread", never);
      await wait(2 * times.leaseMs);
      assert.equal(await other.peers.isTaken("thread"), true);
      leave();
      (await other.peers.enter("thread", never))();
    });

    test("reclaim a name on the next connection if Redis has lost it, and only as long as they need it", async (context) => {
      const { proxy, store, other } = await openApart(context, server(), "again", { leaseMs: 60_000, renewMs: 60_000 });
      const leave = await store.peers!.enter("thread", never);
      const key = /\{again\}:held:\S+/.exec(await server().ask("KEYS", "{again}:held:*"))![0];
      assert.equal(await server().ask("DEL", key), ":1\r\n");
      assert.equal(await other.peers.isTaken("thread"), false);
      proxy.cut();
      while (!(await other.peers.isTaken("thread"))) await wait(5);
      leave();
      (await other.peers.enter("thread", AbortSignal.timeout(10_000)))();
    });

    test("do not treat a name as free while others may not have reconnected", async (context) => {
      const { proxy, store: early, other: late } = await openApart(context, server(), "early", { renewMs: 1_000 });
      const look = () => early.findTurn("alice", "resp_1");
      assert.equal(await early.peers!.isTaken("run"), false);
      proxy.mode = "lose";
      await look();
      const isTaken = early.peers!.isTaken("run");
      await look();
      const leave = await late.peers.enter("run", never);
      assert.equal(await isTaken, true);
      leave();
      // The release uses another connection, and arrives a moment later.
      while (await early.peers!.isTaken("run")) await wait(5);
    });

    test("check whether a name is taken without reading what was published under it", async (context) => {
      const own = await startRedis();
      context.after(() => own.remove());
      const [one] = await openStores(context, [own.url()]);
      const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await own.ask("INFO", "stats"))?.[1]);
      const leave = await one!.peers.enter("long", never);
      for (let times = 0; times < 100; times += 1) one!.peers.publish("long", [said("x".repeat(10_000))]);
      await receiveBatches(one!.peers, "long", 100);
      const before = await sent();
      assert.equal(await one!.peers.isTaken("long"), true);
      assert.ok((await sent()) - before < 100_000);
      leave();
    });

    test("leave the queue when they have waited long enough, and admit the next one", async (context) => {
      const { one, other } = await openTwo(context, server());
      const leave = await one.peers.enter("thread", never);
      const caller = new AbortController();
      const given = assert.rejects(other.peers.enter("thread", caller.signal), /enough/);
      const next = one.peers.enter("thread", never);
      const since = performance.now();
      caller.abort(new Error("enough"));
      await given;
      leave();
      (await next)();
      assert.ok(performance.now() - since < 3_500, "before its lease would have expired");
    });

    test("lose their names when they are cut off, and the next one continues", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const [away, here] = await openStores(context, [
        `redis://127.0.0.1:${proxy.port}?prefix=cut`,
        server().url("cut"),
      ]);
      const leave = await away!.peers.enter("thread", never);
      const next = here!.peers.enter("thread", never);
      proxy.mode = "refuse";
      proxy.cut();
      const go = await next;
      proxy.mode = "pass";
      // What it releases now belongs to another.
      leave();
      await wait(50);
      assert.equal(await here!.peers.isTaken("thread"), true);
      go();
    });

    test("receive what is published under a name, from its beginning to its end", async (context) => {
      const { one, other } = await openTwo(context, server());
      const leave = await one.peers.enter("run", never);
      one.peers.publish("run", [said("one"), said(" two")]);
      const received: string[] = [];
      for await (const events of other.peers.subscribe("run", never)) {
        received.push(events.map((event) => (event.type === "item-delta" ? event.text : "")).join(""));
        if (received.length > 1) continue;
        one.peers.publish("run", [said(" three")]);
        leave();
      }
      assert.deepEqual(received, ["one two", " three"]);
    });

    test("receive nothing after a gap", async (context) => {
      const url = server().url("gap");
      const [one, other] = await openStores(context, [url, url]);
      const leave = await one!.peers.enter("run", never);
      one!.peers.publish("run", [said("one")]);
      await receiveBatches(other!.peers, "run", 1);
      const key = /\{gap\}:told:\S+/.exec(await server().ask("KEYS", "{gap}:told:*"))![0];
      await server().ask("RPUSH", key, JSON.stringify([2, [said(" three")]]));
      leave();
      assert.deepEqual(await Array.fromAsync(other!.peers.subscribe("run", never)), [[said("one")]]);
    });

    test("stop receiving with the given reason", async (context) => {
      const { one, other } = await openTwo(context, server());
      const leave = await one.peers.enter("run", never);
      one.peers.publish("run", [said("one")]);
      const listener = new AbortController();
      const receiving = other.peers.subscribe("run", listener.signal)[Symbol.asyncIterator]();
      await receiving.next();
      const next = assert.rejects(receiving.next(), (thrown) => thrown === listener.signal.reason);
      setTimeout(() => listener.abort(new Error("The gateway stops.")), 20);
      await next;
      leave();
    });

    test("cancel each other's turns", async (context) => {
      const { one, other } = await openTwo(context, server());
      const leave = await one.peers.enter("run", never);
      one.peers.onCancel((turnId) => turnId === "resp_1" && leave());
      await other.peers.cancel("run", "resp_1");
      assert.equal(await other.peers.isTaken("run"), false);
    });

    test("receive from each other again after Redis was lost silently", async (context) => {
      const { proxy, store, other } = await openApart(context, server(), "deaf", { timeoutMs: 400 });
      const received = Promise.withResolvers<string>();
      store.peers!.onCancel(received.resolve);
      proxy.silence();
      await assert.rejects(store.findTurn("alice", "resp_1"), /Redis cannot be reached/);
      while ((await store.check().catch(() => "away")) === "away") await wait(5);
      let said: string | undefined;
      for (let call = 0; said === undefined && call < 100; call++) {
        await other.peers.cancel("run", "resp_1");
        said = await Promise.race([received.promise, wait(100, undefined)]);
      }
      assert.equal(said, "resp_1");
    });

    test("end only those running turns that nobody runs any more", async (context) => {
      const { one, other } = await openTwo(context, server());
      const [alive, left] = [makeTurn({ status: "running" }), makeTurn({ status: "running" })];
      const leave = await one.peers.enter(nameOfRun(alive.id), never);
      await one.store.begin(alive);
      await one.store.begin(left);
      assert.equal(await other.store.endRunning(interrupted, new Date()), 1);
      const statusOf = async ({ id, owner }: typeof alive) => (await other.store.findTurn(owner, id))?.status;
      assert.deepEqual([await statusOf(alive), await statusOf(left)], ["running", "failed"]);
      leave();
    });

    test("leave no turn running when they start together", async (context) => {
      const { one, other } = await openTwo(context, server());
      const left = Array.from({ length: 250 }, () => makeTurn({ status: "running" }));
      await Promise.all(left.map((turn) => one.store.begin(turn)));
      const ended = await Promise.all([one, other].map(({ store }) => store.endRunning(interrupted, new Date())));
      assert.equal(ended[0]! + ended[1]!, left.length);
      const found = await Promise.all(left.map(({ id }) => one.store.findTurn("alice", id)));
      assert.deepEqual(new Set(found.map((turn) => turn?.status)), new Set(["failed"]));
    });

    test("know each other's names and keys when Redis came back empty and one of them was there before", async (context) => {
      for (const first of ["enter", "isTaken"] as const) {
        const own = await startRedis();
        context.after(() => own.remove());
        const [old] = await openStores(context, [own.url("back")]);
        await own.stop();
        await own.start();
        const [young] = await openStores(context, [own.url("back")]);
        const leave = await young!.peers.enter("of the young", never);
        while ((await old!.store.check().catch(() => "away")) === "away") await wait(5);
        if (first === "isTaken") assert.equal(await old!.peers.isTaken("of the young"), true);
        const leaveToo = await old!.peers.enter("of the old", never);
        assert.equal(await young!.peers.isTaken("of the old"), true);
        const turn = makeTurn({ status: "running" });
        await old!.store.begin(turn, { key: "order-17", fingerprint: "print" });
        assert.equal((await young!.store.findKey("alice", "order-17"))?.turnId, turn.id);
        leave();
        leaveToo();
      }
    });

    test("recreate the store when Redis came back empty, so that it can be inspected", async (context) => {
      const own = await startRedis();
      context.after(() => own.remove());
      const url = own.url("anew");
      const { store } = (await openStores(context, [url]))[0]!;
      await own.stop();
      await own.start();
      while ((await store.check().catch(() => "away")) === "away") await wait(5);
      await store.commit({ turns: [makeTurn({})] });
      while ((await inspectRedis(url)).version !== "2") await wait(5);
    });

    test("store nothing of the callers' session names in Redis", async (context) => {
      const { one } = await openTwo(context, server());
      const leave = await one.peers.enter('["ann","header:x-session-id:garden-7"]', never);
      assert.doesNotMatch(await server().ask("KEYS", "*"), /garden/);
      leave();
    });
  });

  describe("whole gateways on one Redis", () => {
    const open = (context: TestContext, store: string, delay = 0) =>
      startGateway(context, { sessions: { store }, adapters: { echo: { type: "echo", delay_ms: delay } } });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const json = async (answer: Promise<Response>): Promise<Record<string, string>> =>
      (await (await answer).json()) as Record<string, string>;
    const ask = (address: string, path: string, body?: object, more: object = {}) =>
      fetch(`${address}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { ...headers, ...more },
        ...(body !== undefined && { body: JSON.stringify({ model: "echo", ...body }) }),
      });

    test("answer parallel requests of one session one after the other, each seeing those before it", async (context) => {
      const store = server().url();
      const gateways = [await open(context, store, 1), await open(context, store, 1)];
      const answers = await Promise.all(
        Array.from({ length: 12 }, async (_, index) => {
          const { address } = gateways[index % 2]!;
          const messages = [{ role: "user", content: `word ${index}` }];
          const answer = await ask(address, "/v1/chat/completions", { messages, user: "zoë" });
          await answer.text();
          return { status: answer.status, context: Number.parseInt(answer.headers.get("x-portico-context") ?? "", 10) };
        }),
      );
      assert.deepEqual(
        answers.map(({ context }) => context).toSorted((one, other) => one - other),
        Array.from({ length: 12 }, (_, index) => 2 * index + 1),
      );
      assert.equal(
        answers.every(({ status }) => status === 200),
        true,
      );
    });

    test("poll, stream and cancel a response that another of them runs in the background", async (context) => {
      const store = server().url();
      const [one, other] = [await open(context, store, 30), await open(context, store)];
      const input = "one two three four five six";
      const begun = await json(ask(one.address, "/v1/responses", { input, background: true }));
      const polled = await json(ask(other.address, `/v1/responses/${begun["id"]}`));
      assert.match(polled["status"]!, /queued|in_progress/);
      const stream = await (await ask(other.address, `/v1/responses/${begun["id"]}?stream=true`)).text();
      const again = await (await ask(one.address, `/v1/responses/${begun["id"]}?stream=true`)).text();
      assert.equal(stream.replaceAll(/^:.*\n\n/gm, ""), again);
      const over = await json(ask(other.address, `/v1/responses/${begun["id"]}`));
      assert.equal(over["status"], "completed");
      const endless = { input: "on ".repeat(500), background: true };
      const long = await json(ask(one.address, "/v1/responses", endless));
      const cancelled = await json(ask(other.address, `/v1/responses/${long["id"]}/cancel`, {}));
      assert.equal(cancelled["status"], "cancelled");
    });

    test("report how a response ended on one of them while Redis was unreachable from it", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const one = await open(context, `redis://127.0.0.1:${proxy.port}?prefix=ended`, 30);
      const other = await open(context, server().url("ended"));
      const endless = { input: "on ".repeat(5_000), background: true };
      const path = `/v1/responses/${(await json(ask(one.address, "/v1/responses", endless)))["id"]}`;
      proxy.mode = "refuse";
      proxy.cut();
      assert.equal((await ask(one.address, `${path}/cancel`, {})).status, 503);
      proxy.mode = "pass";
      while ((await json(ask(one.address, path)))["status"] === undefined) await wait(20);
      assert.equal((await json(ask(other.address, path)))["status"], "cancelled");
    });

    test("answer a request once that is sent to both with one key", async (context) => {
      const store = server().url();
      const [one, other] = [await open(context, store, 10), await open(context, store)];
      const body = { messages: [{ role: "user", content: "one two three" }] };
      const key = { "idempotency-key": "order-17" };
      const answers = await Promise.all(
        [one, other].map(({ address }) => json(ask(address, "/v1/chat/completions", body, key))),
      );
      assert.deepEqual(answers[0], answers[1]);
    });

    test("stream to its end what another of them runs, even if Redis is unreachable for a while", async (context) => {
      const proxy = await startProxy(server().port);
      context.after(() => proxy.close());
      const one = await open(context, server().url("heard"), 50);
      const other = await open(context, `redis://127.0.0.1:${proxy.port}?prefix=heard`);
      const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
      const body = { messages: [{ role: "user", content: words }], stream: true };
      const key = { "idempotency-key": "heard-1" };
      const first = await ask(one.address, "/v1/chat/completions", body, key);
      const followed = await ask(other.address, "/v1/chat/completions", body, key);
      const back = wait(1_500).then(() => (proxy.mode = "pass"));
      let received = "";
      for await (const text of followed.body!.pipeThrough(new TextDecoderStream())) {
        if (received === "") {
          proxy.mode = "refuse";
          proxy.cut();
        }
        received += text;
      }
      const contents = [...received.matchAll(/"delta":\{"content":"([^"]*)"/g)];
      assert.equal(contents.map(([, text]) => text).join(""), words);
      assert.match(received, /data: \[DONE\]\n\n$/);
      await Promise.all([back, first.text()]);
    });

    test("resume a stream that was cut on another of them, while it runs", async (context) => {
      const store = server().url();
      const [one, other] = [await open(context, store, 20), await open(context, store)];
      const words = Array.from({ length: 100 }, (_, index) => `word${index}`).join(" ");
      const body = { messages: [{ role: "user", content: words }], stream: true, user: "cut" };
      const key = { "idempotency-key": "cut-1" };
      const begun = await ask(one.address, "/v1/chat/completions", body, key);
      const reader = begun.body!.pipeThrough(new TextDecoderStream()).getReader();
      let received = "";
      while (!received.includes("word4")) received += (await reader.read()).value!;
      await reader.cancel();
      const last = [...received.matchAll(/^id: (.*)$/gm)].at(-1)![1]!;
      const again = { ...key, "last-event-id": last };
      const resumed = await ask(other.address, "/v1/chat/completions", body, again);
      assert.equal(resumed.headers.get("x-portico-session"), begun.headers.get("x-portico-session"));
      const pieces = await Array.fromAsync(resumed.body!.pipeThrough(new TextDecoderStream()));
      assert.ok(!pieces[0]!.includes("[DONE]"), "it arrives word by word");
      const contents = [...(received + pieces.join("")).matchAll(/"delta":\{"content":"([^"]*)"/g)];
      assert.equal(contents.map(([, text]) => text).join(""), words);
    });
  });
}
