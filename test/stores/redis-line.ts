/** The queue that several gateways on one Redis share: first come, first served, on any of them. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setImmediate as nextTick, setTimeout as wait } from "node:timers/promises";
import type { Peers } from "../../src/core/peers.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { open, startGateway, token } from "../gateway.ts";
import { startProxy } from "./redis-proxy.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

/** A name that nobody releases stays taken for longer than a test takes. */
const times = { leaseMs: 60_000, renewMs: 3_000, timeoutMs: 5_000, openingMs: 5_000 };
const endless = "on ".repeat(5_000);
const never = new AbortController().signal;

interface Told {
  readonly id: string;
  readonly status: string;
}

/** Two gateways whose model is slow to emit each word. */
async function openTwo(context: TestContext, stores: readonly [string, string], delay: number, maxQueued = 16) {
  const http = { ...open, limits: { max_queued_per_thread: maxQueued } };
  const echo = { type: "echo", delay_ms: delay };
  const start = (store: string) => startGateway(context, { http, sessions: { store }, adapters: { echo } });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const at = ({ address }: { readonly address: string }) => ({
    ask: (body: object) =>
      fetch(`${address}/v1/responses`, {
        method: "POST",
        headers,
        body: JSON.stringify({ model: "echo", user: "zoë", ...body }),
      }),
    async promise(input: string): Promise<Told> {
      return (await (await this.ask({ input, background: true })).json()) as Told;
    },
    /** How many items the model saw. */
    async answer(input: string): Promise<number> {
      const answer = await this.ask({ input });
      await answer.text();
      return Number.parseInt(answer.headers.get("x-portico-context") ?? "", 10);
    },
    async look(id: string, path = "", method = "GET"): Promise<Told> {
      return (await (await fetch(`${address}/v1/responses/${id}${path}`, { method, headers })).json()) as Told;
    },
  });
  return [at(await start(stores[0])), at(await start(stores[1]))] as const;
}

async function openStores(context: TestContext, urls: readonly [string, string]) {
  const open = async (url: string): Promise<Peers> => {
    const store = await createRedisStore({ url, times, warn: () => {} });
    context.after(() => store.close());
    await store.claim();
    return store.peers!;
  };
  return [await open(urls[0]), await open(urls[1])] as const;
}

