/** A gateway inside another program reloads its settings. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { openPortico, type Portico } from "../src/index.ts";
import { makeFolder, token } from "./gateway.ts";
import { tell, tellWell } from "./whole/talk.ts";

const endpoints = { compat_chat: true, compat_responses: true };

function toSettings(gateway: Record<string, unknown> = {}, http: Record<string, unknown> = {}): object {
  return {
    gateway: { http: { port: 0, auth_token: token, endpoints, ...http }, log: { level: "silent" }, ...gateway },
  };
}

async function open(context: TestContext, settings = toSettings()): Promise<Portico & { readonly address: string }> {
  const portico = await openPortico(settings, { folder: makeFolder(context), env: {} });
  context.after(() => portico.close());
  assert.ok(portico.address !== undefined);
  return { ...portico, address: portico.address };
}

test("a program reloads its gateway: sessions, gateway and address stay, and all settings apply at once", async (context) => {
  const portico = await open(context);
  const more = { user: "anna" };
  await tellWell(portico.address, { on: "chat", say: "one", more });
  await portico.reload(
    toSettings(
      { adapters: { other: { type: "echo", model: "other" } }, sessions: { max_turns_per_thread: 1 } },
      { auth_token: `${token}-new`, limits: { max_messages: 2 } },
    ),
  );
  const later = { on: "chat", token: `${token}-new`, more } as const;
  const second = await tellWell(portico.address, { ...later, say: "two" });
  assert.equal(second.headers.get("x-portico-history"), "continued");
  assert.equal(second.headers.get("x-portico-context"), "3 items");
  assert.equal((await tell(portico.address, { on: "chat", say: "three" })).status, 401);
  const third = await tellWell(portico.address, { ...later, say: "three" });
  assert.equal(third.headers.get("x-portico-context"), "3 items", "one turn of the thread was retained");
  const say = ["a", "b", "c"].map((content) => ({ role: "user", content }));
  assert.equal((await tell(portico.address, { ...later, say })).error?.["code"], "too_many_messages");
  const bounded = { adapters: { other: { type: "echo", model: "other" } }, sessions: { max_bytes_per_thread: 65_536 } };
  await portico.reload(toSettings(bounded, { auth_token: `${token}-new` }));
  for (const [word, items] of [
    ["four".repeat(7_000), 3],
    ["five".repeat(7_000), 5],
    ["six", 3],
  ] as const) {
    const { headers } = await tellWell(portico.address, { ...later, say: word });
    assert.equal(headers.get("x-portico-context"), `${items} items`, "as many turns as have room stay");
  }
  const models = await fetch(`${portico.address}/v1/models`, { headers: { authorization: `Bearer ${token}-new` } });
  assert.match(await models.text(), /"id":"other"/);
});

test("settings that cannot be reloaded, or are invalid, are reported by their keys and change nothing", async (context) => {
  const portico = await open(context);
  const other = { auth_token: `${token}-new` };
  await assert.rejects(portico.reload(toSettings({}, { ...other, prot: 1 })), /gateway\.http\.prot: unknown key/);
  for (const [gateway, http, keys] of [
    [{}, { port: 1 }, "gateway.http.port"],
    [{}, { bind: "::1" }, "gateway.http.bind"],
    [{}, { endpoints: {} }, "gateway.http.endpoints"],
    [{}, { limits: { headers_timeout_ms: 5 } }, "gateway.http.limits.headers_timeout_ms"],
    [{ sessions: { store: "memory:" } }, {}, "gateway.sessions.store"],
    [{ data_dir: "elsewhere" }, {}, "gateway.data_dir, gateway.sessions.store"],
  ] as const) {
    await assert.rejects(portico.reload(toSettings(gateway, { ...other, ...http })), {
      message: `Only a restart can change ${keys}.`,
    });
  }
  const missing = { agent: { type: "module", path: "nowhere.js" } };
  await assert.rejects(portico.reload(toSettings({ adapters: missing }, other)), /The adapter 'agent' cannot be used/);
  assert.equal((await tell(portico.address, { on: "chat", say: "hi" })).status, 200);
  assert.equal((await tell(portico.address, { on: "chat", say: "hi", token: `${token}-new` })).status, 401);
});

test("of two concurrent reloads the second one applies, and a closed gateway is not reloaded", async (context) => {
  const portico = await open(context);
  // Each takes a moment to create.
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`echo-${index}`, { type: "echo" }]));
  const first = { adapters: many, default_adapter: "echo-0" };
  await Promise.all([
    portico.reload(toSettings(first, { auth_token: `${token}-first` })),
    portico.reload(toSettings({}, { auth_token: `${token}-second` })),
  ]);
  assert.equal((await tell(portico.address, { on: "chat", say: "hi", token: `${token}-second` })).status, 200);
  await portico.close();
  await assert.rejects(portico.reload(toSettings()), /The gateway is closed\./);
});

test("an adapter of the old settings that cannot be closed is logged, and the new ones apply", async (context) => {
  const folder = makeFolder(context);
  const stuck = "exports.stream = () => {}; exports.close = () => { throw new Error('stuck'); };";
  writeFileSync(join(folder, "stuck.cjs"), stuck);
  const logged = Promise.withResolvers<string>();
  const log = { info: () => {}, error: (_fields: object, message: string) => logged.resolve(message) };
  const old = toSettings({ adapters: { main: { type: "module", path: "stuck.cjs" } } });
  const portico = await openPortico(old, { folder, env: {}, log });
  context.after(() => portico.close());
  await portico.reload(toSettings());
  assert.equal(await logged.promise, "The adapters from before the reload could not be closed.");
  assert.equal((await tellWell(portico.address!, { on: "chat", say: "hi" })).text, "hi");
});
