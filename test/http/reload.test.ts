/** New settings for a running gateway: all of them or none, and what is running keeps what it began with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, hear, startServer, tell, tellWell } from "../harness/client.ts";
import { openGateway, operatorToken, seenBy, token, toSettings } from "../harness/house.ts";
import { beginEvents, chunk, writeEvent } from "../harness/upstream.ts";
import { chat, dial, head, hello, statusesOf } from "./raw.ts";

const other = "sk-other-0123456789abcdef";

test("a reload changes tokens, limits and endpoints' hints at once, and keeps address and sessions", async (context) => {
  const portico = await openGateway(context);
  const { address, model } = portico;
  const more = { user: "anna" };
  await tellWell(address, { on: "chat", say: "one", more });
  await portico.reload(toSettings({ http: { auth_token: other }, limits: { max_body_bytes: 300 } }));
  for (const on of endpoints) assert.equal((await tell(address, { on, say: "hi" })).status, 401);
  assert.equal((await tell(address, { on: "chat", say: "x".repeat(300), token: other })).status, 413);
  const second = await tellWell(address, { on: "responses", say: "two", token: other, more });
  assert.equal(second.headers.get("x-portico-history"), "continued");
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: one", "assistant: re: one", "user: two"]);
  const hintless = { http: { auth_token: other }, gateway: { sessions: { hints: ["header:X-Session-Id"] } } };
  await portico.reload(toSettings(hintless));
  const third = await tellWell(address, { on: "chat", say: "three", token: other, more });
  assert.equal(third.headers.get("x-portico-history"), "stateless");
});

test("a stream ends with the adapter that it began with, and the next request has the new one", async (context) => {
  const [old, fresh] = [await startServer(context), await startServer(context)];
  const portico = await openGateway(context, { gateway: { adapters: old.adapters } });
  let finish = () => {};
  old.script = (_, response) => {
    beginEvents(response);
    writeEvent(response, chunk({ role: "assistant", content: "old " }));
    finish = () => {
      for (const event of [chunk({ content: "words" }), chunk({}, "stop"), "[DONE]"]) writeEvent(response, event);
      response.end();
    };
  };
  const stream = await begin(portico.address, { on: "chat", say: "hi", stream: true });
  await hear(stream, "old ");
  await portico.reload(toSettings({ gateway: { adapters: fresh.adapters } }));
  for (const on of endpoints) {
    assert.equal((await tellWell(portico.address, { on, say: "hi", stream: true })).text, "re: hi");
  }
  assert.deepEqual([old.received.length, fresh.received.length], [1, 2]);
  const rest = hear(stream, "[DONE]");
  finish();
  assert.match(await rest, /words/);
});

test("a request keeps the settings under which it arrived, while its body is still arriving", async (context) => {
  const portico = await openGateway(context);
  const { socket, until, closed } = await dial(context, portico.address);
  const more = { connection: "close", expect: "100-continue", "x-session-id": "room" };
  socket.write(head(chat, { ...more, "content-length": hello.length }));
  await until(/100 Continue/);
  const changed = { auth_token: other, endpoints: { compat_responses: true, compat_chat: true } };
  const sessions = { hints: ["user"] };
  await portico.reload(toSettings({ http: changed, limits: { max_body_bytes: 1 }, gateway: { sessions } }));
  assert.equal((await tell(portico.address, { on: "chat", say: "hi" })).status, 401);
  socket.write(hello);
  const heard = await closed;
  assert.deepEqual(statusesOf(heard), [100, 200]);
  assert.match(heard, /^x-portico-history: new\r$/im, "its hint was read too");
});

test("a turn that began before the reload makes the next one of its session wait", async (context) => {
  const portico = await openGateway(context, { limits: { heartbeat_ms: 10 } });
  const { address, model } = portico;
  const { promise: going, resolve: goOn } = Promise.withResolvers<void>();
  model.script = async function* () {
    if (model.turns.length === 1) await going;
    yield [{ type: "text", text: "done" }];
  };
  const more = { user: "anna" };
  const first = await begin(address, { on: "chat", say: "one", stream: true, more });
  await portico.reload(toSettings({ limits: { heartbeat_ms: 10 } }));
  const second = await begin(address, { on: "chat", say: "two", stream: true, more });
  await hear(second, ": ");
  assert.equal(model.turns.length, 1);
  goOn();
  await Promise.all([hear(first, "[DONE]"), hear(second, "[DONE]")]);
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: one", "assistant: done", "user: two"]);
});

for (const [what, wrong, named] of [
  ["has an unknown key", { http: { auth_token: other, prot: 1 } }, /gateway\.http\.prot/],
  ["has a wrong type", { http: { auth_token: other }, limits: { burst: "many" } }, /gateway\.http\.limits\.burst/],
  ["has no token", { http: { auth_token: undefined }, gateway: { auth: undefined } }, /auth_token/],
  [
    "names an adapter that cannot be made",
    { http: { auth_token: other }, gateway: { adapters: { mine: { type: "module", path: "nowhere.js" } } } },
    /mine/,
  ],
  ["would move the listener to another port", { http: { auth_token: other, port: 1 } }, /gateway\.http\.port/],
  ["would move the listener to another address", { http: { auth_token: other, bind: "::1" } }, /gateway\.http\.bind/],
  ["would move the data", { http: { auth_token: other }, gateway: { data_dir: "elsewhere" } }, /gateway\.data_dir/],
] as const) {
  test(`a reload that ${what} says so, and changes nothing`, async (context) => {
    const portico = await openGateway(context);
    await assert.rejects(portico.reload(toSettings(wrong)), { message: named });
    const { address } = portico;
    assert.equal((await tell(address, { on: "chat", say: "hi", token: other })).status, 401);
    assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "re: hi");
  });
}

test("of two reloads at once the second applies", async (context) => {
  const portico = await openGateway(context);
  await Promise.all([
    portico.reload(toSettings({ http: { auth_token: other } })),
    portico.reload(toSettings({ http: { auth_token: token } })),
  ]);
  assert.equal((await tell(portico.address, { on: "chat", say: "hi", token: other })).status, 401);
  await tellWell(portico.address, { on: "chat", say: "hi" });
});

test("an endpoint that a reload switches off is refused, and the other one goes on", async (context) => {
  const portico = await openGateway(context);
  await portico.reload(toSettings({ http: { endpoints: { compat_chat: true } } }));
  const { status, error } = await tell(portico.address, { on: "responses", say: "hi" });
  assert.deepEqual([status, error?.["code"]], [404, "endpoint_disabled"]);
  await tellWell(portico.address, { on: "chat", say: "hi" });
  assert.equal((await call(portico.address, "GET", "/metrics", undefined, { token: operatorToken })).status, 200);
});
