/** Which adapter answers for a model, and which is next when it cannot: retries, fallbacks and the circuit breaker. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { call, endpoints, replyWith, type Server, startServer, tell, tellWell } from "../harness/client.ts";
import { findFreePort, makeFolder, openGateway, type Options, type Scope } from "../harness/house.ts";
import { answerJson, beginEvents, chunk, type Script, writeEvent } from "../harness/upstream.ts";
import { listModels } from "./scene.ts";

type Keys = Readonly<Record<string, unknown>>;

/** A gateway with a server behind each adapter, the first of which is the default; each answers with its name. */
async function openRoute<Name extends string>(scope: Scope, adapters: Record<Name, Keys>, options: Options = {}) {
  const servers = {} as Record<Name, Server>;
  const settings: Record<string, Keys> = {};
  for (const [name, more] of Object.entries<Keys>(adapters) as [Name, Keys][]) {
    servers[name] = await startServer(scope, more);
    servers[name].script = named(name);
    settings[name] = servers[name].adapters["model"]!;
  }
  const gateway = { adapters: settings, default_adapter: Object.keys(adapters)[0], ...options.gateway };
  const { address } = await openGateway(scope, { ...options, gateway });
  return { address, servers };
}

const named =
  (name: string): Script =>
  (received, response) =>
    (received.method === "GET" ? failWith(404) : replyWith(() => ({ content: `I am ${name}.` })))(received, response);
const failWith = (status: number, headers: Record<string, string> = {}, code: string | null = null) =>
  answerJson({ error: { message: "out of order", type: "server_error", code } }, status, headers);
const modelsAsked = ({ received }: Server) => received.map(({ json }) => (json as { model?: string }).model);

test("an exact name, then the longest prefix, then the adapter that lists it, then the default decides", async (context) => {
  const { address, servers } = await openRoute(
    context,
    { spare: { model: "house-model" }, cloud: { models: { fast: "gpt-5-mini" } }, local: {} },
    { gateway: { models: { "gpt-*": "cloud", "gpt-oss-*": "local", "gpt-oss-120b": "cloud" } } },
  );
  const asked = "gpt-5 cloud, gpt-oss-20b local, gpt-oss-120b cloud, fast cloud, house-model spare, constructor spare";
  for (const on of endpoints) {
    for (const [model, name] of asked.split(", ").map((one) => one.split(" "))) {
      const heard = await tellWell(address, { on, say: "who?", more: { model } });
      assert.deepEqual([heard.text, JSON.parse(heard.raw).model], [`I am ${name}.`, model]);
      assert.equal(heard.headers.get("x-portico-tried"), null);
    }
  }
  assert.deepEqual(modelsAsked(servers.cloud).slice(0, 3), ["gpt-5", "gpt-oss-120b", "gpt-5-mini"]);
  assert.deepEqual(modelsAsked(servers.spare).slice(0, 2), ["house-model", "house-model"]);
  assert.deepEqual((await listModels(address)).toSorted(), ["fast", "gpt-oss-120b", "house-model"]);
});

const listing = (...ids: string[]): Script =>
  answerJson({ object: "list", data: ids.map((id) => ({ id, object: "model" })) });

test("/v1/models has what the servers report where no name is configured, and a server that is down hides only its own", async (context) => {
  const { address, servers } = await openRoute(
    context,
    { main: {}, other: {} },
    { gateway: { models: { "big-*": "other" } } },
  );
  servers.main.script = failWith(500);
  servers.other.script = listing("big-one", "unreachable");
  assert.deepEqual(await listModels(address), ["big-one"]);
  assert.equal((await call(address, "GET", "/v1/models/big-one")).body.id, "big-one");
  assert.equal((await call(address, "GET", "/v1/models/unreachable")).status, 404);
});

test("a token with models may use and see only its own", async (context) => {
  const token = "sk-notes-0123456789abcdef";
  const http = { tokens: [{ name: "notes", token, models: ["one", "big-*"] }] };
  const main = { models: { one: "o", two: "t", "big-1": "b" } };
  const { address, servers } = await openRoute(context, { main }, { http });
  assert.deepEqual((await listModels(address, token)).toSorted(), ["big-1", "one"]);
  for (const on of endpoints) {
    for (const model of ["one", "big-7"]) await tellWell(address, { on, say: "hi", token, more: { model } });
    const { status, error } = await tell(address, { on, say: "hi", token, more: { model: "two" } });
    assert.deepEqual([status, error?.["type"], error?.["code"]], [403, "permission_error", "model_not_allowed"]);
  }
  assert.equal(servers.main.received.length, 4);
  await tellWell(address, { on: "chat", say: "hi", more: { model: "two" } });
});

