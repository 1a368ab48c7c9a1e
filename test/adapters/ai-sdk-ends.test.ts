/** Packages behind the ai-sdk adapter: how they are found, what their failures become, and what never leaves. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { tell, tellWell } from "../harness/client.ts";
import { endAfter, makeFolder, openGateway } from "../harness/house.ts";
import { answerJson, startUpstream } from "../harness/upstream.ts";
import { byName, share, whyNot } from "./scene.ts";
import { anthropic, answerStream, apiKey, compatible, google, toAdapter } from "./wires.ts";

const model = (body: string, version = "v4") => `{ specificationVersion: "${version}", provider: "p.chat", ${body} }`;
const stream = (...parts: readonly string[]) =>
  `doStream: async () => ({ stream: new ReadableStream({ start(it) { for (const part of [${parts.join(", ")}]) it.enqueue(part); it.close(); } }) })`;
const word = '{ type: "text-delta", id: "1", delta: "Hi" }';
const finish =
  '{ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: { inputTokens: { total: 3 }, outputTokens: { total: 2 } } }';
const asked = model('doStream: async () => { throw new Error("asked"); }');

/** Packages that are installed beside the config file. */
const packages = {
  house: `export const createHouse = () => () => (${model(stream(word, finish))}); export const createHome = createHouse;`,
  made: `export const createMade = () => ({ languageModel: () => (${model(stream(word, finish))}) });`,
  "house-v9": `export const createHouse = () => () => (${model(stream(word, finish), "v9")});`,
  unready: `export function createUnready() { throw new Error("no credentials"); }`,
  pair: `export const createOne = () => () => (${asked}); export const createTwo = () => () => (${asked});`,
  none: "export const makeOdd = () => ({});",
  odd: `export const createOdd = () => (name) => (${model("doStream: async () => ({})")});`,
  broken: `export const createBroken = () => () => (${model(stream(word, "null", word, finish))});`,
  mute: `export const createMute = () => () => (${model(stream())});`,
  unfinished: `export const createUnfinished = () => () => (${model(stream(word))});`,
  uncounted: `export const createUncounted = () => () => (${model(stream(word, '{ type: "finish", finishReason: { unified: "stop" } }'))});`,
};

const open = share(async (scope) => {
  const folder = makeFolder(scope);
  for (const [name, source] of Object.entries(packages)) {
    const home = join(folder, "node_modules", name);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "package.json"), JSON.stringify({ name, type: "module", exports: "./index.js" }));
    writeFileSync(join(home, "index.js"), source);
  }
  const servers = await Promise.all([startUpstream(), startUpstream()]);
  const gone = await startUpstream();
  await gone.close();
  for (const server of servers) endAfter(scope, () => server.close());
  const [server, elsewhere] = servers;
  const more = { retries: 0, options: { headers: { "x-house": "Bearer secret-header-1" } } };
  const adapters = {
    ...Object.fromEntries(Object.keys(packages).map((name) => [name, { type: "ai-sdk", package: name, retries: 0 }])),
    chosen: { type: "ai-sdk", package: "pair", provider: "createTwo", retries: 0 },
    anthropic: toAdapter(anthropic, server.url, more),
    google: toAdapter(google, server.url, more),
    compatible: toAdapter(compatible, server.url, more),
    gone: toAdapter(anthropic, gone.url, more),
  };
  const gateway = await openGateway(scope, { folder, gateway: { adapters, ...byName(Object.keys(adapters)) } });
  return { ...gateway, server, elsewhere, gonePort: gone.port };
});

async function ask(name: string, stream = false) {
  return tell((await open()).address, { on: "chat", say: "Hello", stream, more: { model: name } });
}

for (const name of ["house", "made", "uncounted"]) {
  test(`the package ${name} beside the config file answers`, async () => {
    const { text, raw } = await ask(name);
    assert.equal(text, "Hi", raw);
    if (name !== "uncounted") assert.equal(JSON.parse(raw).usage.total_tokens, 5);
  });
}

