import assert from "node:assert/strict";
import { test } from "node:test";
import { openKeyring } from "../src/keyring.ts";
import { createMemoryStore } from "./stores/memory.ts";

test("what another store sealed opens after its archive is imported and the keys are renewed, periodically or at once", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const store = createMemoryStore();
  const keyring = await openKeyring(store, 10_000);
  const { seal } = keyring.sealOf("alice");
  const carried: string[] = [];
  for (const renew of [() => context.mock.timers.tick(10_000), keyring.renew]) {
    const elsewhere = createMemoryStore();
    const { sealOf, close } = await openKeyring(elsewhere);
    close();
    carried.push(sealOf("alice").seal("one"));
    await store.importRecords(elsewhere.exportRecords());
    assert.equal(keyring.sealOf("alice").open(carried.at(-1)!), undefined);
    await renew();
    await new Promise((resolve) => setImmediate(resolve));
    for (const sealed of carried) assert.equal(keyring.sealOf("alice").open(sealed), "one");
    assert.equal(keyring.sealOf("alice").seal("two"), seal("two"));
  }
  await store.close();
  context.mock.timers.tick(10_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(keyring.sealOf("alice").open(carried[0]!), "one");
  keyring.close();
});
