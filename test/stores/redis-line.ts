/** The line that several gateways on one Redis have together: who came first goes first, wherever it came. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Neighbours } from "../../src/core/neighbours.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { startProxy } from "./redis-proxy.ts";
import type { RedisServer } from "./redis-server.ts";

/** A name that nobody gives back is lost for longer than a test takes. */
const times = { leaseMs: 60_000, renewMs: 3_000, timeoutMs: 5_000, openingMs: 5_000 };
const never = new AbortController().signal;

async function openStores(context: TestContext, urls: readonly [string, string]) {
  const open = async (url: string): Promise<Neighbours> => {
    const store = await createRedisStore({ url, times, warn: () => {} });
    context.after(() => store.close());
    await store.claim();
    return store.neighbours!;
  };
  return [await open(urls[0]), await open(urls[1])] as const;
}

export function describeLine(server: () => RedisServer): void {
  const twice = (): [string, string] => {
    const url = server().url();
    return [url, url];
  };

  describe("the line of a name", () => {
    test("is let go first where it stands in front of another", async (context) => {
      const [one, other] = await openStores(context, twice());
      const order: string[] = [];
      const come = (who: string, { enter }: Neighbours, name: string, behind?: string) => {
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
      "has a place for whoever waits in it though Redis is away for a moment",
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
        // Whoever waits asks again and again, and this time is not answered.
        proxy.mode = "lose";
        while (proxy.mode === "lose") await wait(5);
        const next = here.enter("thread", never);
        // Nor is it told that it has its turn.
        Object.assign(proxy, { mode: "lose", loses: /^:1\r\n$/ });
        leave();
        (await entered)();
        (await next)();
      },
    );
  });
}
