/** Whether a gateway holds a store, as another process can see. */
import assert from "node:assert/strict";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readHolding } from "../../src/cli/holder.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../gateway.ts";
import { whileClosed } from "./stranger.ts";

test("A store is held while a gateway has it, free before and afterwards, and unknown if it is not a file.", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, "portico.db");
  assert.equal(readHolding(`sqlite:${file}`), "free");
  const store = createSqliteStore({ file });
  await store.claim();
  symlinkSync(file, join(folder, "linked.db"));
  assert.equal(readHolding(`sqlite:${file}`), "held");
  assert.equal(readHolding(`sqlite:${join(folder, "linked.db")}`), "held");
  await store.close();
  assert.equal(readHolding(`sqlite:${file}`), "free");
  writeFileSync(`${file}-gateway`, "no database, which no gateway can hold");
  assert.equal(readHolding(`sqlite:${file}`), "free");
  for (const url of ["memory:", "redis://127.0.0.1:1"]) assert.equal(readHolding(url), "no-sign");
});

test(
  "If the lock may not be read, it is unknown whether the store is held.",
  { skip: process.platform === "win32" && "Windows has no such file modes" },
  async (context) => {
    const folder = makeFolder(context);
    const file = join(folder, "portico.db");
    const store = createSqliteStore({ file });
    context.after(() => store.close());
    await store.claim();
    chmodSync(folder, 0o755);
    for (const closed of [folder, `${file}-gateway`]) {
      assert.equal(await whileClosed(closed, () => readHolding(`sqlite:${file}`)), "unreadable");
    }
    assert.equal(readHolding(`sqlite:${file}`), "held");
  },
);
