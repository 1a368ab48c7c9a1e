/** Where a request goes and what goes with it: paths, names of models, headers, sockets, proxies, traces. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { endAfter, makeFolder, openGateway } from "../harness/house.ts";
import { answerJson, startUpstream } from "../harness/upstream.ts";
import { apiKey, ask, listen, openScene, says, shareScene, ways } from "./scene.ts";

const open = shareScene();
const deployment = "/openai/deployments/gpt-5";
const version = "?api-version=2025-04-01";

/** [the base URL behind the server's address, the wire, the path that is asked]. */
const addresses = [
  ["", "chat", "/chat/completions"],
  ["/v1/", "chat", "/v1/chat/completions"],
  ["/openai/v1", "responses", "/openai/v1/responses"],
  [deployment + version, "chat", `${deployment}/chat/completions${version}`],
  [deployment + version, "responses", `${deployment}/responses${version}`],
] as const;

test("a base URL keeps its path and its query, as Groq and Azure have them", async (context) => {
  const upstream = await startUpstream(says("fine"));
  endAfter(context, () => upstream.close());
  const adapters = addresses.map(([behind, wire, path]) => [path, { wire, base_url: upstream.url + behind }]);
  const scene = await openScene(context, Object.fromEntries(adapters));
  for (const [, , path] of addresses) {
    assert.equal((await listen(scene, { on: "chat", model: path })).text, "fine");
    assert.deepEqual([upstream.received.at(-1)?.method, upstream.received.at(-1)?.path], ["POST", path]);
  }
});

test("a server gets the adapter's key and headers, which count more than ours, and none of the caller's", async (context) => {
  const headers = { "api-key": "k", "User-Agent": "house", authorization: "Basic abc" };
  const scene = await openScene(context, { own: { headers } });
  const sent = { "x-secret": "caller", "openai-organization": "caller", cookie: "a=1" };
  for (const way of ways) {
    await ask(scene, { ...way, model: "chat", headers: sent });
    const plain = scene.last().headers;
    assert.deepEqual([plain.authorization, plain["content-type"]], [`Bearer ${apiKey}`, "application/json"]);
    for (const name of Object.keys(sent)) assert.equal(plain[name], undefined, name);
    await ask(scene, { ...way, model: "own", headers: sent });
    const own = scene.last().headers;
    assert.deepEqual([own["api-key"], own["user-agent"], own.authorization], ["k", "house", "Basic abc"]);
  }
});

test("a model is asked for as the adapter maps it, by its own, or by the caller's name, which is echoed", async (context) => {
  const named = await openScene(context, { chat: { model: "qwen3:8b", models: { fast: "gpt-5-mini" } } });
  for (const [scene, asked, expected] of [
    [await open(), "gpt-any", "gpt-any"],
    [named, "gpt-any", "qwen3:8b"],
    [named, "fast", "gpt-5-mini"],
  ] as const) {
    for (const way of ways) {
      const { raw } = await ask(scene, { ...way, model: asked });
      assert.equal((scene.last().json as { model: string }).model, expected);
      assert.ok(raw.includes(`"model":"${asked}"`), raw);
      assert.ok(asked === expected || !raw.includes(expected));
    }
  }
});

test("a server on a unix socket is one like any other, with a path of its own", async (context) => {
  const upstream = await startUpstream(says("over a socket"), join(makeFolder(context), "model.sock"));
  endAfter(context, () => upstream.close());
  const scene = await openScene(context, { socket: { base_url: `${upstream.url}:/v1` } });
  for (const way of ways) assert.equal((await listen(scene, { ...way, model: "socket" })).text, "over a socket");
  assert.equal(upstream.received[0]?.path, "/v1/chat/completions");
});