for (const [name, code, why] of [
  ["house-v9", "adapter_error", /v9/],
  ["pair", "adapter_error", /createOne.*createTwo/],
  ["chosen", "adapter_error", /asked/],
  ["none", "adapter_error", /'none'/],
  ["unready", "adapter_error", /no credentials/],
  ["odd", "adapter_error", /./],
  ["mute", "adapter_protocol", /./],
  ["broken", "adapter_protocol", /./],
  ["unfinished", "adapter_protocol", /./],
] as const) {
  test(`the package ${name} fails with ${code}`, async () => {
    const { status, error } = await ask(name);
    assert.deepEqual([status, error?.["code"]], [502, code]);
    assert.match(String(error?.["message"]), why);
    if (name === "broken" || name === "unfinished") assert.equal((await ask(name, true)).text, "Hi");
  });
}

test("a gateway does not start without a package, and says how to install it", async (context) => {
  const options = { gateway: { adapters: { some: { type: "ai-sdk", package: "@ai-sdk/nowhere" } } } };
  assert.match((await whyNot(options, makeFolder(context))).message, /npm i @ai-sdk\/nowhere/);
});

const wires = { anthropic, google, compatible } as const;
const wrongKey = `Wrong key ${apiKey}, wrong header secret-header-1`;

for (const [what, name, status, message, told, code] of [
  ["a rate limit", "anthropic", 429, "Slow down.", 429, /rate_limit/],
  ["an unknown model", "google", 404, "models/x is not found", 404, /not_found/i],
  ["a wrong key", "anthropic", 401, wrongKey, 502, /^adapter_refused$/],
  ["a failure that shows the key", "google", 500, wrongKey, 502, /./],
] as const) {
  test(`${name}: ${what} keeps its meaning, and no secret is in it`, async () => {
    const { server, logged } = await open();
    server.script = answerJson(wires[name].refuse(status, message), status, { "retry-after": "7" });
    const { error, headers, raw, ...heard } = await ask(name);
    assert.equal(heard.status, told, raw);
    assert.match(String(error?.["code"]), code);
    if (message !== wrongKey) assert.equal(error?.["message"], message);
    assert.doesNotMatch(raw + inspect(logged.slice(-3), { depth: Infinity }), /secret-header-1|sk-very-secret/);
    if (told === 429) assert.equal(headers.get("retry-after"), "7");
  });
}

const tooLong = { error: { message: "Too long.", type: "invalid_request_error", code: "context_length_exceeded" } };
for (const [what, name, script, status, code] of [
  ["an overload in its stream", "anthropic", answerStream(anthropic.fail(529, "Overloaded")), 503, /^overloaded/],
  ["too long a conversation", "compatible", answerJson(tooLong, 400), 400, /^context_length_exceeded$/],
  ["a web page", "google", answerPage, 502, /^adapter_protocol$/],
] as const) {
  test(`${name}: ${what} has its own code`, async () => {
    const { server } = await open();
    server.script = script;
    const { error, ...heard } = await ask(name);
    assert.equal(heard.status, status);
    assert.match(String(error?.["code"]), code);
  });
}

function answerPage(_: unknown, response: ServerResponse): void {
  response.writeHead(404, { "content-type": "text/html" }).end("<html>No such page</html>");
}

for (const name of Object.keys(wires)) {
  test(`${name}: a redirect is refused, so that the key goes to no other server`, async () => {
    const { server, elsewhere } = await open();
    server.script = answerJson({}, 307, { location: `${elsewhere.url}/v1` });
    const { status, error } = await ask(name);
    assert.deepEqual([status, error?.["code"]], [502, "adapter_protocol"]);
    assert.deepEqual(elsewhere.received, []);
  });
}

for (const [name, wire] of Object.entries(wires)) {
  test(`${name}: a stream that ends or breaks before its end is a failure, never a shorter answer`, async () => {
    const { server, address } = await open();
    const half = wire.begin() + wire.say(["Hel"]);
    for (const script of [
      answerStream(half),
      (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(half, () => response.destroy());
      },
    ]) {
      server.script = script;
      const cut = await ask(name, true);
      assert.equal(cut.text, "Hel");
      assert.ok(cut.error, cut.raw);
    }
    server.script = answerStream(half, wire.end("stop"));
    await tellWell(address, { on: "chat", say: "again", more: { model: name } });
  });
}

test("a server that refuses connections is named by its address", async () => {
  const { gonePort } = await open();
  const { status, error } = await ask("gone");
  assert.deepEqual([status, error?.["code"]], [502, "adapter_error"]);
  assert.match(String(error?.["message"]), new RegExp(`127\\.0\\.0\\.1:${gonePort}`));
});
