/** The file is moved, deleted or replaced while the gateway runs: the gateway stops, and loses nothing that it has acknowledged. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { call, type Heard, tell, tellWell } from "../../harness/client.ts";
import { makeFolder } from "../../harness/house.ts";
import { type Program, runProgram, toConfig, writeConfig } from "../../harness/program.ts";
import { databaseIn, until } from "../aid.ts";

const more = { user: "ann" };

/** A gateway in a process of its own, which ends when the gateway stops. */
async function startGateway(context: TestContext, folder: string) {
  const config = writeConfig(folder, toConfig({ gateway: { adapters: { echo: { type: "echo" } } } }));
  const program = runProgram(context, folder, "start", "--config", config);
  return { program, address: await program.address() };
}

/** Undefined: the gateway has already stopped listening. */
const ask = (address: string, say: string): Promise<Heard | undefined> =>
  tell(address, { on: "responses", say, more }).catch(() => undefined);

async function stopsByItself({ child, ended }: Program, file: string): Promise<void> {
  await until(() => child.exitCode !== null);
  const { code, stderr } = await ended;
  assert.equal(code, 1);
  assert.match(stderr, /session store's file was moved, deleted or replaced while the gateway ran/);
  assert.ok(stderr.includes(file), stderr);
}

const changes: Record<string, (file: string) => void> = {
  moved: (file) => renameSync(file, `${file}-elsewhere`),
  deleted: (file) => rmSync(file),
  "deleted with all that is beside it": (file) => rmSync(dirname(file), { recursive: true }),
  "moved with its folder": (file) => renameSync(dirname(file), `${dirname(file)}-elsewhere`),
  replaced: (file) => {
    copyFileSync(file, `${file}-copy`);
    renameSync(`${file}-copy`, file);
  },
};

for (const [what, change] of Object.entries(changes)) {
  test(`a file that is ${what} stops the gateway, and no turn is acknowledged any more`, async (context) => {
    const folder = makeFolder(context);
    const { program, address } = await startGateway(context, folder);
    await tellWell(address, { on: "responses", say: "one", more });
    change(databaseIn(folder));
    for (const say of ["two", "three"]) {
      const heard = await ask(address, say);
      if (heard !== undefined) assert.deepEqual([heard.status, heard.error?.["code"]], [503, "store_unavailable"]);
    }
    await stopsByItself(program, databaseIn(folder));
  });
}

for (const isUsed of [true, false]) {
  const which = isUsed ? "has stored a turn" : "has stored nothing";
  test(`a gateway that ${which} notices without any request that its file is gone`, async (context) => {
    const folder = makeFolder(context);
    const { program, address } = await startGateway(context, folder);
    if (isUsed) await tellWell(address, { on: "responses", say: "one", more });
    rmSync(databaseIn(folder));
    await stopsByItself(program, databaseIn(folder));
  });
}

test("a file that is moved away and put back has every earlier answer, even without its log", async (context) => {
  const folder = makeFolder(context);
  const { program, address } = await startGateway(context, folder);
  const heard = [await ask(address, "one"), await ask(address, "two")];
  const moved = join(folder, "moved.db");
  renameSync(databaseIn(folder), moved);
  heard.push(await ask(address, "three"));
  await stopsByItself(program, databaseIn(folder));
  rmSync(dirname(databaseIn(folder)), { recursive: true });
  mkdirSync(dirname(databaseIn(folder)));
  renameSync(moved, databaseIn(folder));

  const again = await startGateway(context, folder);
  const kept = heard.filter((answer) => answer?.status === 200);
  assert.equal(kept.length, 2);
  for (const answer of kept) {
    const { status, raw } = await call(again.address, "GET", `/v1/responses/${answer?.id}`);
    assert.equal(status, 200, raw);
  }
  const next = await tellWell(again.address, { on: "responses", say: "four", more });
  assert.equal(next.headers.get("x-portico-history"), "continued");
});

test("a gateway starts with the backup that replaced its file, and keeps what is in it", async (context) => {
  const folder = makeFolder(context);
  const file = databaseIn(folder);
  const first = await startGateway(context, folder);
  const old = await tellWell(first.address, { on: "responses", say: "in the backup", more });
  await first.program.stop();
  copyFileSync(file, join(folder, "backup.db"));
  const second = await startGateway(context, folder);
  const young = await tellWell(second.address, { on: "responses", say: "not in the backup", more });
  renameSync(join(folder, "backup.db"), file);
  await stopsByItself(second.program, file);

  const { program, address } = await startGateway(context, folder);
  assert.equal((await call(address, "GET", `/v1/responses/${old.id}`)).status, 200);
  assert.equal((await call(address, "GET", `/v1/responses/${young.id}`)).status, 404);
  await tellWell(address, { on: "responses", say: "three", more });
  assert.equal((await program.stop()).code, 0);
  const database = new DatabaseSync(file);
  assert.deepEqual({ ...database.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
  database.close();
});
