/** A program that opens a gateway with its own adapters and log, reloads it and closes it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tellWell } from "../harness/client.ts";
import { ConfigError, createModel, gate, makeFolder, openGateway } from "../harness/house.ts";
import { openPortico, say, toSettings, type Script } from "../harness/house.ts";

type Settings = Parameters<typeof openPortico>[0];
type Surroundings = NonNullable<Parameters<typeof openPortico>[1]>;

const quiet = { info: () => {}, error: () => {} };
const failing: Script = async function* () {
  throw new Error("out of order");
};

/** Answers with its name, and the model that it was asked for. */
const createNamed = (name: string) =>
  createModel(async function* ({ model }) {
    yield say(`${name} as ${model}`);
  }).adapter;

test("a program's own adapters are the default, for a model, and a fallback, like any other", async (context) => {
  const [main, house, spare] = [createNamed("main"), createNamed("house"), createNamed("spare")];
  const away = { type: "openai", base_url: "http://127.0.0.1:9/v1", retries: 0, fallback: ["spare"] };
  const portico = await openGateway(context, {
    given: { main, house, spare, broken: createModel(failing).adapter },
    gateway: {
      default_adapter: "main",
      models: { "house-*": "house", broken: "broken", away: "away" },
      adapters: { away },
    },
  });
  const ask = async (model: string) => (await portico.talk({ model, content: "hello" })).text();
  assert.equal(await ask("any"), "main as any");
  assert.equal(await ask("house-1"), "house as house-1");
  assert.equal(await ask("away"), "spare as away");
  await assert.rejects(ask("broken"), { code: "adapter_error" });
  const { text } = await tellWell(portico.address, { on: "chat", say: "hi", more: { model: "house-2" } });
  assert.equal(text, "house as house-2");
  assert.ok((await portico.models()).includes("scripted"));
});

test("with both endpoints off a gateway has no address, and talks", async (context) => {
  const { adapter } = createModel();
  const settings = toSettings({ http: { endpoints: {} } });
  const portico = await openPortico(settings, {
    folder: makeFolder(context),
    env: {},
    log: quiet,
    adapters: { model: adapter },
  });
  context.after(() => portico.close());
  assert.equal(portico.address, undefined);
  assert.equal(await (await portico.talk({ content: "hi" })).text(), "re: hi");
});

const { adapter: main } = createModel();
const named = (gateway: object) => ({ gateway: { auth: { token: "sk-operator-0123456789abcdef" }, ...gateway } });
const refused: readonly (readonly [what: string, settings: unknown, adapters: unknown, ...paths: string[]])[] = [
  ["settings that are no object", undefined, {}],
  ["a key that is none", { gatway: {} }, {}, "gatway"],
  ["a wrong type", named({ http: { port: "80" } }), { main }, "gateway.http.port"],
  [
    "several mistakes",
    named({ log: { level: "loud" }, http: { port: -1, auth_token: "${NONE}" } }),
    { main },
    "gateway.http.auth_token",
    "gateway.http.port",
    "gateway.log.level",
  ],
  ["a default that is no adapter", named({ default_adapter: "mian" }), { main }, "gateway.default_adapter"],
  ["two adapters and no default", named({}), { main, other: main }, "gateway.default_adapter"],
  ["one name for two adapters", named({ adapters: { main: { type: "echo" } } }), { main }, "gateway.adapters.main"],
  ["an adapter without a stream", named({}), { main: {} }, "adapters.main"],
];
for (const [what, settings, adapters, ...paths] of refused) {
  test(`a ConfigError names ${what} by path`, async (context) => {
    const given = { folder: makeFolder(context), env: {}, log: quiet, adapters } as Surroundings;
    await assert.rejects(openPortico(settings as Settings, given), (thrown) => {
      assert.ok(thrown instanceof ConfigError);
      const found = thrown.problems.map(({ path }) => path);
      for (const path of paths) assert.ok(found.includes(path), `${path} is in ${found.join(", ")}`);
      for (const { path } of thrown.problems) assert.ok(thrown.message.includes(path));
      return true;
    });
  });
}

test("a reload applies other settings to a program's turns, and invalid ones change nothing", async (context) => {
  const given = { mine: createNamed("mine"), twin: createNamed("twin") };
  const portico = await openGateway(context, { given, gateway: { default_adapter: "mine", adapters: {} } });
  const ask = async () => (await portico.talk({ model: "m", content: "hi" })).text();
  const withDefault = (default_adapter: string) => {
    return { gateway: { ...portico.settings.gateway, default_adapter } } as Settings;
  };
  await assert.rejects(portico.reload(withDefault("nobody")), ConfigError);
  assert.equal(await ask(), "mine as m");
  await portico.reload(withDefault("twin"));
  assert.equal(await ask(), "twin as m");
});

test("a gateway whose port is taken says so, and leaves its data folder to the next", async (context) => {
  const first = await openGateway(context);
  const folder = makeFolder(context);
  const port = Number(new URL(first.address).port);
  await assert.rejects(openGateway(context, { folder, http: { port } }), { code: "EADDRINUSE" });
  await openGateway(context, { folder });
});

test("closing twice is closing once: running turns end and are stored, new ones are refused", async (context) => {
  const folder = makeFolder(context);
  const released = gate();
  const begun = gate();
  const portico = await openGateway(context, {
    folder,
    async *script() {
      yield say("one ");
      begun.open();
      await released.opened;
      yield say("two");
    },
  });
  const running = tellWell(portico.address, { on: "chat", say: "hi", more: { user: "ann" } });
  await begun.opened;
  const closing = [portico.close(), portico.close()];
  await assert.rejects(portico.talk({ content: "late" }), { code: "draining" });
  released.open();
  assert.equal((await running).text, "one two");
  await Promise.all(closing);
  const next = await openGateway(context, { folder });
  const { headers } = await tellWell(next.address, { on: "chat", say: "again", more: { user: "ann" } });
  assert.equal(headers.get("x-portico-history"), "continued");
});

test("a log that throws affects nothing, and one that lacks a function is refused at once", async (context) => {
  const fail = () => {
    throw new Error("the disk is full");
  };
  const settings = toSettings({});
  for (const info of [fail, async () => fail()]) {
    const given = { folder: makeFolder(context), env: {}, adapters: { main }, log: { info, error: fail } };
    const portico = await openPortico(settings, given);
    context.after(() => portico.close());
    assert.equal(await (await portico.talk({ content: "hi" })).text(), "re: hi");
  }
  const half = { folder: makeFolder(context), env: {}, adapters: { main }, log: { info: fail } } as never;
  await assert.rejects(openPortico(settings, half), /log\.error/);
});
