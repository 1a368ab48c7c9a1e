/** Named tokens: what each opens, until when, for whom, and which models it may use. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type Answered, call, paths, startServer, tell, tellWell } from "../harness/client.ts";
import { openGateway, shareGateway, token as unnamed } from "../harness/house.ts";

const expiry = "2030-01-31T00:00:00Z";
let time = new Date("2030-01-30T00:00:00Z");
const key = (name: string) => `sk-${name}-0123456789abcdef`;
const adapters = { echo: { type: "echo", models: { small: "small", "gpt-5": "gpt-5", large: "large" } } };

const tokens = [
  { name: "digested", sha256: createHash("sha256").update(key("digested")).digest("hex") },
  { name: "ageing", token: key("ageing"), expires_at: expiry },
  { name: "chatting", token: key("chatting"), endpoints: ["compat_chat"] },
  { name: "responding", token: key("responding"), endpoints: ["compat_responses"] },
  { name: "scraping", token: key("scraping"), endpoints: ["metrics"] },
  { name: "rotating", token: key("old") },
  { name: "rotating", token: key("new") },
  { name: "limited", token: key("limited"), models: ["small", "gpt-*"] },
];
const open = shareGateway({ http: { tokens }, gateway: { adapters }, now: () => time });

test("a token is accepted whose digest alone is configured, and the digest itself is no token", async () => {
  const { address } = await open();
  await tellWell(address, { on: "chat", say: "hi", token: key("digested") });
  const { status } = await tell(address, { on: "chat", say: "hi", token: tokens[0]!.sha256! });
  assert.equal(status, 401);
});

test("a token is refused from the moment at which it expires, and the answer says that it has expired", async () => {
  const { address } = await open();
  const ask = () => tell(address, { on: "chat", say: "hi", token: key("ageing") });
  time = new Date(Date.parse(expiry) - 1);
  assert.equal((await ask()).status, 200);
  time = new Date(expiry);
  const { status, error } = await ask();
  assert.deepEqual([status, error?.["code"]], [401, "invalid_api_key"]);
  assert.match(String(error?.["message"]), /expired/);
});

for (const [name, on, status] of [
  ["chatting", "chat", 200],
  ["chatting", "responses", 403],
  ["responding", "chat", 403],
  ["responding", "responses", 200],
  ["scraping", "chat", 403],
  ["scraping", "responses", 403],
] as const) {
  test(`a token that is ${name} is answered with ${status} by ${paths[on]}`, async () => {
    const { address } = await open();
    const heard = await tell(address, { on, say: "hi", token: key(name) });
    assert.equal(heard.status, status, heard.raw);
    if (status === 200) return;
    assert.deepEqual([heard.error?.["type"], heard.error?.["code"]], ["permission_error", "endpoint_not_allowed"]);
  });
}

for (const [name, path, status] of [
  ["chatting", "/v1/models", 200],
  ["responding", "/v1/models", 200],
  ["chatting", "/v1/conversations/conv_x", 403],
  ["responding", "/v1/conversations/conv_x", 404],
  ["scraping", "/metrics", 200],
  ["scraping", "/v1/models", 403],
  ["chatting", "/metrics", 403],
] as const) {
  test(`a token that is ${name} is answered with ${status} at ${path}`, async () => {
    const { address } = await open();
    assert.equal((await call(address, "GET", path, undefined, { token: key(name) })).status, status);
  });
}

test("two tokens of one name are one owner, and any other name does not see what it owns", async () => {
  const { address } = await open();
  const { id } = await tellWell(address, { on: "responses", say: "mine", token: key("old") });
  const path = `${paths.responses}/${id}`;
  assert.equal((await call(address, "GET", path, undefined, { token: key("new") })).status, 200);
  const ask = (wanted: string, token: string) =>
    call(address, "GET", `${paths.responses}/${wanted}`, undefined, { token });
  for (const other of [key("digested"), unnamed]) {
    const [foreign, unknown] = [await ask(id, other), await ask("resp_unknown", other)];
    assert.deepEqual([foreign.status, unknown.status], [404, 404]);
    assert.equal(foreign.raw.replaceAll(id, "resp_unknown"), unknown.raw, "it does not exist for them");
  }
});

test("the same hint of two owners is two sessions", async () => {
  const { address } = await open();
  const seen = async (token: string) =>
    (await tellWell(address, { on: "chat", say: "hi", token, more: { user: "shared" } })).headers;
  const [first, other, again] = [await seen(key("old")), await seen(key("digested")), await seen(key("new"))];
  assert.deepEqual(
    [first, other, again].map((headers) => headers.get("x-portico-history")),
    ["new", "new", "continued"],
  );
  assert.equal(first.get("x-portico-session"), again.get("x-portico-session"));
  assert.notEqual(first.get("x-portico-session"), other.get("x-portico-session"));
});

const messages = [{ role: "user", content: "hi" }];
const input = "hi";
const image = { type: "image_generation", model: "large" };
for (const [path, body, param] of [
  ["/v1/chat/completions", { messages }, "model"],
  ["/v1/chat/completions", { messages, stream: true }, "model"],
  ["/v1/responses", { input }, "model"],
  ["/v1/responses", { input, stream: true }, "model"],
  ["/v1/responses", { input, background: true }, "model"],
  ["/v1/responses/input_tokens", { input }, "model"],
  ["/v1/responses/compact", { input }, "model"],
  ["/openai/deployments/large/chat/completions", { messages, model: "small" }, "model"],
  ["/v1/chat/completions", { messages, model: "small", models: ["gpt-5", "large"] }, "models[1]"],
  ["/v1/chat/completions", { messages, model: "small", fallbacks: ["gpt-5", "large"] }, "fallbacks[1]"],
  ["/v1/responses", { input, model: "small", tools: [image] }, "tools[0].model"],
] as const) {
  test(`a token is refused a model that it may not use: ${path} ${JSON.stringify(body)}`, async () => {
    const { address } = await open();
    const ask = (model: string, token = key("limited")) => call(address, "POST", path, { model, ...body }, { token });
    const refused = await ask("large");
    const { type, code, param: named, message } = refused.body.error;
    assert.deepEqual(
      [refused.status, type, code, named],
      [403, "permission_error", "model_not_allowed", param],
      refused.raw,
    );
    assert.match(message, /large.*small.*gpt-\*/, "it says what it may use");
    assert.equal((await ask("large", key("digested"))).status, 200);
    if (!("model" in body)) for (const model of ["small", "gpt-5"]) assert.equal((await ask(model)).status, 200);
  });
}

