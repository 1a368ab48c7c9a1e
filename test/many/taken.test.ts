/** A process that was silent for some seconds and goes on: what others told of its turns, or answered in its place, stays true. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, hear, readAll, readEvents, startServer, tellWell } from "../harness/client.ts";
import { gate, makeFolder, openGateway, operatorToken, say } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { ask, newDatabase } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { beginEvents, chunk, writeEvent } from "../harness/upstream.ts";
import { ask as send, askWell, hold, keyed, look, promise } from "../outlive/outlive.ts";
import { exportArchive, until } from "../store/aid.ts";
import { openPair } from "./pair.ts";

const { skip } = need("postgres");

/** To the others, the process that runs the only running turn is dead, as after some seconds without a heartbeat. */
const silence = (store: string) => ask(store, "DELETE FROM process WHERE slot = (SELECT process FROM running)");

for (const on of endpoints) {
  test(
    `${on}: a keyed request that another process answered meanwhile is answered and stored once`,
    { skip },
    async (context) => {
      const { one, other, store } = await openPair(context);
      const held = hold();
      one.model.script = held.script;
      other.model.script = [say("from the other")];
      const wish = keyed({ on, say: "hi", more: { user: "ann" } }, "k");
      const first = send(one.address, wish);
      await held.begun;
      await silence(store);
      const second = await askWell(other.address, wish);
      assert.match(second.raw, /from the other/);
      held.go();
      const late = await first;
      assert.deepEqual([late.status, late.body.error.code], [500, "interrupted"]);
      for (const { address } of [one, other]) assert.match((await askWell(address, wish)).raw, /from the other/);
      assert.equal((await exportArchive(one)).match(/"type":"turn"/g)?.length, 1);
    },
  );

  test(
    `${on}: a keyed stream that is followed in another process has one terminal event when its process is killed`,
    { skip },
    async (context) => {
      const server = await startServer(context);
      const gateway = { adapters: server.adapters, sessions: { store: await newDatabase(context) } };
      const folder = makeFolder(context);
      writeConfig(folder, toConfig({ gateway }));
      const program = runProgram(context, folder, "start");
      const address = await program.address();
      const other = await openGateway(context, { gateway });
      server.script = (_received, response) => {
        beginEvents(response);
        writeEvent(response, chunk({ role: "assistant", content: "half" }));
      };
      const wish = keyed({ on, say: "hi", stream: true }, "k");
      await hear(await begin(address, wish), "half");
      const followed = await begin(other.address, wish);
      const before = await hear(followed, "half");
      await program.stop("SIGKILL");
      const raw = before + (await readAll(followed));
      const terminal = on === "chat" ? /^data: \{"error":\{.*"code":"interrupted"/gm : /^event: response\.failed$/gm;
      assert.equal(raw.match(terminal)?.length, 1, raw);
      assert.equal(readEvents(raw).at(-1), "[DONE]");
    },
  );
}

test("a background response that was told as interrupted never completes", { skip }, async (context) => {
  const { one, other, store } = await openPair(context);
  const held = hold();
  one.model.script = held.script;
  const id = await promise(one.address);
  await held.begun;
  const followed = look(one.address, id, "?stream=true");
  await silence(store);
  const told = await look(other.address, id);
  assert.deepEqual([told.body.status, told.body.error.code], ["failed", "server_error"]);
  // Its own process hears of it before the model goes on, and lets the model go.
  await held.aborted;
  held.go();
  assert.match((await followed).raw, /response\.failed/);
  for (const { address } of [one, other]) assert.equal((await look(address, id)).body.status, "failed");
});

test(
  "a background response that is looked at once in another process is not followed there",
  { skip },
  async (context) => {
    const { one, other, store } = await openPair(context);
    const held = hold();
    one.model.script = held.script;
    const id = await promise(one.address);
    await held.begun;
    assert.equal((await look(other.address, id)).body.status, "in_progress");
    const read = async () => (await ask(store, "SELECT heard FROM running"))[0]?.["heard"];
    const heard = await read();
    const beats = async () => (await ask(store, "SELECT min(beat) AS beat FROM process"))[0]?.["beat"];
    for (let beat = await beats(), count = 0; count < 2; count += 1) {
      await until(async () => (await beats()) !== beat);
      beat = await beats();
    }
    assert.equal(await read(), heard);
    held.go();
  },
);

test("what a process goes on to hear of a turn that was erased elsewhere is in no table", { skip }, async (context) => {
  const { one, other, store } = await openPair(context);
  const going = gate();
  one.model.script = async function* () {
    yield say("first canary");
    await going.opened;
    yield say("second canary");
    await new Promise(() => {});
  };
  const id = await promise(one.address, { user: "ann" });
  await until(async () => (await tablesWith(store)).length > 0);
  const erased = await call(other.address, "DELETE", "/operator/sessions?user=ann", undefined, {
    token: operatorToken,
  });
  assert.equal(erased.status, 200);
  going.open();
  await until(async () => (await look(one.address, id)).status === 404);
  assert.deepEqual(await tablesWith(store), []);
});

const tablesWith = (store: string) => ask(store, "SELECT 1 FROM delta WHERE text LIKE '%canary%'");

test(
  "with a bound of 0, requests one after the other on two processes are never refused",
  { skip },
  async (context) => {
    const { one, other } = await openPair(context, { limits: { max_queued_per_thread: 0 } });
    for (let count = 0; count < 20; count += 1)
      for (const { address } of [one, other]) await tellWell(address, { on: "chat", say: "hi", more: { user: "ann" } });
  },
);
