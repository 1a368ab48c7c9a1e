import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection } from "../../src/stores/redis/connection.ts";
import type { Lease } from "../../src/stores/redis/lease.ts";
import { createUses } from "../../src/stores/redis/uses.ts";

test("a gateway tells that nothing is in use any more until Redis knows it", async () => {
  const told: (string | undefined)[] = [];
  let isAway = false;
  const run: Connection["run"] = async (_script, args) => {
    told.push(args[1]);
    if (isAway) throw new Error("away");
    return 1;
  };
  const inUse = new Set(["conv_1"]);
  const uses = createUses({ run } as Connection, { fence: () => "gateway:1" } as Lease);
  uses.shareUse(() => inUse);
  uses.renew();
  inUse.clear();
  for (const next of [true, false, false, false]) {
    isAway = next;
    uses.renew();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(told, ['["conv_1"]', "[]", "[]"]);
});
