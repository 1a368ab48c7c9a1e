/** Deleting is real: what was said is gone from wherever it was stored and from every export, whatever became of its turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call as request, endpoints, hear, tell, tellWell, type Wish } from "../harness/client.ts";
import { placesWith, withStore } from "../harness/engine.ts";
import { call, type Gateway, gate, makeFolder, openGateway, say, type Script } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { exportArchive, operate, sessionIds, until } from "./aid.ts";

const user = "ann-of-the-garden";
const canary = "quetzalcoatlus";

/** Everything a caller can put a word into, and the model's answer repeats it. */
const full = (on: Wish["on"], more: object = {}): Wish => ({
  on,
  say: [
    { role: "system", content: `system ${canary}` },
    { role: "user", content: `question ${canary}` },
  ],
  more: { user, store: true, metadata: { note: `meta ${canary}` }, ...more },
});

const answerWithIt: Script = async function* () {
  yield [{ type: "reasoning", text: `thought ${canary}` }];
  yield say(`answer ${canary}`);
  yield call("call_1", "look", `{"at":"${canary}"}`);
};

const halfThenFail: Script = async function* () {
  yield say(`half ${canary}`);
  throw new Error("The model broke.");
};

const halfThenWait: Script = async function* (_, signal) {
  yield say(`half ${canary}`);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
};

/** What a user may leave behind, each way in which a turn can end. */
const lives: Record<string, (gateway: Gateway, on: Wish["on"]) => Promise<unknown>> = {
  "a finished turn": async ({ address }, on) => tellWell(address, full(on)),
  "a finished stream": async ({ address }, on) => tellWell(address, { ...full(on), stream: true }),
  "a turn with a key": async ({ address }, on) =>
    tellWell(address, { ...full(on), headers: { "idempotency-key": `key ${canary}` } }),
  "a turn with a key that is not stored": async ({ address }, on) =>
    tellWell(address, { ...full(on, { store: false }), headers: { "idempotency-key": `once ${canary}` } }),
  "a tool's output": async ({ address }, on) => {
    await tellWell(address, full(on));
    const output = `output ${canary}`;
    const answered =
      on === "chat"
        ? { role: "tool", tool_call_id: "call_1", content: output }
        : { type: "function_call_output", call_id: "call_1", output };
    await tellWell(address, { ...full(on), say: [answered] });
  },
  branches: async ({ address }, on) => {
    const { text } = await tellWell(address, full(on));
    for (const turn of ["one way", "another way"]) {
      const shown = [...(full(on).say as unknown[]), { role: "assistant", content: text }];
      await tellWell(address, { ...full(on), say: [...shown, { role: "user", content: `${turn} ${canary}` }] });
    }
  },
  "a second turn that failed": async ({ address, model }, on) => {
    await tellWell(address, full(on));
    model.script = halfThenFail;
    await tell(address, { ...full(on), stream: true });
  },
  "a second turn whose caller left": async ({ address, model }, on) => {
    await tellWell(address, full(on));
    model.script = halfThenWait;
    await leave(address, full(on));
  },
  "a first turn that failed": async ({ address, model }, on) => {
    model.script = halfThenFail;
    await tell(address, { ...full(on), stream: true });
  },
  "a first turn whose caller left": async ({ address, model }, on) => {
    model.script = halfThenWait;
    await leave(address, full(on));
  },
};

async function leave(address: string, wish: Wish): Promise<void> {
  const response = await begin(address, { ...wish, stream: true });
  await hear(response, canary);
  response.destroy();
}

for (const [what, live] of Object.entries(lives)) {
  for (const on of endpoints) {
    test(`${on}: after the operator has deleted a user, nothing is left of ${what}`, async (context) => {
      const gateway = await openGateway(context, { script: answerWithIt });
      await live(gateway, on);
      await deleteUser(gateway);
      await isGone(gateway);
    });
  }
}

for (const ending of ["completed", "cancelled", "failed", "running"] as const) {
  for (const isFirst of [false, true]) {
    const which = isFirst ? "that is its first" : "that is not its first";
    test(`after the operator has deleted a user, nothing is left of a ${ending} background turn ${which}`, async (context) => {
      const open = gate();
      const gateway = await openGateway(context);
      const { address, folder, model } = gateway;
      if (!isFirst) await tellWell(address, full("responses"));
      model.script = async function* () {
        yield say(`half ${canary}`);
        if (ending === "failed") throw new Error("The model broke.");
        if (ending !== "completed") await open.opened;
        yield say(`whole ${canary}`);
      };
      const { id } = await tellWell(address, full("responses", { background: true }));
      if (ending === "cancelled") await request(address, "POST", `/v1/responses/${id}/cancel`);
      if (ending === "completed" || ending === "failed") await follow(address, id);
      await deleteUser(gateway);
      open.open();
      await gateway.close();
      assert.deepEqual(await placesWith(folder, canary), []);
    });
  }
}

async function follow(address: string, id: string): Promise<void> {
  await until(async () => /completed|failed/.test((await request(address, "GET", `/v1/responses/${id}`)).body.status));
}

async function deleteUser(gateway: Gateway): Promise<void> {
  const { status, raw } = await operate(gateway, "DELETE", `sessions?user=${user}`);
  assert.equal(status, 200, raw);
}

