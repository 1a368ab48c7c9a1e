/** SIGHUP: a running gateway takes a changed file whole or not at all, and refuses no request meanwhile. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { tell, tellWell } from "../harness/client.ts";
import { findFreePort, makeFolder, type Options, token } from "../harness/house.ts";
import { type Program, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { beginHeld, startHeld } from "./held.ts";
import { isOpen, until } from "./shared.ts";

const newToken = `${token}-new`;

/** A gateway in a process of its own, and how its file is changed. */
async function start(context: TestContext, options: Options) {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig(options));
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  return {
    folder,
    program,
    address,
    reload(changed: Options | string) {
      writeConfig(folder, typeof changed === "string" ? changed : toConfig(changed));
      program.child.kill("SIGHUP");
    },
    statusWith: async (own: string) => (await tell(address, { on: "chat", say: "hi", token: own })).status,
  };
}

/** What it has printed since, once the text is there. */
async function saidAfter({ child }: Program, act: () => void, text: string): Promise<string> {
  let printed = "";
  const take = (piece: string) => void (printed += piece);
  child.stdout!.on("data", take);
  child.stderr!.on("data", take);
  act();
  await until(() => printed.includes(text));
  return printed;
}

test("a stream ends with what it began with, and requests after the reload see the new token and adapter", async (context) => {
  const [old, other] = [await startHeld(context, "old"), await startHeld(context, "other")];
  const { program, address, reload, statusWith } = await start(context, { gateway: { adapters: old.adapters } });
  const stream = await beginHeld(address, "chat");
  await until(() => old.received.length === 1);
  reload({ gateway: { adapters: other.adapters }, http: { auth_token: newToken } });
  await until(async () => (await statusWith(newToken)) === 200);
  assert.equal(await statusWith(token), 401);
  const heard = await tellWell(address, { on: "responses", say: "hi", stream: true, token: newToken });
  assert.equal(heard.text, "other: hi");
  assert.ok(!stream.isOver());
  old.release();
  assert.match(await stream.all, /"content":"waited".*\[DONE\]\n\n$/s);
  assert.equal(old.received.length, 1, "nothing new goes to the old one");
  assert.equal((await program.stop()).code, 0);
});

test("requests that never cease are all answered through reloads", async (context) => {
  const [old, other] = [await startHeld(context, "old"), await startHeld(context, "other")];
  const { address, reload } = await start(context, { gateway: { adapters: old.adapters } });
  const over = new AbortController();
  const texts: string[] = [];
  const asking = Array.from({ length: 2 }, async () => {
    while (!over.signal.aborted) texts.push((await tellWell(address, { on: "chat", say: "hi" })).text);
  });
  for (const next of [other, old, other]) {
    const before = next.received.length;
    reload({ gateway: { adapters: next.adapters } });
    await until(() => next.received.length > before);
  }
  over.abort();
  await Promise.all(asking);
  assert.deepEqual([...new Set(texts)].toSorted(), ["old: hi", "other: hi"]);
  assert.equal(old.received.length + other.received.length, texts.length, "each turn was asked once");
});

test("a file that is invalid, whose adapter cannot be made, or that is gone changes nothing, and the gateway says why", async (context) => {
  const model = await startHeld(context, "model");
  const options = { gateway: { adapters: model.adapters } };
  const { folder, program, reload, statusWith } = await start(context, options);
  const adapters = { mine: { type: "module", path: "/no/such/module.mjs" } };
  for (const [act, why] of [
    [() => reload({ ...options, http: { auth_token: newToken, prot: 1 } }), "gateway.http.prot"],
    [() => reload({ gateway: { adapters }, http: { auth_token: newToken } }), "/no/such/module"],
    [() => reload('{ "gateway": '), "JSON"],
    [() => (rmSync(join(folder, "portico.json")), program.child.kill("SIGHUP")), "ENOENT"],
  ] as const) {
    await saidAfter(program, act, why);
    assert.deepEqual([await statusWith(token), await statusWith(newToken)], [200, 401], why);
  }
  const { code, stderr } = await program.stop();
  assert.equal(code, 0);
  for (const line of stderr.trim().split("\n")) assert.ok(JSON.parse(line), "standard error has the log alone");
});

test("what only a restart can change is named, and nothing of that file applies", async (context) => {
  const model = await startHeld(context, "model");
  const gateway = { adapters: model.adapters };
  const [port, other] = [await findFreePort(), await findFreePort()];
  const { program, reload, statusWith } = await start(context, { gateway, http: { port } });
  const changed = { gateway, http: { port: other, auth_token: newToken } };
  await saidAfter(program, () => reload(changed), "restart can change gateway.http.port");
  assert.deepEqual([await statusWith(token), await statusWith(newToken)], [200, 401]);
  assert.ok((await isOpen(port)) && !(await isOpen(other)));
  assert.equal((await program.stop()).code, 0);
});
