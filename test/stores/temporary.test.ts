/** What a store keeps in the temporary folder, where that has no room for it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { compiled } from "../compiled.ts";
import { makeFolder } from "../gateway.ts";

/** Part of Linux, not of this project. */
const limiter = "prlimit";
const noLimits = spawnSync(limiter, ["--version"]).status !== 0 && `there is no ${limiter} here`;

const exporting = `
import { createExported } from ${JSON.stringify(new URL("../../src/stores/sqlite/exported.ts", import.meta.url).href)};
const told = createExported();
try {
  for (let count = 0; ; count += 1) told.addSession("conv_" + count);
} catch (thrown) {
  console.log(thrown.code, thrown.message);
}`;

test("an export that cannot record its progress reports where there is no room", { skip: noLimits }, (context) => {
  const folder = makeFolder(context);
  const argv = ["--fsize=100000", process.execPath, "--input-type=module", "--eval", exporting];
  const env = { TMPDIR: folder, NODE_COMPILE_CACHE: compiled };
  const { stdout, stderr } = spawnSync(limiter, argv, { env, encoding: "utf8", timeout: 20_000 });
  assert.equal(
    stdout,
    `store_unavailable The progress of the export cannot be recorded in the temporary folder ${folder}: disk I/O error. ` +
      "Make room there, or set the environment variable TMPDIR to another folder, and export it again.\n",
    stderr,
  );
});

const inMemory = `
import { openStore } from ${JSON.stringify(new URL("../../src/stores/index.ts", import.meta.url).href)};
const store = await openStore("memory:");
async function* read() {
  yield* store.exportRecords();
  const common = { owner: "alice", resends: false, metadata: {}, createdAt: new Date(), updatedAt: new Date() };
  for (let count = 0; count < 500; count += 1) {
    yield { ...common, type: "session", id: "conv_" + count + "_".repeat(10_000) };
  }
}
const { sessions } = await store.importRecords(read());
const exported = await Array.fromAsync(store.exportRecords());
console.log(sessions, exported.length);`;

test(
  "a store in memory imports and exports what the temporary folder has no room for",
  { skip: noLimits },
  (context) => {
    const argv = ["--fsize=100000", process.execPath, "--input-type=module", "--eval", inMemory];
    const env = { TMPDIR: makeFolder(context), NODE_COMPILE_CACHE: compiled };
    const { stdout, stderr } = spawnSync(limiter, argv, { env, encoding: "utf8", timeout: 20_000 });
    assert.equal(stdout, "500 501\n", stderr);
  },
);
