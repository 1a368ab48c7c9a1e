/** Whatever is done to two stores in one Redis, they behave like one in memory. */
import { test } from "node:test";
import { createRedisStore } from "../../src/stores/redis.ts";
import { countRuns } from "../sessions/histories.ts";
import { checkAlike } from "./alike.ts";
import type { RedisServer } from "./redis-server.ts";

export function describeAlike(server: () => RedisServer): void {
  test("two stores in one Redis behave like one in memory, whatever is done to them", async () => {
    await checkAlike(countRuns(1 / 200), (options) => {
      const url = server().url();
      const open = () => createRedisStore({ url, warn: () => {}, ...options });
      return Promise.all([open(), open()]);
    });
  });
}
