/** `portico token`: tokens are made, digested and replaced, and never stand among the arguments. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tellWell } from "../harness/client.ts";
import { makeFolder, openGateway, token } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";

test("token make prints a token, and a line for the config file that has only its digest and its name", async (context) => {
  const folder = makeFolder(context);
  const { code, stdout } = await runProgram(context, folder, "token", "make", "--name", "notes").ended;
  assert.equal(code, 0);
  const [made = ""] = /\bsk-portico-\w{32,}/.exec(stdout) ?? [];
  const [line = ""] = /\{.*\}/.exec(stdout) ?? [];
  assert.deepEqual(JSON.parse(line), { name: "notes", sha256: hash("sha256", made, "hex") });
  const { address } = await openGateway(context, { http: { tokens: [JSON.parse(line)] } });
  await tellWell(address, { on: "chat", say: "hi", token: made });
  assert.deepEqual(readdirSync(folder), [], "it is stored nowhere");
  const again = await runProgram(context, folder, "token", "make").ended;
  assert.ok(!again.stdout.includes(made));
});

test("token hash digests standard input, with or without a line end, and refuses an argument without repeating it", async (context) => {
  const folder = makeFolder(context);
  const digest = async (input: string, ...args: readonly string[]) => {
    const program = runProgram(context, folder, "token", "hash", ...args);
    program.child.stdin!.end(input);
    return program.ended;
  };
  for (const end of ["", "\n"]) {
    assert.deepEqual(await digest(token + end), { code: 0, stdout: `${hash("sha256", token, "hex")}\n`, stderr: "" });
  }
  const refused = await digest("", token);
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  assert.ok(!refused.stderr.includes(token) && refused.stderr.includes("standard input"), refused.stderr);
  assert.equal((await digest("\n")).code, 1);
});

test("token rotate replaces the token of the data folder whole, readable by its owner only, and shows it once", async (context) => {
  const folder = makeFolder(context);
  const started = runProgram(context, folder, "start", "--port", "0");
  const [, old = ""] = /Bearer (\S+)"/.exec(await started.said("curl ")) ?? [];
  await started.stop();
  const data = join(folder, ".portico");
  const files = readdirSync(data);
  const { code, stdout } = await runProgram(context, folder, "token", "rotate").ended;
  assert.equal(code, 0);
  const [made = ""] = /\bsk-portico-\w{32,}/.exec(stdout) ?? [];
  assert.notEqual(made, old);
  const kept = readdirSync(data).filter((name) => readFileSync(join(data, name), "utf8").includes(made));
  assert.equal(kept.length, 1);
  assert.equal(statSync(join(data, kept[0]!)).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(data).toSorted(), files.toSorted(), "nothing half-written is left");
  const again = runProgram(context, folder, "start", "--port", "0");
  await tellWell(await again.address(), { on: "chat", say: "hi", token: made });
  await again.stop();

  writeFileSync(join(data, kept[0]!), "\n");
  const damaged = await runProgram(context, folder, "start", "--port", "0").ended;
  assert.deepEqual([damaged.code, damaged.stdout], [1, ""], "a damaged one does not open the gateway to everybody");
  assert.ok(damaged.stderr.includes(join(data, kept[0]!)), damaged.stderr);
});

test("token rotate does not touch a config file but says what to change, nor has it anything to do before a first start", async (context) => {
  const folder = makeFolder(context);
  const before = await runProgram(context, folder, "token", "rotate").ended;
  assert.deepEqual([before.code, before.stdout], [1, ""]);
  assert.deepEqual(readdirSync(folder), []);
  const file = writeConfig(folder, toConfig());
  const text = readFileSync(file, "utf8");
  const { code, stdout, stderr } = await runProgram(context, folder, "token", "rotate").ended;
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /portico token make/);
  assert.equal(readFileSync(file, "utf8"), text);
});