test("a token is shown only the models that it may use", async () => {
  const { address } = await open();
  const ask = (path: string, token: string) => call(address, "GET", path, undefined, { token });
  const idsOf = ({ body }: Answered) => body.data.map(({ id }: { readonly id: string }) => id).toSorted();
  assert.deepEqual(idsOf(await ask("/v1/models", key("limited"))), ["gpt-5", "small"]);
  assert.deepEqual(idsOf(await ask("/v1/models", key("digested"))), ["gpt-5", "large", "small"]);
  assert.equal((await ask("/v1/models/gpt-5", key("limited"))).status, 200);
  const [hidden, unknown] = [
    await ask("/v1/models/large", key("limited")),
    await ask("/v1/models/huge", key("limited")),
  ];
  assert.deepEqual([hidden.status, hidden.body.error.code], [404, "model_not_found"]);
  assert.equal(hidden.raw, unknown.raw.replace("huge", "large"));
});

test("a refused model is not asked, and a fallback needs no permission", async (context) => {
  const [main, spare] = [await startServer(context, { retries: 0 }), await startServer(context, { model: "large" })];
  main.script = (_, response) => void response.writeHead(500).end();
  const both = { main: { ...main.adapters["model"], fallback: ["spare"] }, spare: spare.adapters["model"] };
  const { address } = await openGateway(context, {
    gateway: { adapters: both, default_adapter: "main" },
    http: { tokens },
  });
  const ask = (model: string) => call(address, "POST", paths.chat, { model, messages }, { token: key("limited") });
  assert.equal((await ask("large")).status, 403);
  assert.equal(main.received.length + spare.received.length, 0);
  assert.equal((await ask("small")).status, 200);
  assert.equal((spare.received[0]!.json as { readonly model: string }).model, "large");
});