test("a proxy carries an adapter's requests, and is named where it makes no tunnel for encrypted ones", async (context) => {
  const proxy = await startUpstream(says("over the proxy"));
  endAfter(context, () => proxy.close());
  const scene = await openScene(context, {
    open: { base_url: "http://model.test/v1", proxy: proxy.url },
    encrypted: { base_url: "https://model.test/v1", proxy: proxy.url },
  });
  for (const way of ways) {
    assert.equal((await listen(scene, { ...way, model: "open" })).text, "over the proxy");
    assert.equal(proxy.received.at(-1)?.path, "http://model.test/v1/chat/completions");
  }
  const { status, error } = await ask(scene, { on: "chat", model: "encrypted" });
  assert.deepEqual([status, error?.["code"]], [502, "adapter_error"]);
  assert.match(String(error?.["message"]), /proxy/);
});

test("a redirect is not followed, so that no key reaches another server", async (context) => {
  const scene = await openScene(context);
  const other = await startUpstream(says("stolen"));
  endAfter(context, () => other.close());
  for (const status of [301, 302, 307, 308]) {
    const headers = { location: `${other.url}/v1/chat/completions` };
    scene.plays((_, response) => void response.writeHead(status, headers).end());
    const heard = await ask(scene, { on: "chat", model: "chat" });
    assert.deepEqual([heard.status, heard.error?.["code"]], [502, "adapter_protocol"]);
  }
  assert.equal(other.received.length, 0);
});

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
const malformed = ["", "00-x", traceparent.replace(traceId, "0".repeat(32)), `ff${traceparent.slice(2)}`];

test("the trace that a request is part of is passed on; a malformed one is not", async () => {
  const scene = await open();
  for (const way of ways) {
    await ask(scene, { ...way, model: "chat", headers: { traceparent, tracestate: "vendor=1" } });
    const { headers } = scene.last();
    assert.ok(String(headers["traceparent"]).includes(traceId));
    assert.equal(headers["tracestate"], "vendor=1");
  }
  for (const wrong of malformed) {
    await ask(scene, { on: "chat", model: "chat", headers: { traceparent: wrong } });
    assert.notEqual(scene.last().headers["traceparent"], wrong);
  }
});

test("a background turn asks the server for a stream, so that no total timeout applies", async () => {
  const scene = await open();
  for (const model of ["chat", "responses"]) {
    scene.plays(says("fine"));
    const body = { model, input: "hi", background: true };
    const { id } = (await call(scene.address, "POST", "/v1/responses", body)).body;
    const followed = await call(scene.address, "GET", `/v1/responses/${id}?stream=true`);
    assert.match(followed.raw, /event: response\.completed/);
    assert.equal((scene.last().json as { stream?: boolean }).stream, true);
  }
});

test("/v1/models lists what the server lists, with or without an object around it", async (context) => {
  for (const list of [{ object: "list", data: [{ id: "qwen" }, {}, null] }, [{ id: "qwen" }]]) {
    const upstream = await startUpstream(answerJson(list));
    endAfter(context, () => upstream.close());
    const adapters = { model: { type: "openai", base_url: `${upstream.url}/v1`, api_key: apiKey } };
    const { address } = await openGateway(context, { gateway: { adapters } });
    const { body } = await call(address, "GET", "/v1/models");
    assert.deepEqual([body.data.length, body.data[0].id], [1, "qwen"]);
    const [{ path, headers } = {}] = upstream.received;
    assert.deepEqual([path, headers?.authorization], ["/v1/models", `Bearer ${apiKey}`]);
  }
});

test("input tokens are counted by a server that can, and estimated for others", async () => {
  const scene = await open();
  const count = async (model: string): Promise<number> =>
    (await call(scene.address, "POST", "/v1/responses/input_tokens", { model, input: "hi" })).body.input_tokens;
  scene.plays(answerJson({ object: "response.input_tokens", input_tokens: 4711 }));
  assert.equal(await count("responses"), 4711);
  assert.equal(scene.last().path, "/v1/responses/input_tokens");
  scene.plays(answerJson({ detail: "Not Found" }, 404));
  for (const model of ["responses", "chat"]) assert.ok((await count(model)) > 0);
});
