/** What the command line understands: help, mistakes, exit codes, and the file that `portico init` writes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { makeFolder, token } from "../harness/house.ts";
import { bareEnvironment, type Ended, executable, root, runProgram, runProgramIn } from "../harness/program.ts";

const commands: readonly (readonly [command: string, ...options: string[]])[] = [
  ["start", "--config", "--bind", "--port"],
  ["init"],
  ["check", "--config"],
  ["schema"],
  ["chat", "--session", "--model", "--url", "--config"],
  ["doctor", "--config"],
  ["sessions list", "--user", "--json"],
  ["sessions show", "--user", "--json"],
  ["sessions export", "--out"],
  ["sessions import"],
  ["sessions delete", "--user"],
  ["sessions prune"],
  ["token make", "--name"],
  ["token hash"],
  ["token rotate"],
];

/** The output of `portico ARGS`. */
async function help(context: TestContext, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(context, root, ...args).ended;
  assert.deepEqual([code, stderr], [0, ""], args.join(" "));
  return stdout;
}

test("portico alone and portico --help list every command, and a group lists its own", async (context) => {
  const listed = await help(context, "--help");
  assert.equal(await help(context), listed);
  for (const [command] of commands) assert.match(listed, new RegExp(`^ *${command.split(" ")[0]} `, "m"));
  for (const group of ["sessions", "token"]) {
    const inner = commands
      .filter(([command]) => command.startsWith(`${group} `))
      .map(([command]) => command.slice(group.length + 1));
    const said = await help(context, group, "--help");
    for (const command of inner) assert.match(said, new RegExp(`^ *${command} `, "m"));
  }
});

for (const [command, ...options] of commands) {
  test(`portico ${command} --help explains the command and runs nothing`, async (context) => {
    const said = await help(context, ...command.split(" "), "--help");
    assert.match(said, new RegExp(`Usage: portico ${command}`));
    for (const option of options) assert.ok(said.includes(option), `${option} is missing: ${said}`);
  });
}

test("portico --version prints the package's version", async (context) => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string };
  assert.ok((await help(context, "--version")).includes(version));
});

for (const [args, ...said] of [
  [["strat"], "strat", "start"],
  [["start", "--prot", "1"], "--prot", "--port"],
  [["start", "--port"], "--port"],
  [["check", "file.json"], "file.json"],
  [["sessions", "lsit"], "lsit", "list"],
  [["sessions", "show"], "ID"],
] as const) {
  test(`portico ${args.join(" ")} is not understood, and says what was`, async (context) => {
    const folder = makeFolder(context);
    const { code, stdout, stderr } = await runProgram(context, folder, ...args).ended;
    assert.deepEqual([code, stdout], [2, ""]);
    for (const each of said) assert.ok(stderr.includes(each), stderr);
    assert.equal(stderr.trim().split("\n").length, 1, stderr);
  });
}

test("init writes a commented file for its owner alone, which check accepts with what its comments offer", async (context) => {
  const folder = makeFolder(context);
  const run = (...args: readonly string[]): Promise<Ended> =>
    runProgramIn(
      context,
      folder,
      { NOTES_APP_TOKEN: `${token}-notes`, PORTICO_OPERATOR_TOKEN: `${token}-operator`, OPENAI_API_KEY: "sk-upstream" },
      ...args,
    ).ended;
  const made = await run("init");
  assert.equal(made.code, 0, made.stderr);
  const file = join(folder, "portico.json");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const written = readFileSync(file, "utf8");
  assert.match(written, /\/\//);
  assert.match(written, /"auth_token": "sk-portico-\w{32,}"/);
  const checked = await run("check");
  assert.equal(checked.code, 0, checked.stderr);
  assert.doesNotMatch(checked.stderr, /warning/);
  writeFileSync(file, written.replaceAll(/^( *)\/\/ (?=["} ])/gm, "$1"));
  const whole = await run("check");
  assert.equal(whole.code, 0, whole.stderr);
  writeFileSync(file, written);
  const again = await run("init");
  assert.equal(again.code, 1);
  assert.equal(readFileSync(file, "utf8"), written, "an existing file is never overwritten");
  assert.equal((await run("init", "second.json")).code, 0);
  assert.notEqual(readFileSync(join(folder, "second.json"), "utf8"), written, "each has a token of its own");
});

const skip = !existsSync("/dev/full") && "this machine has no /dev/full";

test("output that cannot be written is a failure", { skip }, async () => {
  const full = openSync("/dev/full", "w");
  const stdio = ["ignore", full, "pipe"] as const;
  const child = spawn(process.execPath, [executable, "schema"], { env: bareEnvironment(root), stdio: [...stdio] });
  closeSync(full);
  const said = text(child.stderr!);
  const [code] = (await once(child, "close")) as [number];
  assert.equal(code, 1);
  assert.match(await said, /ENOSPC/);
});
