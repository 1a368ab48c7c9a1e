/** Deleting while another program reads the file: no turn waits, the caller is warned, and the text goes when it lets go. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { type Answered, call, tellWell } from "../../harness/client.ts";
import { placesWith } from "../../harness/engine.ts";
import { makeFolder } from "../../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../../harness/program.ts";
import { databaseIn, operate, until } from "../aid.ts";
import { openReader } from "./reader.ts";

const user = "ann";
const canary = "quetzalcoatlus";
const warning = /deleted text stays in the store's files until another program stops reading/;

/** A gateway in a process of its own, because a test that reads its files in the same process would release its locks. */
async function startGateway(context: TestContext, folder = makeFolder(context)) {
  const config = writeConfig(folder, toConfig({ gateway: { adapters: { echo: { type: "echo" } } } }));
  const program = runProgram(context, folder, "start", "--config", config);
  return { folder, program, address: await program.address() };
}

const isGone = async (folder: string) => (await placesWith(folder, canary)).length === 0;

function isWarned({ status, headers, raw }: Answered): void {
  assert.equal(status, 200, raw);
  assert.match(headers.get("x-portico-warning") ?? "", warning);
}

async function cliDeletes(context: TestContext, folder: string): Promise<void> {
  const { code, stderr } = await runProgram(context, folder, "sessions", "delete", "--user", user).ended;
  assert.equal(code, 0, stderr);
  assert.match(stderr, new RegExp(`^warning: .*${warning.source}`, "m"));
}

test("a deletion beside an open reader is answered with a warning, and finished by itself when the reader lets go", async (context) => {
  const { folder, address } = await startGateway(context);
  const { id } = await tellWell(address, { on: "responses", say: canary });
  const reader = await openReader(context, databaseIn(folder));
  isWarned(await call(address, "DELETE", `/v1/responses/${id}`));
  assert.equal((await call(address, "GET", `/v1/responses/${id}`)).status, 404);
  const other = await tellWell(address, { on: "responses", say: "another turn" });
  assert.notDeepEqual(await placesWith(folder, canary), []);

  await reader.letGo();
  await until(() => isGone(folder));
  const { status, headers } = await call(address, "DELETE", `/v1/responses/${other.id}`);
  assert.deepEqual([status, headers.get("x-portico-warning")], [200, null]);
});

test("every answer to a deletion carries the warning while an erasure is unfinished", async (context) => {
  const { folder, address } = await startGateway(context);
  const items = [{ role: "user", content: canary }];
  const { body: conversation } = await call(address, "POST", "/v1/conversations", { items });
  const path = `/v1/conversations/${conversation.id}`;
  const { body: listed } = await call(address, "GET", `${path}/items`);
  for (const name of ["ann", "ben"]) await tellWell(address, { on: "responses", say: canary, more: { user: name } });
  const gateway = { address };
  const { body: ben } = await operate(gateway, "GET", "sessions?user=ben");
  const reader = await openReader(context, databaseIn(folder));
  isWarned(await call(address, "DELETE", `${path}/items/${listed.data[0].id}`));
  isWarned(await call(address, "DELETE", path));
  isWarned(await operate(gateway, "DELETE", "sessions?user=ann"));
  isWarned(await operate(gateway, "DELETE", `sessions/${ben.data[0].id}`));
  isWarned(await operate(gateway, "POST", "prune"));
  await reader.letGo();
  await until(() => isGone(folder));
});

test("the command line that deletes beside an open reader warns, and the running gateway finishes the erasure", async (context) => {
  const { folder, address } = await startGateway(context);
  await tellWell(address, { on: "chat", say: canary, more: { user } });
  // A gateway that has just started empties the log in any case.
  await until(() => statSync(`${databaseIn(folder)}-wal`).size === 0);
  const reader = await openReader(context, databaseIn(folder));
  await cliDeletes(context, folder);
  assert.notDeepEqual(await placesWith(folder, canary), []);
  await reader.letGo();
  await until(() => isGone(folder));
});

for (const [who, remove] of [
  ["a gateway that is killed", async (address: string) => isWarned(await operate({ address }, "POST", "prune"))],
  ["the command line", undefined],
] as const) {
  test(`the next gateway finishes the erasure that ${who} has left unfinished`, async (context) => {
    const { folder, program, address } = await startGateway(context);
    const { id } = await tellWell(address, { on: "responses", say: canary, more: { user } });
    const reader = await openReader(context, databaseIn(folder));
    if (remove !== undefined) {
      assert.equal((await call(address, "DELETE", `/v1/responses/${id}`)).status, 200);
      await remove(address);
    }
    await program.stop("SIGKILL");
    if (remove === undefined) {
      await cliDeletes(context, folder);
      const { code, stderr } = await runProgram(context, folder, "sessions", "prune").ended;
      assert.equal(code, 0);
      assert.match(stderr, warning);
    }
    await reader.letGo();
    assert.notDeepEqual(await placesWith(folder, canary), []);
    await startGateway(context, folder);
    await until(() => isGone(folder));
  });
}
