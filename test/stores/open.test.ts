import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openStore } from "../../src/stores/index.ts";

test("memory: opens a store that needs no file", async () => {
  const store = openStore("memory:");
  await store.check();
  await store.close();
});

test("sqlite: with an absolute path opens a store in that file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-"));
  try {
    const file = join(folder, "sessions.db");
    const store = openStore(`sqlite:${file}`);
    await store.check();
    await store.close();
    assert.ok(existsSync(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("sqlite: with a relative path is refused", () => {
  assert.throws(() => openStore("sqlite:sessions.db"), /absolute path/);
  assert.throws(() => openStore("sqlite:"), /absolute path/);
});

test("an unknown store is refused with the known ones, and without what may be a password", () => {
  for (const url of ["floppy://user:secret@host", "secret", ""]) {
    assert.throws(
      () => openStore(url),
      (error: Error) => /memory:, sqlite:<absolute path>/.test(error.message) && !error.message.includes("secret"),
    );
  }
});
