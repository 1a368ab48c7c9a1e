/** What can be read without a turn: the models, whether the gateway lives, and whether it is ready. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answered, call, startServer } from "../harness/client.ts";
import { authorization, openGateway, operatorToken, shareGateway, token } from "../harness/house.ts";
import { answerJson } from "../harness/upstream.ts";

const open = shareGateway();

function idsOf({ data }: Answered["body"]): readonly string[] {
  return data.map(({ id }: { readonly id: string }) => id);
}

test("the list of models has OpenAI's shape, and each can be read by its id", async () => {
  const { address } = await open();
  const { status, body } = await call(address, "GET", "/v1/models");
  assert.deepEqual([status, body.object], [200, "list"]);
  const [model] = body.data;
  assert.deepEqual([model.id, model.object], ["scripted", "model"]);
  assert.ok(Number.isInteger(model.created));
  assert.equal(typeof model.owned_by, "string");
  assert.deepEqual((await call(address, "GET", "/v1/models/scripted")).body, model);
});

test("an unknown model is a 404 that names it", async () => {
  const { address } = await open();
  const { status, body } = await call(address, "GET", "/v1/models/nope");
  assert.deepEqual([status, body.error.code, body.error.param], [404, "model_not_found", "model"]);
  assert.match(body.error.message, /nope/);
});

test("a model's id may have slashes, as they are or encoded", async (context) => {
  const adapters = { echo: { type: "echo", models: { "vendor/one": "small" } } };
  const { address } = await openGateway(context, { gateway: { adapters } });
  for (const path of ["vendor/one", "vendor%2Fone"]) {
    assert.equal((await call(address, "GET", `/v1/models/${path}`)).body.id, "vendor/one");
  }
});

test("the models are those of the model's server, which is not asked again for each caller", async (context) => {
  const server = await startServer(context);
  server.script = answerJson({ object: "list", data: [{ id: "large", object: "model" }] });
  const { address } = await openGateway(context, { gateway: { adapters: server.adapters } });
  for (let time = 0; time < 5; time++) {
    const { body } = await call(address, "GET", "/v1/models");
    assert.deepEqual(idsOf(body), ["large"]);
  }
  assert.equal(server.received.length, 1);
});

test("an adapter that accepts any model is listed by its own model, or else by its name", async (context) => {
  for (const [more, id] of [
    [{}, "agent"],
    [{ model: "opus" }, "opus"],
  ] as const) {
    const agent = { type: "command", argv: ["true"], input: "none", ...more };
    const { address } = await openGateway(context, { gateway: { adapters: { agent } } });
    const { body } = await call(address, "GET", "/v1/models");
    assert.deepEqual(idsOf(body), [id]);
  }
});

test("a header of the list names the endpoints that the token may use", async (context) => {
  const tokens = [{ name: "chatting", token: "sk-chatting-0123456789", endpoints: ["compat_chat"] }];
  const { address } = await openGateway(context, { http: { tokens } });
  const offered = async (bearer: string) =>
    (await call(address, "GET", "/v1/models", undefined, { token: bearer })).headers.get("x-portico-endpoints");
  assert.equal(await offered(token), "/v1/chat/completions, /v1/responses");
  assert.equal(await offered("sk-chatting-0123456789"), "/v1/chat/completions");
});

test("anyone may ask whether the gateway lives and is ready", async () => {
  const { address } = await open();
  const [lives, ready] = [await fetch(`${address}/healthz`), await fetch(`${address}/readyz`)];
  assert.deepEqual([lives.status, ready.status], [200, 200]);
  assert.equal(((await lives.json()) as { status: string }).status, "ok");
  assert.equal(((await ready.json()) as { status: string }).status, "ready");
});

for (const [whom, more, isTold] of [
  ["the operator", { authorization: `Bearer ${operatorToken}` }, true],
  ["a client", { authorization }, false],
  ["who has no token", {}, false],
] as const) {
  test(`readiness ${isTold ? "names the adapters" : "names no adapter"} to ${whom}`, async (context) => {
    const given = { "secret-project": { async *stream() {} } };
    const { address } = await openGateway(context, { given, gateway: { default_adapter: "model" } });
    const answer = await fetch(`${address}/readyz`, { headers: more });
    assert.equal(answer.status, 200);
    assert.equal((await answer.text()).includes("secret-project"), isTold);
  });
}
