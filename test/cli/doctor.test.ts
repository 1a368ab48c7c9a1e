/** `portico doctor`: what is well, and what is not, with what to do; it sends and shows no secret. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { startServer } from "../harness/client.ts";
import { findFreePort, makeFolder, openGateway, type Options, token } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { openPooler } from "../harness/pooler.ts";
import { openPostgres } from "../harness/postgres.ts";
import { type Ended, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { answerJson } from "../harness/upstream.ts";

async function examine(context: TestContext, options: Options | string, folder = makeFolder(context)): Promise<Ended> {
  writeConfig(folder, typeof options === "string" ? options : toConfig(options));
  const ended = await runProgram(context, folder, "doctor").ended;
  assert.ok(!(ended.stdout + ended.stderr).includes(token), "it shows no token");
  assert.ok(!(ended.stdout + ended.stderr).includes("sk-upstream"), "it shows no key");
  return ended;
}

test("doctor finds nothing wrong with a gateway that runs, nor before its first start, and exits with 0", async (context) => {
  const server = await startServer(context);
  server.script = answerJson({ object: "list", data: [{ id: "m", object: "model" }] });
  const options = { gateway: { adapters: server.adapters }, http: { port: await findFreePort() } };
  const { folder } = await openGateway(context, options);
  for (const where of [folder, makeFolder(context)]) {
    const config = where === folder ? options : { ...options, http: { port: 0 } };
    const { code, stdout } = await examine(context, config, where);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /store/);
    assert.doesNotMatch(stdout, /^problem/im);
  }
});

test("doctor names every problem of the configuration", async (context) => {
  const { code, stdout, stderr } = await examine(context, toConfig({ http: { prot: 1, bind: "nowhere" } }));
  assert.equal(code, 1);
  for (const key of ["gateway.http.prot", "gateway.http.bind"]) assert.ok((stdout + stderr).includes(key), stdout);
});

test("doctor asks each adapter's server: one that is not there, and one that refuses the key, are problems", async (context) => {
  const server = await startServer(context);
  server.script = answerJson({ error: { message: "no such key" } }, 401);
  const gone = { type: "openai", base_url: "http://127.0.0.1:1/v1", api_key: "sk-upstream" };
  const adapters = { refusing: server.adapters["model"]!, gone, fine: { type: "echo" } };
  const { code, stdout } = await examine(context, { gateway: { adapters, default_adapter: "fine" } });
  assert.equal(code, 1);
  const problems = stdout.split("\n").filter((line) => /^problem/i.test(line));
  assert.equal(problems.length, 2, stdout);
  assert.ok(problems.some((line) => line.includes("refusing")) && problems.some((line) => line.includes("gone")));
  for (const { headers } of server.received) assert.equal(headers.authorization, "Bearer sk-upstream");
});

test("doctor names a store that is none", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "notes.txt"), "my own notes, of more than a hundred bytes. ".repeat(5));
  const { code, stdout } = await examine(context, { gateway: { sessions: { store: "sqlite:notes.txt" } } }, folder);
  assert.equal(code, 1);
  assert.match(stdout, /^problem.*notes\.txt/m);
});

test(
  "doctor tells of PostgreSQL's server, and names a database that is not there",
  { skip: need("initdb").skip },
  async (context) => {
    const careless = await openPostgres(context);
    const there = await careless.createDatabase();
    const found = await examine(context, { gateway: { sessions: { store: there } } });
    assert.equal(found.code, 0, found.stdout);
    assert.match(found.stdout, /^ok .*store: postgres:\/\/\*\*\*@127\.0\.0\.1:\d+\/portico_\w+: PostgreSQL 1\d/m);
    for (const danger of ["fsync is off", "synchronous_commit is off"])
      assert.match(found.stdout, new RegExp(`^warning .*${danger}: .*Set it to on`, "m"));
    assert.match(found.stdout, /of 200 connections/);
    assert.match(found.stdout, /without a pooler/);
    const pooled = await examine(context, { gateway: { sessions: { store: await openPooler(context, there) } } });
    assert.match(pooled.stdout, /through a pooler/);
    const gone = await examine(context, { gateway: { sessions: { store: there.replace(/portico_\w+/, "nowhere") } } });
    assert.equal(gone.code, 1);
    assert.match(gone.stdout, /^problem .*nowhere/m);
  },
);
