/** An archive moves everything to another gateway, and one that is wrong says where, and imports nothing. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { test, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { call, endpoints, tellWell } from "../harness/client.ts";
import { call as toCall, type Gateway, openGateway, operatorToken, repeatLast, say, seenBy } from "../harness/house.ts";
import { exportArchive, importArchive, operate, sessionIds } from "./aid.ts";

const user = "ann";

/** A gateway that has imported what another one exported. */
async function move(context: TestContext, here: Gateway, query = ""): Promise<Gateway> {
  const there = await openGateway(context);
  const { status, raw } = await importArchive(there, await exportArchive(here, query));
  assert.equal(status, 200, raw);
  return there;
}

const seen = ({ model }: Gateway) => seenBy(model.turns.at(-1));

for (const on of endpoints) {
  test(`${on}: a client goes on by its \`user\` or its header where the archive was imported`, async (context) => {
    const here = await openGateway(context);
    const hints = [{ more: { user } }, { headers: { "x-session-id": "garden" } }];
    for (const hint of hints) for (const say of ["one", "two"]) await tellWell(here.address, { on, say, ...hint });
    const there = await move(context, here);
    for (const hint of hints) {
      const heard = await tellWell(there.address, { on, say: "three", ...hint });
      assert.equal(heard.headers.get("x-portico-history"), "continued");
      assert.deepEqual(seen(there).slice(-3), ["user: two", "assistant: re: two", "user: three"]);
      const first = await tellWell(here.address, { on, say: "three", ...hint });
      for (const name of ["x-portico-session", "x-portico-context"]) {
        assert.equal(heard.headers.get(name), first.headers.get(name), name);
      }
    }
    assert.deepEqual((await sessionIds(there)).toSorted(), (await sessionIds(here)).toSorted());
  });
}

test("responses, their items, branches and conversations are the same where the archive was imported", async (context) => {
  const here = await openGateway(context);
  const ask = (gateway: Gateway, input: unknown, more: object = {}) =>
    tellWell(gateway.address, { on: "responses", say: input as string, more: { ...more } });
  const root = await ask(here, "root", { metadata: { note: "seed" }, instructions: "Be brief." });
  const [left, right] = [
    await ask(here, "left", { previous_response_id: root.id }),
    await ask(here, "right", { previous_response_id: root.id }),
  ];
  here.model.script = [toCall("call_1", "look", '{"at":"bed"}')];
  const tools = [{ type: "function", name: "look", parameters: {}, strict: false }];
  const calling = await ask(here, "tools", { tools, user });
  here.model.script = [say("half "), [{ type: "finish", reason: "length" }]];
  const cut = await ask(here, "long", { max_output_tokens: 16 });
  const { body: conversation } = await call(here.address, "POST", "/v1/conversations", { metadata: { bed: "rose" } });
  await ask(here, "in it", { conversation: conversation.id });

  const there = await move(context, here);
  const ids = [root, left, right, calling, cut].map(({ id }) => `/v1/responses/${id}`);
  const paths = [...ids, ...ids.map((path) => `${path}/input_items`), `/v1/conversations/${conversation.id}`];
  for (const path of [...paths, `/v1/conversations/${conversation.id}/items`]) {
    const [before, after] = [await call(here.address, "GET", path), await call(there.address, "GET", path)];
    assert.equal(after.status, 200, path);
    assert.deepEqual(after.body, before.body, path);
  }
  await ask(there, "on", { previous_response_id: left.id });
  assert.deepEqual(seen(there), ["user: root", "assistant: re: root", "user: left", "assistant: re: left", "user: on"]);
  await ask(there, [{ type: "function_call_output", call_id: "call_1", output: "moss" }], {
    previous_response_id: calling.id,
  });
  assert.deepEqual(seen(there).slice(-2), ['call call_1: look {"at":"bed"}', "output call_1: moss"]);
  const { body } = await call(there.address, "GET", `/v1/responses/${right.id}`);
  await ask(there, [
    { type: "item_reference", id: body.output[0].id },
    { role: "user", content: "and?" },
  ]);
  assert.deepEqual(seen(there), ["assistant: re: right", "user: and?"]);
});

test("what a client carries sealed, reasoning and compactions, opens where the archive was imported", async (context) => {
  const here = await openGateway(context);
  here.model.script = [[{ type: "reasoning", text: "Roots first." }], toCall("call_1", "look")];
  const include = ["reasoning.encrypted_content"];
  const { raw } = await tellWell(here.address, { on: "responses", say: "why?", more: { store: false, include } });
  here.model.script = repeatLast;
  const body = { model: "any", input: "a long talk" };
  const { body: compacted } = await call(here.address, "POST", "/v1/responses/compact", body);
  const there = await move(context, here);
  const [asked, answered] = [
    { role: "user", content: "why?" },
    { type: "function_call_output", call_id: "call_1", output: "moss" },
  ];
  const more = { store: false };
  await tellWell(there.address, { on: "responses", say: [asked, ...JSON.parse(raw).output, answered], more });
  assert.ok(seen(there).includes("reasoning: Roots first."), String(seen(there)));
  await tellWell(there.address, { on: "responses", say: [...compacted.output, asked], more });
  assert.match(String(seen(there)), /a long talk/);
});

