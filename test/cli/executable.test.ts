/** The executable around the command line: what it needs of Node, where it keeps compiled code, and whom it waits for. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { tellWell } from "../harness/client.ts";
import { makeFolder } from "../harness/house.ts";
import { bareEnvironment, root, runProgram, runProgramIn, toConfig, writeConfig } from "../harness/program.ts";

test("a Node that is too old is told in one sentence, with what to do", async (context) => {
  const folder = makeFolder(context);
  const preload = join(folder, "old.cjs");
  const versions = '{ ...process.versions, node: "12.22.12" }';
  writeFileSync(preload, `Object.defineProperty(process, "versions", { value: ${versions} });`);
  const env = { NODE_OPTIONS: `--require ${preload}` };
  const { code, stdout, stderr } = await runProgramIn(context, folder, env, "--version").ended;
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /^.*Node 24.*Node 12\.22\.12.*npm.*\n$/);
});

/** A checkout or a package with the executable, in which these files do no more than to say their names. */
function makeCheckout(context: TestContext, ...files: readonly string[]) {
  const folder = makeFolder(context);
  cpSync(join(root, "bin"), join(folder, "bin"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  for (const file of files) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), `export const main = () => console.log("${file}");`);
  }
  return join(folder, "bin/portico.js");
}

const source = "src/cli/main.ts";
const built = "dist/cli/main.js";

test("a checkout runs its source, and the published package what was built of it", (context) => {
  for (const [files, runs] of [
    [[built], built],
    [[built, source], source],
  ] as const) {
    const env = bareEnvironment(makeFolder(context));
    const { stdout } = spawnSync(process.execPath, [makeCheckout(context, ...files)], { encoding: "utf8", env });
    assert.equal(stdout, `${runs}\n`);
  }
});

/** A home of its own, in which the executable runs with a umask that allows everything. */
function makeHome(context: TestContext) {
  const [home, temporary] = [makeFolder(context), makeFolder(context)];
  const env = { PATH: process.env["PATH"], HOME: home, TMPDIR: temporary };
  const words = ["-c", 'umask 0; exec "$0" "$1"', process.execPath, makeCheckout(context, source)];
  const run = () => {
    const child = spawnSync("/bin/sh", words, { encoding: "utf8", env });
    assert.deepEqual([child.status, child.stdout, child.stderr], [0, `${source}\n`, ""]);
    assert.deepEqual(readdirSync(temporary), [], "not where others could plant code");
  };
  return { home, cache: join(home, ".cache/portico"), run };
}

test("compiled code is kept where only the user may write, without what others could have planted, nor for ever", (context) => {
  const { cache, run } = makeHome(context);
  // Each installation has a folder of its own.
  for (let index = 0; index < 8; index++) mkdirSync(join(cache, `gone-${index}`), { recursive: true });
  chmodSync(cache, 0o700);
  run();
  const kept = readdirSync(cache).filter((name) => !name.startsWith("gone-"));
  assert.deepEqual([kept.length, readdirSync(cache).length < 8], [1, true]);
  writeFileSync(join(cache, "planted"), "");
  chmodSync(cache, 0o777);
  run();
  assert.equal(statSync(cache).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(cache), kept);
});

test("it runs where no compiled code can be kept", (context) => {
  const { home, run } = makeHome(context);
  writeFileSync(join(home, ".cache"), "no folder");
  run();
});

test("a gateway whose output nobody reads any more answers on, and stops cleanly", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig());
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  const { stdout, stderr } = program.child;
  for (const each of [stdout!, stderr!]) each.destroy();
  for (const say of ["one", "two", "three"]) {
    assert.equal((await tellWell(address, { on: "chat", say })).text, say);
  }
  assert.equal((await program.stop()).code, 0);
});
