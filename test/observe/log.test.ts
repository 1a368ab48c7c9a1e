/** The log: one record a request with what an operator asks about it, and never what was said or a credential. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, hear, paths, startServer, tell, tellWell } from "../harness/client.ts";
import {
  gate,
  type Gateway,
  type Logged,
  makeFolder,
  openGateway,
  operatorToken,
  say,
  shareGateway,
  token,
  usage,
} from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { until } from "../store/aid.ts";

const open = shareGateway();

type Fields = Logged["fields"];

/** The records that are written from now on, as soon as there are so many; they come a moment after the answers. */
function listen({ logged }: Gateway): (count: number, message?: string) => Promise<readonly Fields[]> {
  const start = logged.length;
  return async (count, message = "request") => {
    const look = () => logged.slice(start).filter((line) => line.message === message);
    await until(() => look().length >= count);
    return look().map(({ fields }) => fields);
  };
}

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}: ${stream ? "a streamed" : "a whole"} turn is one record: owner, model, tokens, status, history, times`, async () => {
      const gateway = await open();
      const records = listen(gateway);
      gateway.model.script = [say("hi"), [{ type: "usage", usage: { ...usage, cachedTokens: 1 } }]];
      const heard = await tellWell(gateway.address, {
        on,
        say: "a secret question",
        stream,
        more: { user: `${on} ${stream}` },
      });
      const [{ requestId, session, turnId, ms, firstMs, ...record } = {}, ...others] = await records(1);
      assert.equal(others.length, 0);
      const { method, path, status, owner, model, adapter, history, inputTokens, cachedTokens, outputTokens } = record;
      assert.deepEqual(
        { method, path, status, owner, model, adapter, history, inputTokens, cachedTokens, outputTokens },
        {
          method: "POST",
          path: paths[on],
          status: 200,
          owner: "default",
          model: "any",
          adapter: "model",
          history: "new",
          inputTokens: 3,
          cachedTokens: 1,
          outputTokens: 2,
        },
      );
      assert.deepEqual(
        [requestId, session],
        ["x-request-id", "x-portico-session"].map((name) => heard.headers.get(name)),
      );
      assert.equal(String(turnId).replace(/^\w+_/, ""), heard.id.replace(/^[a-z]+[-_]/, ""));
      assert.ok(Number(firstMs) >= 0 && Number(firstMs) <= Number(ms));
    });
  }
}

test("what is said, credentials, hints and queries are never in the log", async () => {
  const gateway = await open();
  const records = listen(gateway);
  const secret = "archaeopteryx";
  gateway.model.script = [say(`answer ${secret}`)];
  await tellWell(gateway.address, { on: "chat", say: secret, more: { user: secret, metadata: { secret } } });
  await tell(gateway.address, { on: "chat", say: secret, token: `sk-${secret}` });
  await call(gateway.address, "POST", "/v1/responses", { model: 5, input: secret });
  await call(gateway.address, "GET", `/v1/models?api_key=${secret}`);
  await records(4);
  const text = JSON.stringify(gateway.logged);
  for (const word of [secret, token, operatorToken]) assert.ok(!text.includes(word), word);
});

test("a refused request is a record with its status and code, and without a token it has the caller's address", async () => {
  const gateway = await open();
  const records = listen(gateway);
  await tell(gateway.address, { on: "chat", say: "hi", token: "sk-wrong" });
  await tell(gateway.address, { on: "chat", say: [] });
  const [unknown, refused] = await records(2);
  assert.deepEqual([unknown?.["status"], unknown?.["code"], unknown?.["owner"]], [401, "invalid_api_key", undefined]);
  assert.equal(unknown?.["address"], "127.0.0.1");
  assert.deepEqual([refused?.["status"], refused?.["owner"]], [400, "default"]);
  assert.ok(typeof refused?.["code"] === "string");
});

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}: ${stream ? "a streamed" : "a whole"} turn that fails before its first word is a record, and an answer, that say who was asked`, async () => {
      const gateway = await open();
      const records = listen(gateway);
      gateway.model.script = async function* () {
        throw new Error("It broke.");
      };
      const heard = await tell(gateway.address, { on, say: "hi", stream, more: { user: `fails ${on} ${stream}` } });
      const [{ status, model, adapter, history, tried } = {}] = await records(1);
      assert.deepEqual(
        [status, model, adapter, history, tried],
        [heard.status, "any", "model", "new", heard.headers.get("x-portico-tried")],
      );
      assert.match(String(tried), /^model \(\w+\)$/);
    });
  }
}

