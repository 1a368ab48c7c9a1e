import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openStore } from "../../src/stores/index.ts";
import { cannotOpen } from "../../src/stores/redis/trouble.ts";
import { cannotOpen as cannotOpenFile, openDatabase } from "../../src/stores/sqlite/database.ts";

test("memory: opens a store that needs no file", async () => {
  const store = await openStore("memory:");
  await store.check();
  await store.close();
});

test("memory: keeps what a query buffers in memory too", () => {
  const database = openDatabase(":memory:");
  assert.equal(database.prepare("PRAGMA temp_store").get()?.["temp_store"], 2);
  database.close();
});

test("sqlite: with an absolute path opens a store in that file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-"));
  try {
    const file = join(folder, "sessions.db");
    const store = await openStore(`sqlite:${file}`);
    await store.check();
    await store.close();
    assert.ok(existsSync(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("sqlite: with a relative path is refused", async () => {
  await assert.rejects(openStore("sqlite:sessions.db"), /absolute path/);
  await assert.rejects(openStore("sqlite:"), /absolute path/);
});

test("an unknown store is refused with the list of known ones, and without what may be a password", async () => {
  for (const url of ["floppy://user:secret@host", "secret", ""]) {
    await assert.rejects(
      openStore(url),
      (error: Error) =>
        /memory:, sqlite:<absolute path>, redis:/.test(error.message) && !error.message.includes("secret"),
    );
  }
});

test("an invalid Redis URL is refused with the expected form, and without its password", async () => {
  for (const rest of [
    "",
    "/",
    "me:secret@",
    "h:99999",
    "h/name",
    "h?prefix=a{b",
    "h?db=1",
    "h?replicas=x",
    "h,",
    "me:secret@h:1,h:99999",
    "h#secret",
    "me:%zz@h",
    "me:se/cret@h",
  ]) {
    for (const scheme of ["redis", "rediss"]) {
      await assert.rejects(
        openStore(`${scheme}://${rest}`),
        (error: Error) => /redis:\/\/\[user:password@\]host/.test(error.message) && !/secret|cret@/.test(error.message),
      );
    }
  }
});

for (const [message, code, remedy] of [
  ["self-signed certificate in certificate chain", "SELF_SIGNED_CERT_IN_CHAIN", /NODE_EXTRA_CA_CERTS/],
  ["unable to verify the first certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", /NODE_EXTRA_CA_CERTS/],
  ["alert number 116\n", "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", /: alert number 116\. .*`tls-auth-clients no`/],
  ["NOPERM this user has no permissions", undefined, /its keys, its channels and all commands that are not dangerous/],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", undefined, /Another program .*\?prefix=NAME/],
  ["read ECONNRESET", "ECONNRESET", /whether it speaks TLS \(rediss:\/\/\)/],
] as const) {
  test(`the error for a Redis that cannot be opened contains a remedy: ${code ?? message}`, () => {
    assert.match(cannotOpen(Object.assign(new Error(message), { code }), "redis://host").message, remedy);
  });
}

for (const [message, codes, remedy] of [
  ["database or disk is full", { errcode: 13 }, /Make room on its disk/],
  // The index of the log could not grow.
  ["disk I/O error", { errcode: 4874 }, /its disk is neither full nor failing/],
  ["unable to open database file", { errcode: 14 }, /Check that the gateway's user may read and write it/],
  [
    "EROFS: read-only file system",
    { code: "EROFS" },
    /If it exists, copy it, with its `-wal` if it has one, to another disk\. .* a new file there/,
  ],
] as const) {
  test(`the error for a file that cannot be opened contains a remedy: ${message}`, () => {
    assert.match(cannotOpenFile("/sessions.db", Object.assign(new Error(message), codes)).message, remedy);
  });
}