export function describeQueue(server: () => RedisServer): void {
  const twice = (): [string, string] => {
    const url = server().url();
    return [url, url];
  };

  describe("the queue of a name", () => {
    test("is served before a queue that waits behind it", async (context) => {
      const [one, other] = await openStores(context, twice());
      const order: string[] = [];
      const come = (who: string, { enter }: Peers, name: string, behind?: string) => {
        const standing = Promise.withResolvers<void>();
        const pass = async (): Promise<void> => {
          const leave = await enter(name, never, standing.resolve, behind);
          order.push(who);
          leave();
        };
        return { gone: pass(), stands: standing.promise };
      };
      const leave = await one.enter("beginning", never);
      const second = come("second", other, "beginning");
      await second.stands;
      const third = come("third", one, "thread", "beginning");
      await third.stands;
      const last = come("last", other, "thread", "beginning");
      await last.stands;
      leave();
      await Promise.all([second.gone, third.gone, last.gone]);
      assert.deepEqual(order, ["second", "third", "last"]);
      await come("again", other, "thread", "beginning").gone;
    });

    test(
      "keeps the place of a waiting gateway while Redis is unreachable for a moment",
      { timeout: 30_000 },
      async (context) => {
        const proxy = await startProxy(server().port);
        context.after(() => proxy.close());
        const urls = [server().url("blink"), `redis://127.0.0.1:${proxy.port}?prefix=blink`] as const;
        const [here, away] = await openStores(context, urls);
        const leave = await here.enter("thread", never);
        const standing = Promise.withResolvers<void>();
        const entered = away.enter("thread", never, standing.resolve);
        await standing.promise;
        // A waiting gateway asks again and again, and this time gets no answer.
        proxy.mode = "lose";
        while (proxy.mode === "lose") await wait(5);
        const next = here.enter("thread", never);
        // The answer that it is its turn is lost too.
        Object.assign(proxy, { mode: "lose", loses: /^:1\r\n$/ });
        leave();
        (await entered)();
        (await next)();
      },
    );
  });

  describe("the queue of a session on one gateway", () => {
    test("continues at once even if what Redis publishes is lost", { timeout: 15_000 }, async (context) => {
      const ownServer = await startRedis();
      context.after(() => ownServer.remove());
      const [one] = await openStores(context, [ownServer.url("deaf"), ownServer.url("deaf")]);
      const pass = async (): Promise<void> => {
        const leave = await one.enter("thread", never);
        await ownServer.ask("CLIENT", "KILL", "TYPE", "pubsub");
        leave();
      };
      await Promise.all(Array.from({ length: 40 }, pass));
    });

    test("is respected even if Redis no longer knows whose turn it is", async (context) => {
      const [one] = await openTwo(context, [server().url("lost"), server().url("lost")], 20);
      const held = async () => /\{lost\}:held:\S+/.exec(await server().ask("KEYS", "{lost}:held:*"))?.[0];
      assert.equal(await one.answer("hello"), 1);
      while ((await held()) !== undefined) await nextTick();
      const first = one.answer("on ".repeat(20));
      let name: string | undefined;
      while ((name = await held()) === undefined) await nextTick();
      assert.equal(await server().ask("DEL", name), ":1\r\n");
      const second = one.answer("two");
      assert.deepEqual(await Promise.all([first, second]), [3, 5]);
    });
  });

  describe("the queue of a session on several gateways", () => {
    test("contains a background turn before it is acknowledged, so that no other gateway can overtake it", async (context) => {
      // The first gateway's connection is so slow that whatever it does after its acknowledgement comes too late.
      const proxy = await startProxy(server().port, 5);
      context.after(() => proxy.close());
      const [far, near] = [`redis://127.0.0.1:${proxy.port}?prefix=far`, server().url("far")];
      const [one, other] = await openTwo(context, [far, near], 0);
      const seen: number[] = [];
      for (let times = 0; times < 20; times += 1) {
        await one.promise("first");
        seen.push(await other.answer("second"));
      }
      assert.deepEqual(
        seen,
        seen.map((_, times) => 4 * times + 3),
      );
    });

    test("serves those that wait on one gateway before later ones on another, and acknowledges all at once", async (context) => {
      const [one, other] = await openTwo(context, twice(), 20);
      assert.equal(await other.answer("hello"), 1);
      const { id } = await one.promise(endless);
      for (const word of ["two", "three"]) assert.equal((await one.promise(word)).status, "queued");
      const last = other.answer("four");
      assert.equal((await one.look(id, "/cancel", "POST")).status, "cancelled");
      assert.equal(await last, 7);
    });

    test("serves those that came before the session existed before those that find it", async (context) => {
      const [one, other] = await openTwo(context, twice(), 100);
      const promised: Told[] = [];
      for (const word of ["one", "two", "three"]) promised.push(await one.promise(word));
      while ((await one.look(promised[0]!.id)).status !== "completed") await nextTick();
      assert.equal(await other.answer("four"), 7);
    });

    test("refuses a turn when it is full, before anything is acknowledged", async (context) => {
      const [one] = await openTwo(context, twice(), 20, 1);
      const promised = [await one.promise(endless), await one.promise("two")];
      const refused = await one.ask({ input: "three", background: true });
      assert.equal(refused.status, 429);
      assert.match(await refused.text(), /"code":"session_busy"/);
      for (const { id } of promised.toReversed()) {
        assert.equal((await one.look(id, "/cancel", "POST")).status, "cancelled");
      }
    });

    test("is left by a turn that is cancelled while it waits, from any gateway", async (context) => {
      const [one, other] = await openTwo(context, twice(), 20);
      const [first, second] = [await one.promise(endless), await one.promise("two")];
      assert.equal((await other.look(second.id, "/cancel", "POST")).status, "cancelled");
      assert.match((await one.look(first.id)).status, /queued|in_progress/);
      assert.equal((await one.look(first.id, "/cancel", "POST")).status, "cancelled");
      assert.equal(await other.answer("three"), 1);
    });
  });
}