test("a caller who leaves is a record of status 499", async () => {
  const gateway = await open();
  const records = listen(gateway);
  gateway.model.script = async function* (_, signal) {
    yield say("so far");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const response = await begin(gateway.address, { on: "chat", say: "hi", stream: true });
  await hear(response, "so far");
  response.destroy();
  const [record] = await records(1);
  assert.equal(record?.["code"], "client_closed");
});

test("a stream that fails after its start is a record with its code, and its cause is logged as an error", async () => {
  const gateway = await open();
  const records = listen(gateway);
  const before = gateway.logged.length;
  gateway.model.script = async function* () {
    yield say("half");
    throw new Error("the wire was cut");
  };
  const heard = await tell(gateway.address, { on: "responses", say: "hi", stream: true });
  const [record] = await records(1);
  assert.deepEqual([record?.["status"], typeof record?.["code"]], [200, "string"]);
  const errors = gateway.logged.slice(before).filter(({ level }) => level === "error");
  assert.equal(errors.length, 1);
  assert.match(String((errors[0]!.fields["err"] as Error).stack), /the wire was cut/);
  assert.equal(errors[0]!.fields["requestId"], heard.headers.get("x-request-id"));
});

test("a turn that goes on without its caller is a record of its own when it ends", async () => {
  const gateway = await open();
  const records = listen(gateway);
  gateway.model.script = [say("hi"), [{ type: "usage", usage }]];
  const { id } = await tellWell(gateway.address, { on: "responses", say: "hi", more: { background: true } });
  const [record] = await records(1, "turn");
  await records(1);
  assert.deepEqual([record?.["turnId"], record?.["owner"], record?.["outputTokens"]], [id, "default", 2]);
});

test("probes of a healthy gateway are not logged", async () => {
  const gateway = await open();
  const records = listen(gateway);
  for (const path of ["/healthz", "/readyz"]) assert.equal((await fetch(gateway.address + path)).status, 200);
  await call(gateway.address, "GET", "/v1/models");
  const logged = await records(1);
  assert.deepEqual(
    logged.map(({ path }) => path),
    ["/v1/models"],
  );
});

test("an authenticated call is logged with its caller's address, and with the id of what it deletes or exports", async () => {
  const gateway = await open();
  const { address } = gateway;
  gateway.model.script = [say("hi")];
  const { id, headers } = await tellWell(address, { on: "responses", say: "hi", more: { user: "ann" } });
  const session = headers.get("x-portico-session");
  const operator = { token: operatorToken };
  for (const [method, path, named, own] of [
    ["DELETE", `/v1/responses/${id}`, id, {}],
    ["GET", `/operator/export?session=${session}`, session, operator],
    ["DELETE", `/operator/sessions/${session}`, session, operator],
  ] as const) {
    const records = listen(gateway);
    assert.equal((await call(address, method, path, undefined, own)).status, 200, path);
    // What ended before may still write its own.
    const record = (await records(1)).find((fields) => fields["method"] === method);
    assert.equal(record?.["address"], "127.0.0.1", path);
    assert.ok(JSON.stringify(record).includes(named!), path);
  }
});

test("the id that a client gives its request is in the record", async () => {
  const gateway = await open();
  const records = listen(gateway);
  gateway.model.script = [say("hi")];
  await tellWell(gateway.address, { on: "chat", say: "hi", headers: { "x-client-request-id": "client-request-17" } });
  assert.match(JSON.stringify(await records(1)), /client-request-17/);
});

test("while turns cannot be answered the log is not flooded with one cause, and each request has its line", async (context) => {
  const go = gate();
  const gateway = await openGateway(context, { limits: { max_concurrent_turns: 1 } });
  gateway.model.script = async function* () {
    await go.opened;
    yield say("on");
  };
  const running = tellWell(gateway.address, { on: "chat", say: "hi" });
  await until(() => gateway.model.turns.length > 0);
  const records = listen(gateway);
  for (let count = 0; count < 20; count += 1) {
    assert.equal((await tell(gateway.address, { on: "chat", say: "hi" })).status, 503);
  }
  for (const { code } of await records(20)) assert.equal(code, "overloaded");
  assert.ok(gateway.logged.filter(({ level }) => level === "error").length <= 1);
  go.open();
  await running;
});

/** The lines of one kind of refusal, each with how many had none before it. */
const unlogged = (records: readonly Fields[], code: string) =>
  records.flatMap((record) => (record["code"] === code ? [record["unlogged"] ?? 0] : []));

test("of a flood of refusals the first ten have lines, then each time their number has doubled, and the next line says how many had none", async (context) => {
  const gateway = await openGateway(context, { limits: { requests_per_minute: 1, burst: 1 } });
  const records = listen(gateway);
  const ask = async (count: number) => {
    for (let times = 0; times < count; times += 1) await call(gateway.address, "GET", "/v1/models");
  };
  await ask(41);
  assert.deepEqual(unlogged(await records(13), "rate_limit_exceeded"), [...Array(10).fill(0), 5, 15]);
  await call(gateway.address, "GET", "/v1/models", undefined, { token: "sk-wrong" });
  const last = (await records(14)).at(-1);
  assert.deepEqual([last?.["code"], last?.["unlogged"]], ["invalid_api_key", 8]);
  const { now } = performance;
  context.mock.method(performance, "now", () => now.call(performance) + 60_000);
  await ask(10);
  assert.deepEqual(unlogged((await records(24)).slice(14), "rate_limit_exceeded"), Array(10).fill(0));
});

test("refusals are counted by their caller, and a flood from everywhere fills neither memory nor log", async (context) => {
  const gateway = await openGateway(context, { http: { trusted_proxies: ["127.0.0.1"] } });
  const records = listen(gateway);
  for (let caller = 0; caller < 200; caller += 1)
    await tell(gateway.address, {
      on: "chat",
      say: "hi",
      token: "sk-wrong",
      headers: { "x-forwarded-for": `198.51.100.${caller}` },
    });
  await call(gateway.address, "GET", "/v1/models");
  const logged = await records(114);
  assert.equal(unlogged(logged, "invalid_api_key").length, 100 + 10 + 3);
  assert.equal(logged.at(-1)?.["unlogged"], 36);
});

test("`log.level` drops what is below it: info has requests, error only failures, silent nothing", async (context) => {
  const server = await startServer(context, { retries: 0 });
  const { script } = server;
  server.script = (received, response) =>
    received.text.includes("break") ? void response.socket?.destroy() : script(received, response);
  await Promise.all(
    (["info", "error", "silent"] as const).map(async (level) => {
      const folder = makeFolder(context);
      const config = toConfig({ gateway: { adapters: server.adapters, log: { level } } });
      const program = runProgram(context, folder, "start", "--config", writeConfig(folder, config));
      const address = await program.address();
      await tellWell(address, { on: "chat", say: "hi" });
      assert.equal((await tell(address, { on: "chat", say: "break" })).status, 502);
      const { stderr } = await program.stop();
      const levels = stderr
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line).level);
      const wanted = { info: [30, 50], error: [50], silent: [] }[level];
      assert.deepEqual([...new Set(levels)].toSorted(), wanted, stderr);
    }),
  );
});
