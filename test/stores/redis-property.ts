/** The property of sessions, for two gateways on one Redis that start and stop. */
import { test } from "node:test";
import type { SessionStore } from "../../src/core/store.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { checkHistories, countRuns } from "../sessions/histories.ts";
import type { Step } from "../sessions/clients.ts";
import type { Site } from "../sessions/world.ts";
import type { RedisServer } from "./redis-server.ts";

export function describeProperty(server: () => RedisServer): void {
  test("every turn reaches the model exactly once and in order, whichever of two gateways on one Redis it is sent to", async () => {
    await checkHistories(countRuns(1 / 100), (steps) => openSites(server().url(), steps));
  });
}

/** A stopped gateway has a successor, whose store is already open, so that nothing waits for it. */
async function openSites(url: string, steps: readonly Step[]): Promise<readonly Site[]> {
  const ends = steps.filter(({ restart }) => restart).length + steps.filter(({ fate }) => fate === "crash").length;
  const stores = await Promise.all(Array.from({ length: 2 + ends }, () => open(url)));
  const spares = [...stores];
  const next = (): SessionStore => {
    const store = spares.pop();
    if (store === undefined) throw new Error("no store is left");
    return store;
  };
  return Array.from({ length: 2 }, (): Site => {
    let store = next();
    return {
      get store() {
        return store;
      },
      die() {
        void store.close();
        store = next();
      },
      close: async () => void (await Promise.all(stores.map((each) => each.close()))),
    };
  });
}

async function open(url: string): Promise<SessionStore> {
  const store = await createRedisStore({ url, warn: () => {}, now: () => new Date(0) });
  await store.claim();
  return store;
}
