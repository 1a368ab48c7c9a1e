/** `portico token …`: making, hashing and rotating tokens. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createToken, storeToken } from "../../src/config/token.ts";
import { makeFolder } from "../gateway.ts";
import { runProgram } from "../whole/program.ts";
import { portico, runIn } from "./screen.ts";

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

test("token make prints a token, its digest, and a line for the config file.", async (context) => {
  const folder = makeFolder(context);
  const { code, printed } = await portico(folder, "token", "make", "--name", "notes");
  const [, token = "", sha256, line = ""] =
    /^token {3}(sk-portico-[0-9a-f]{48})\nsha256 {2}(\w{64})\nconfig {2}(.*)$/.exec(printed) ?? [];
  assert.equal(code, 0);
  assert.equal(sha256, digestOf(token));
  assert.deepEqual(JSON.parse(line), { name: "notes", sha256 });
  const settings = { gateway: { http: { tokens: [JSON.parse(line)] } } };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
  assert.equal((await portico(folder, "check")).code, 0);
  assert.notEqual((await portico(folder, "token", "make")).printed, printed);
  assert.equal((await portico(folder, "token", "make", "--name", "default")).code, 2);
});

test("token hash digests the standard input, with or without a line break.", async (context) => {
  const digest = digestOf("sk-test-0123456789abcdef");
  const program = runProgram(context, makeFolder(context), "token", "hash");
  program.child.stdin?.end("sk-test-0123456789abcdef");
  const { code, stdout } = await program.ended;
  assert.deepEqual([code, stdout], [0, `${digest}\n`]);
  const hash = (input: string) => runIn(makeFolder(context), ["token", "hash"], { input });
  assert.deepEqual(await hash("sk-test-0123456789abcdef\n"), { code: 0, printed: digest, complained: "" });
  const empty = await hash("\n");
  assert.equal(empty.code, 1);
  assert.match(empty.complained, /^Standard input contains no token/);
});

test("token hash refuses a token among the arguments, and does not repeat it.", async (context) => {
  const { code, printed, complained } = await portico(makeFolder(context), "token", "hash", "sk-secret");
  assert.deepEqual([code, printed], [2, ""]);
  assert.match(complained, /^A token is never an argument/);
  assert.doesNotMatch(complained, /sk-secret/);
});

test("token rotate replaces the generated token, readable by its owner only.", async (context) => {
  const folder = makeFolder(context);
  const token = createToken();
  const file = join(folder, ".portico/token");
  storeToken(join(folder, ".portico"), token);
  const { code, printed } = await portico(folder, "token", "rotate");
  assert.equal(code, 0);
  const stored = readFileSync(file, "utf8");
  assert.match(stored, /^sk-portico-[0-9a-f]{48}\n$/);
  assert.notEqual(stored.trim(), token);
  assert.ok(printed.startsWith(`${stored.trim()}  (shown only now; stored in ${file})\n`));
  assert.match(printed, /restarted; a service also on SIGHUP/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(join(folder, ".portico")), ["token"]);
});

test("token rotate has nothing to change before the first start.", async (context) => {
  const folder = makeFolder(context);
  const { code, complained } = await portico(folder, "token", "rotate");
  assert.equal(code, 1);
  assert.match(complained, /^There is no token in .*\.portico yet/);
  assert.deepEqual(readdirSync(folder), []);
});

test("token rotate says how to change the tokens of a config file, and does not change it.", async (context) => {
  const folder = makeFolder(context);
  const text = JSON.stringify({ gateway: { http: { auth_token: "sk-test-0123456789abcdef" } } });
  writeFileSync(join(folder, "portico.json"), text, { mode: 0o600 });
  const { code, printed, complained } = await portico(folder, "token", "rotate");
  assert.deepEqual([code, printed], [1, ""]);
  assert.match(complained, /^Nothing was changed\. .* which is yours to change/);
  assert.equal(readFileSync(join(folder, "portico.json"), "utf8"), text);
  assert.deepEqual(readdirSync(folder), ["portico.json"]);
});

test("An old and a new token may have the same name, as token rotate says.", async (context) => {
  const folder = makeFolder(context);
  const tokens = ["sk-old-0123456789abcdef", "sk-new-0123456789abcdef"].map((token) => ({ name: "notes", token }));
  writeFileSync(join(folder, "portico.json"), JSON.stringify({ gateway: { http: { tokens } } }), { mode: 0o600 });
  const { code } = await portico(folder, "check");
  assert.equal(code, 0);
});
