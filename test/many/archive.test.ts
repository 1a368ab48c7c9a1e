/** An archive goes from a file to PostgreSQL and back, and is the same each time. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { call, tellWell } from "../harness/client.ts";
import { call as toCall, makeFolder, openGateway, say } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { newDatabase } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { exportArchive, importArchive } from "../store/aid.ts";

const { skip } = need("postgres");

/** Without the store's own keys, which stand before those that came with the archive. */
const withoutHead = (archive: string): string => archive.slice(archive.indexOf("\n"));

test("what was exported from SQLite is exported from PostgreSQL, and from SQLite again", { skip }, async (context) => {
  const sqlite = () => ({ sessions: { store: `sqlite:${join(makeFolder(context), "portico.db")}` } });
  const here = await openGateway(context, { gateway: sqlite() });
  const more = { user: "ann" };
  for (const words of ["one", 'two\u0000 "\\"\n\ud83c\udf37\u2028'])
    for (const on of ["chat", "responses"] as const) await tellWell(here.address, { on, say: words, more });
  const instructions = "Be brief. ".repeat(300);
  const root = await tellWell(here.address, { on: "responses", say: "root", more: { instructions } });
  for (const words of ["left", "right"])
    await tellWell(here.address, { on: "responses", say: words, more: { previous_response_id: root.id } });
  here.model.script = [toCall("call_1", "look", '{"at":"bed"}')];
  await tellWell(here.address, { on: "responses", say: "tools", more });
  here.model.script = [say("half "), [{ type: "finish", reason: "length" }]];
  await tellWell(here.address, { on: "responses", say: "long" });
  await call(here.address, "POST", "/v1/conversations", { metadata: { bed: "rose" } });

  const first = await exportArchive(here);
  assert.ok(first.split("\n").length > 12, first);
  const there = await openGateway(context, { gateway: { sessions: { store: await newDatabase(context) } } });
  assert.equal((await importArchive(there, first)).status, 200);
  const second = await exportArchive(there);
  assert.equal(withoutHead(second), withoutHead(first));
  const back = await openGateway(context, { gateway: sqlite() });
  assert.equal((await importArchive(back, second)).status, 200);
  assert.equal(withoutHead(await exportArchive(back)), withoutHead(first));
});

test(
  "`portico sessions` lists, exports and deletes beside running gateways on PostgreSQL",
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const sessions = { store: await newDatabase(context) };
    const gateway = await openGateway(context, { gateway: { sessions } });
    for (const user of ["ann", "ben"])
      await tellWell(gateway.address, { on: "chat", say: `I am ${user}`, more: { user } });
    writeConfig(folder, toConfig({ gateway: { sessions, adapters: { model: { type: "echo" } } } }));
    const run = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await runProgram(context, folder, "sessions", ...args).ended;
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.match(await run("list"), /I am ann/);
    assert.equal(await run("export"), await exportArchive(gateway));
    await run("delete", "--user", "ann");
    const left = await run("list");
    assert.match(left, /I am ben/);
    assert.doesNotMatch(left, /ann/);
    const heard = await tellWell(gateway.address, { on: "chat", say: "Who am I?", more: { user: "ann" } });
    assert.equal(heard.headers.get("x-portico-history"), "new");
  },
);