test("to import an archive twice, or where its sessions have gone on, changes nothing", async (context) => {
  const here = await openGateway(context);
  for (const say of ["one", "two"]) await tellWell(here.address, { on: "chat", say, more: { user } });
  const archive = await exportArchive(here);
  const there = await openGateway(context);
  assert.deepEqual((await importArchive(there, archive)).body, { object: "import", sessions: 1, turns: 2 });
  await tellWell(there.address, { on: "chat", say: "three", more: { user } });
  assert.equal((await importArchive(there, archive)).status, 200);
  await tellWell(there.address, { on: "chat", say: "four", more: { user } });
  assert.deepEqual(
    seen(there).filter((line) => line.startsWith("user")),
    ["user: one", "user: two", "user: three", "user: four"],
  );
});

test("an export of one user, or of one session, has nothing of the others", async (context) => {
  const here = await openGateway(context);
  for (const who of ["ann", "ben"])
    await tellWell(here.address, { on: "chat", say: `I am ${who}.`, more: { user: who } });
  const [ofBen] = await sessionIds(here, "?user=ben");
  for (const query of ["?user=ben", `?session=${ofBen}`]) {
    const archive = await exportArchive(here, query);
    assert.ok(archive.includes("I am ben.") && !archive.includes("I am ann."));
    const there = await openGateway(context);
    assert.equal((await importArchive(there, archive)).body.sessions, 1);
    await tellWell(there.address, { on: "chat", say: "Who am I?", more: { user: "ben" } });
    assert.equal(seen(there)[0], "user: I am ben.");
  }
  for (const query of ["?user=nobody", "?session=conv_nobody"]) {
    assert.equal((await operate(here, "GET", `export${query}`)).status, 404);
  }
});

test("a wrong archive is a 400 that names line and field, and nothing of it is imported", async (context) => {
  const here = await openGateway(context);
  for (const say of ["one", "two"]) await tellWell(here.address, { on: "chat", say, more: { user } });
  const whole = await exportArchive(here);
  const lines = whole.trimEnd().split("\n");
  assert.ok(lines.length >= 5, whole);
  /** The archive with fields of one line changed. */
  const change = (line: number, fields: object) =>
    lines.with(line - 1, JSON.stringify({ ...JSON.parse(lines[line - 1]!), ...fields })).join("\n");
  const there = await openGateway(context);
  for (const [what, archive, ...named] of [
    ["no line", "", /empty|Line 1/],
    ["no JSON", lines.with(2, '{"type":').join("\n"), /Line 3/],
    ["no object", lines.with(2, "5").join("\n"), /Line 3/],
    ["no known type", change(3, { type: "sesion" }), /Line 3/, /sesion/],
    ["no end", lines.slice(0, -1).join("\n"), /cut off|end/],
    ["half a line", whole.slice(0, whole.length / 2), /Line|cut off/],
    ["no beginning", lines.slice(1).join("\n"), /Line 1/],
    ["a newer version", change(1, { version: 99 }), /Line 1/, /99/],
    ["an id of another type", change(3, { id: 5 }), /Line 3/, /id/],
    ["an id that no header can carry", change(3, { id: "resp_1\r\nset-cookie: a=b" }), /Line 3/, /id/],
    ["an empty owner", change(2, { owner: "" }), /Line 2/, /owner/],
    ["a wrong date", change(2, { createdAt: "yesterday" }), /Line 2/, /createdAt/],
    ["a turn without its session", lines.toSpliced(1, 1).join("\n"), /session/],
    ["something after the end", `${whole}${lines[1]}`, /Line \d/],
  ] as const) {
    const { status, raw, body } = await importArchive(there, archive);
    assert.equal(status, 400, `${what}: ${raw}`);
    for (const name of named) assert.match(body.error.message, name, what);
    assert.deepEqual(await sessionIds(there), [], what);
  }
  assert.match((await importArchive(there, gzipSync(whole).toString("latin1"))).raw, /Line 1/);
  assert.equal((await importArchive(there, whole, "text/csv")).status, 415);
  assert.equal((await importArchive(there, whole)).body.turns, 2, "nothing was left of the others");
});

test("an archive whose sender disconnects is not imported", async (context) => {
  const here = await openGateway(context);
  for (const say of ["one", "two"]) await tellWell(here.address, { on: "chat", say, more: { user } });
  const archive = await exportArchive(here);
  const there = await openGateway(context);
  const client = send(`${there.address}/operator/import`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${operatorToken}`,
      "content-type": "application/x-ndjson",
      expect: "100-continue",
    },
  });
  client.on("error", () => {});
  client.flushHeaders();
  await once(client, "continue");
  client.write(archive.slice(0, -20));
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.destroy();
  await closed;
  assert.equal((await importArchive(there, archive)).body.turns, 2);
});