const cut: Script = (_, response) => {
  beginEvents(response);
  writeEvent(response, chunk({ content: "half" }));
  setImmediate(() => response.socket?.destroy());
};

for (const [what, script] of [
  ["fails", failWith(500)],
  ["is overloaded", failWith(503)],
  ["limits the rate", failWith(429, { "retry-after": "30" })],
  ["rejects the gateway's key", failWith(401)],
  ["makes no sense", (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html>")],
  ["is silent", () => {}],
] as readonly (readonly [string, Script])[]) {
  test(`if a server ${what}, the fallback answers, and x-portico-tried says so`, async (context) => {
    const first = { fallback: ["second"], retries: 0, first_byte_timeout_ms: 60, total_timeout_ms: 60 };
    const { address, servers } = await openRoute(context, { first, second: { model: "other" } });
    servers.first.script = script;
    for (const [index, on] of endpoints.entries()) {
      const { text, headers } = await tellWell(address, { on, say: "hello", stream: index === 0 });
      assert.equal(text, "I am second.");
      assert.match(String(headers.get("x-portico-tried")), /^first \(\w+\)$/);
    }
    assert.deepEqual(modelsAsked(servers.second), ["other", "other"]);
  });
}

test("if a server cannot be reached, the fallbacks are asked in their order", async (context) => {
  const { address, servers } = await openRoute(context, {
    first: { base_url: `http://127.0.0.1:${await findFreePort()}`, fallback: ["third", "second"], retries: 0 },
    second: {},
    third: { retries: 0 },
  });
  servers.third.script = failWith(500);
  assert.equal((await tellWell(address, { on: "chat", say: "hello" })).text, "I am second.");
  servers.second.script = failWith(400);
  assert.equal((await tell(address, { on: "chat", say: "hello" })).status, 400);
});

test("if nobody can answer, the caller gets the first adapter's error", async (context) => {
  const first = { fallback: ["second"], retries: 0 };
  const { address, servers } = await openRoute(context, { first, second: { retries: 0 } });
  servers.first.script = failWith(401);
  servers.second.script = failWith(429, { "retry-after": "5" });
  const { status, error } = await tell(address, { on: "chat", say: "hello" });
  assert.deepEqual([status, error?.["code"]], [502, "adapter_refused"]);
});

for (const status of [400, 404]) {
  test(`an answer of ${status} is the caller's, and nobody else is asked`, async (context) => {
    const { address, servers } = await openRoute(context, { first: { fallback: ["second"] }, second: {} });
    servers.first.script = failWith(status);
    const heard = await tell(address, { on: "responses", say: "hello" });
    assert.deepEqual([heard.status, servers.first.received.length, servers.second.received.length], [status, 1, 0]);
  });
}

for (const on of endpoints) {
  test(`${on}: after the first word nobody is asked again: a cut stream has failed`, async (context) => {
    const { address, servers } = await openRoute(context, { first: { fallback: ["second"] }, second: {} });
    servers.first.script = cut;
    const heard = await tell(address, { on, say: "hello", stream: true });
    assert.equal(heard.text, "half");
    assert.ok(heard.error, heard.raw);
    assert.deepEqual([servers.first.received.length, servers.second.received.length], [1, 0]);
  });

  test(`${on}: a server that fails once is asked again, and the session has one turn`, async (context) => {
    const { address, servers } = await openRoute(context, { model: {} });
    servers.model.script = (...asked) => {
      servers.model.script = named("well again");
      return failWith(500)(...asked);
    };
    const wish = { on, stream: true, more: { user: "someone" } };
    assert.equal((await tellWell(address, { ...wish, say: "hello" })).text, "I am well again.");
    await tellWell(address, { ...wish, say: "and now?" });
    assert.deepEqual(servers.model.shown.at(-1), ["user: hello", "assistant: I am well again.", "user: and now?"]);
  });
}

for (const [what, retries, script, times] of [
  ["twice where nothing is configured", undefined, failWith(500), 3],
  ["as often as retries says", 1, failWith(503), 2],
  ["never with retries: 0", 0, failWith(500), 1],
  ["not where Retry-After asks for too long", undefined, failWith(429, { "retry-after": "30" }), 1],
  ["not without quota", undefined, failWith(429, {}, "insufficient_quota"), 1],
  ["not where it refused the key", undefined, failWith(401), 1],
] as const) {
  test(`a server that fails is asked again ${what}`, async (context) => {
    const { address, servers } = await openRoute(context, { model: retries === undefined ? {} : { retries } });
    servers.model.script = script;
    const { status, headers } = await tell(address, { on: "chat", say: "hello", stream: true });
    assert.ok(status >= 429, String(status));
    assert.equal(servers.model.received.length, times);
    if (what.includes("Retry-After")) assert.equal(headers.get("retry-after"), "30");
  });
}

for (const [what, script, times] of [
  ["failed is not run again, as it may have acted", "exit 1", 1],
  ["reports that it is overloaded is run again", `echo '{"type":"error","code":"overloaded","message":"Busy."}'`, 3],
] as const) {
  test(`a program that ${what}`, async (context) => {
    const file = join(makeFolder(context), "runs");
    const argv = ["sh", "-c", `echo run >>'${file}'; ${script}`];
    const agent = { type: "command", argv, output: "jsonl" };
    const { address } = await openGateway(context, { gateway: { adapters: { agent } } });
    await tell(address, { on: "chat", say: "hello" });
    assert.equal(readFileSync(file, "utf8"), "run\n".repeat(times));
  });
}

test("five failures in a row open the breaker: 503 with Retry-After, the fallback at once, and later it tries again", async (context) => {
  let time = Date.now();
  const { address, servers } = await openRoute(
    context,
    { first: { retries: 0 }, guarded: { retries: 0, fallback: ["second"] }, second: {} },
    { now: () => new Date(time), gateway: { models: { guarded: "guarded" } } },
  );
  const ask = (model = "any") => tell(address, { on: "chat", say: "hello", more: { model } });
  for (const name of ["first", "guarded"] as const) servers[name].script = failWith(500);
  for (let turn = 0; turn < 4; turn++) assert.equal((await ask()).status, 502);
  servers.first.script = named("first");
  assert.equal((await ask()).status, 200);
  servers.first.script = failWith(500);
  for (let turn = 0; turn < 5; turn++) {
    assert.equal((await ask()).status, 502);
    assert.equal((await ask("guarded")).text, "I am second.");
  }
  const resting = await ask();
  assert.deepEqual([resting.status, resting.error?.["code"]], [503, "overloaded"]);
  assert.match(String(resting.headers.get("retry-after")), /^[1-9]\d*$/);
  assert.equal((await ask("guarded")).text, "I am second.");
  assert.deepEqual([servers.first.received.length, servers.guarded.received.length], [10, 5]);

  time += 60_000;
  assert.equal((await ask()).status, 502);
  assert.deepEqual([(await ask()).status, servers.first.received.length], [503, 11]);
  time += 60_000;
  servers.first.script = named("first");
  assert.equal((await ask()).text, "I am first.");
});

test("refusals and rate limits do not open the breaker", async (context) => {
  const { address, servers } = await openRoute(context, { model: { retries: 0 } });
  for (const status of [400, 429]) {
    servers.model.script = failWith(status);
    for (let turn = 0; turn < 6; turn++)
      assert.equal((await tell(address, { on: "chat", say: "hello" })).status, status);
  }
  assert.equal(servers.model.received.length, 12);
});

test("what only the fallback cannot do is warned of when the fallback answers, which sees as much as fits its window", async (context) => {
  const { address, servers } = await openRoute(context, {
    first: { wire: "responses", fallback: ["second"], retries: 0 },
    second: { context_window: 400 },
  });
  servers.first.script = failWith(500);
  const more = { user: "window", tools: [{ type: "web_search" }] };
  const long = "all the words of it ".repeat(20);
  for (const say of ["one", "two", "three", "four"]) {
    const { headers } = await tellWell(address, { on: "responses", say: `${say} ${long}`, more });
    assert.equal(headers.get("x-portico-warning"), "tool web_search left out");
    if (say === "four") assert.match(String(headers.get("x-portico-context")), /^\d+ items, [1-9]\d* left out$/);
  }
  const shown = servers.second.shown.at(-1)!;
  assert.match(shown.at(-1)!, /^user: four/);
  assert.ok(shown.length < 7, `${shown.length} messages`);
});
