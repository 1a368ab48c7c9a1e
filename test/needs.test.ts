import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeFolder } from "./gateway.ts";

test("tests that cannot run, without their tools or on an older Node, say what to do", (context) => {
  const folder = makeFolder(context);
  const needs = fileURLToPath(new URL("needs.cjs", import.meta.url));
  const copied = join(folder, "needs.cjs");
  copyFileSync(needs, copied);
  const old = join(folder, "old.cjs");
  writeFileSync(old, 'Object.defineProperty(process, "versions", { value: { node: "12.22.12" } });');
  const remedy = "run `npm ci --include=dev`, whose install scripts must be allowed to run.\n";
  for (const [args, why] of [
    [["--require", old, needs], `The tests need Node 24, and this is Node 12.22.12: ${remedy}`],
    [[copied], `The tests need tools that are not installed: ${remedy}`],
    [[needs], ""],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.deepEqual([status, stderr], [why === "" ? 0 : 1, why]);
  }
});