/** Also after the gateway has ended, when nothing of its memory can reach the files any more. */
async function isGone(gateway: Gateway): Promise<void> {
  assert.deepEqual(await placesWith(gateway.folder, canary), []);
  assert.ok(!(await exportArchive(gateway)).includes(canary));
  assert.deepEqual(await sessionIds(gateway), []);
  await gateway.close();
  assert.deepEqual(await placesWith(gateway.folder, canary), []);
}

for (const on of endpoints) {
  test(`${on}: a session that is deleted while a turn of it runs stays deleted`, async (context) => {
    const [started, open] = [gate(), gate()];
    const gateway = await openGateway(context);
    await tellWell(gateway.address, full(on));
    assert.notDeepEqual(await placesWith(gateway.folder, canary), [], "it was there");
    gateway.model.script = async function* () {
      yield say(`half ${canary}`);
      started.open();
      await open.opened;
      yield say(`whole ${canary}`);
    };
    const running = tell(gateway.address, full(on));
    await started.opened;
    await deleteUser(gateway);
    open.open();
    await running;
    await isGone(gateway);
  });
}

test("a deleted response is gone from the files at once, and its followers go on without it", async (context) => {
  const gateway = await openGateway(context);
  const { address, folder, model } = gateway;
  const first = await tellWell(address, { on: "responses", say: "first" });
  const more = { previous_response_id: first.id };
  const second = await tellWell(address, { on: "responses", say: `second ${canary}`, more });
  const third = await tellWell(address, { on: "responses", say: "third", more: { previous_response_id: second.id } });
  assert.notDeepEqual(await placesWith(folder, canary), []);
  assert.equal((await request(address, "DELETE", `/v1/responses/${second.id}`)).status, 200);
  assert.deepEqual(await placesWith(folder, canary), []);
  assert.ok(!(await exportArchive(gateway)).includes(canary));
  assert.equal((await request(address, "GET", `/v1/responses/${second.id}`)).status, 404);
  await tellWell(address, { on: "responses", say: "fourth", more: { previous_response_id: third.id } });
  assert.ok(!JSON.stringify(model.turns.at(-1)?.items).includes(canary));
});

test("a deleted conversation, and an item deleted from one, are gone from the files at once", async (context) => {
  const gateway = await openGateway(context);
  const { address, folder } = gateway;
  const items = [{ role: "user", content: `kept ${canary}` }];
  const { body: conversation } = await request(address, "POST", "/v1/conversations", { items });
  const more = { conversation: conversation.id };
  await tellWell(address, { on: "responses", say: "go on, archaeopteryx", more });
  const path = `/v1/conversations/${conversation.id}`;
  const { body } = await request(address, "GET", `${path}/items?order=asc`);
  assert.notDeepEqual(await placesWith(folder, canary), []);
  assert.equal((await request(address, "DELETE", `${path}/items/${body.data[0].id}`)).status, 200);
  assert.deepEqual(await placesWith(folder, canary), []);
  assert.notDeepEqual(await placesWith(folder, "archaeopteryx"), []);
  assert.equal((await request(address, "DELETE", path)).status, 200);
  assert.deepEqual(await placesWith(folder, "archaeopteryx"), [], "its turns go with it");
});

test("a hint and a key are kept only as hashes: neither is in the files, an export or the log", async (context) => {
  const gateway = await openGateway(context);
  const { address, folder } = gateway;
  const hidden = ["user-pterodactylus", "session-pterodactylus", "key-pterodactylus"] as const;
  for (const on of endpoints) {
    const headers = { "idempotency-key": `${hidden[2]}-${on}` };
    await tellWell(address, { on, say: "hi", more: { user: hidden[0] }, headers });
    await tellWell(address, { on: "chat", say: "hi", headers: { "x-session-id": hidden[1] } });
  }
  await operate(gateway, "GET", `sessions?user=${hidden[0]}`);
  const archive = await exportArchive(gateway, `?user=${hidden[0]}`);
  const logged = JSON.stringify(gateway.logged);
  await gateway.close();
  for (const word of [hidden[1], hidden[2]]) {
    assert.deepEqual(await placesWith(folder, word), [], word);
    assert.ok(!archive.includes(word) && !logged.includes(word), word);
  }
  assert.ok(!logged.includes(hidden[0]));
});

test("`portico sessions delete --user` erases beside a running gateway", async (context) => {
  const folder = makeFolder(context);
  const gateway = await openGateway(context, { folder });
  for (const on of endpoints) await tellWell(gateway.address, full(on));
  await tellWell(gateway.address, { on: "chat", say: "somebody else", more: { user: "ben" } });
  writeConfig(folder, toConfig({ gateway: await withStore(folder, { adapters: { echo: { type: "echo" } } }) }));
  const { code, stdout, stderr } = await runProgram(context, folder, "sessions", "delete", "--user", user).ended;
  assert.equal(code, 0, stdout + stderr);
  for (const [who, history] of [
    [user, "new"],
    ["ben", "continued"],
  ] as const) {
    const heard = await tellWell(gateway.address, { on: "chat", say: "hello again", more: { user: who } });
    assert.equal(heard.headers.get("x-portico-history"), history);
  }
  // Only now: to close a file that SQLite has open in the same process releases its locks against other processes.
  assert.deepEqual(await placesWith(folder, canary), []);
});
