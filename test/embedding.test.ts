/** A program with its own adapters, and settings with the types of the file. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { adapterOptions } from "../src/adapters/index.ts";
import {
  type Adapter,
  type AdapterSettings,
  ConfigError,
  openPortico,
  type PorticoSettings,
  type Surroundings,
} from "../src/index.ts";
import { makeFolder, token } from "./gateway.ts";
import { say } from "./scripted.ts";

/** Answers with its name, and the model it was asked for. */
function createNamed(name: string, more: Partial<Adapter> = {}): Adapter {
  return {
    async *stream({ model }) {
      yield say(`${name} as ${model}`);
    },
    ...more,
  };
}

test("a Node that is too old is reported instead of what it lacks", async () => {
  const { versions } = process;
  Object.defineProperty(process, "versions", { value: { ...versions, node: "20.20.2" }, configurable: true });
  try {
    await assert.rejects(import("../src/stores/engine.ts?old" as string), {
      message: "Portico needs Node 24 or newer, and this is Node 20.20.2.",
    });
  } finally {
    Object.defineProperty(process, "versions", { value: versions, configurable: true });
  }
});

const http = { port: 0, auth_token: token, endpoints: { compat_chat: true } };
const sessions = { store: "memory:" };

async function open(
  context: TestContext,
  adapters: NonNullable<Surroundings["adapters"]>,
  gateway: PorticoSettings["gateway"] = {},
) {
  const folder = makeFolder(context);
  const log = { info: () => {}, error: () => {} };
  const portico = await openPortico({ gateway: { http, sessions, ...gateway } }, { folder, env: {}, log, adapters });
  context.after(() => portico.close());
  return portico;
}

const broken = createNamed("broken", {
  // oxlint-disable-next-line require-yield
  async *stream() {
    throw new Error("out of order");
  },
});

test("a gateway that could not be opened or closed properly has closed its store", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(
    join(folder, "stuck.cjs"),
    "exports.stream = () => {}; exports.close = () => { throw new Error('stuck'); };",
  );
  const adapters = { main: { type: "module", path: "stuck.cjs" } } as const;
  const settings = (port: number): PorticoSettings => ({ gateway: { http: { ...http, port }, adapters } });
  const surroundings = { folder, env: {}, log: { info: () => {}, error: () => {} } };
  const other = await open(context, { mine: createNamed("mine") });
  const taken = Number(new URL(other.address!).port);
  const failToOpen = () => assert.rejects(openPortico(settings(taken), surroundings), { code: "EADDRINUSE" });
  await failToOpen();
  const portico = await openPortico(settings(0), surroundings);
  await assert.rejects(portico.close(), { message: "stuck" });
  await failToOpen();
});

test("a turn in the background continues when the clock leaps", async (context) => {
  let time = 0;
  const [begun, leapt] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const mine: Adapter = {
    async *stream() {
      yield say("one ");
      begun.resolve();
      await leapt.promise;
      yield say("two ");
      yield say("three");
    },
  };
  const portico = await openPortico(
    { gateway: { http: { ...http, endpoints: { compat_responses: true } }, sessions } },
    {
      folder: makeFolder(context),
      env: {},
      log: { info: () => {}, error: () => {} },
      adapters: { mine },
      now: () => new Date(time),
    },
  );
  context.after(() => portico.close());
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "m", input: "count", background: true });
  const url = `${portico.address}/v1/responses`;
  const { id } = (await (await fetch(url, { method: "POST", headers, body })).json()) as { id: string };
  await begun.promise;
  time = Date.now();
  leapt.resolve();
  const events = await (await fetch(`${url}/${id}?stream=true`, { headers })).text();
  assert.match(events, /event: response.completed/);
});

suite("an adapter passed by the program", () => {
  test("answers when it is the only one, in a channel and over HTTP", async (context) => {
    const portico = await open(context, { mine: createNamed("mine") });
    assert.equal(await (await portico.talk({ content: "hi" })).text(), "mine as mine");
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "any", messages: [{ role: "user", content: "hi" }] });
    const answer = await fetch(`${portico.address}/v1/chat/completions`, { method: "POST", headers, body });
    assert.match(await answer.text(), /"content":"mine as any"/);
    const models = await fetch(`${portico.address}/v1/models`, { headers });
    assert.deepEqual(
      ((await models.json()) as { data: readonly { id: string }[] }).data.map(({ id }) => id),
      ["mine"],
    );
  });

  test("is used like any other: as the default, for a model, and as a fallback", async (context) => {
    const portico = await open(
      context,
      { main: createNamed("main"), house: createNamed("house"), spare: createNamed("spare"), broken },
      {
        default_adapter: "main",
        models: { "house-*": "house", broken: "broken", away: "away" },
        adapters: {
          echo: { type: "echo", models: { parrot: "parrot" } },
          away: { type: "openai", base_url: "http://127.0.0.1:9/v1", retry: { times: 0 }, fallback: ["spare"] },
        },
      },
    );
    const say = async (model: string) => (await portico.talk({ model, content: "hello" })).text();
    assert.equal(await say("any"), "main as any");
    assert.equal(await say("house-1"), "house as house-1");
    assert.equal(await say("parrot"), "hello");
    assert.equal(await say("away"), "spare as away");
    await assert.rejects(say("broken"), { name: "GatewayError", code: "adapter_error", message: /log has the cause/ });
  });

  test("survives a reload, and is closed once, with the gateway", async (context) => {
    let closed = 0;
    const close = async () => void closed++;
    const portico = await open(
      context,
      { mine: createNamed("mine", { close }), twin: createNamed("twin") },
      {
        default_adapter: "mine",
      },
    );
    await portico.reload({ gateway: { http, sessions, default_adapter: "twin", models: { m: "mine" } } });
    assert.equal(await (await portico.talk({ model: "x", content: "hi" })).text(), "twin as x");
    assert.equal(await (await portico.talk({ model: "m", content: "hi" })).text(), "mine as m");
    assert.equal(closed, 0);
    await Promise.all([portico.close(), portico.close()]);
    assert.equal(closed, 1);
  });

  test("is refused if the settings use its name, if it has no stream, or if it is missing", async (context) => {
    const refused = async (
      adapters: NonNullable<Surroundings["adapters"]>,
      gateway: PorticoSettings["gateway"],
      message: RegExp,
    ) =>
      assert.rejects(open(context, adapters, gateway), (thrown) => {
        assert.ok(thrown instanceof ConfigError);
        assert.match(thrown.message, message);
        return true;
      });
    const main = createNamed("main");
    const both = { adapters: { main: { type: "echo", delay_ms: -1 } } } as const;
    await refused(
      { main },
      both,
      /^gateway\.adapters\.main: .*also passed .*; .*\ngateway\.adapters\.main\.delay_ms: /,
    );
    await refused({ main: {} as Adapter }, {}, /^adapters\.main: found an object; allowed: an adapter/);
    await refused({ main }, { default_adapter: "mian" }, /^gateway\.default_adapter: .*allowed: main$/);
    await refused({ main, other: main }, {}, /^gateway\.default_adapter: missing; .* main, other$/);
    await refused({ main }, { http: { ...http, port: -1 } }, /^gateway\.http\.port: found -1/);
    const missing = { adapters: { other: { type: "given" } }, default_adapter: "main" } as const;
    await refused({ main }, missing, /^gateway\.adapters\.other\.type: no adapter of this name is passed/);
  });

  test("follows the settings", async (context) => {
    let asked = 0;
    const failing = createNamed("failing", {
      // oxlint-disable-next-line require-yield
      async *stream() {
        asked += 1;
        throw new Error("out of order");
      },
    });
    const once = { type: "given", retry: { times: 0 }, models: undefined } as const;
    const portico = await open(context, { failing }, { adapters: { failing: once } });
    await assert.rejects((await portico.talk({ content: "hi" })).text(), { code: "adapter_error" });
    assert.equal(asked, 1);
  });
});

suite("settings", () => {
  test("are checked by the compiler, and at runtime as well", async () => {
    const quiet = { env: {} };
    // @ts-expect-error: it is `gateway`.
    await assert.rejects(openPortico({ gatway: 1 }, quiet), { name: "ConfigError", message: /did you mean 'gateway'/ });
    // @ts-expect-error: a port is a number.
    await assert.rejects(openPortico({ gateway: { http: { port: "80" } } }, quiet), ConfigError);
    // @ts-expect-error: an object is needed.
    await assert.rejects(openPortico(undefined, quiet), { name: "ConfigError", message: /allowed: an object/ });
    // @ts-expect-error: there is no such level.
    await assert.rejects(openPortico({ gateway: { log: { level: "loud" } } }, quiet), ConfigError);
    // @ts-expect-error: a program needs its `argv`.
    await assert.rejects(openPortico({ gateway: { adapters: { a: { type: "command" } } } }, quiet), ConfigError);
    await assert.rejects(
      // @ts-expect-error: an echo has no key.
      openPortico({ gateway: { adapters: { a: { type: "echo", api_key: "k" } } } }, quiet),
      ConfigError,
    );
  });

  test("may refer to the environment and to files wherever those of a file may", async (context) => {
    const settings = {
      $schema: "portico.schema.json",
      gateway: {
        auth: { token: { file: "token" } },
        http: { auth_token: "${TOKEN}", tokens: [{ name: "app", token: { file: "app" }, endpoints: ["compat_chat"] }] },
        adapters: {
          main: {
            type: "openai",
            wire: "${WIRE}",
            api_key: { file: "key" },
            headers: { "x-key": { file: "key" }, "x-other": "${OTHER}" },
            retry: { times: 1 },
          },
        },
        log: { level: "${LEVEL}" },
      },
    } as const satisfies PorticoSettings;
    await assert.rejects(
      openPortico(settings, { folder: makeFolder(context), env: {} }),
      ({ problems }: ConfigError) => {
        const paths = problems.map(({ path }) => path.replace(/^gateway\./, ""));
        const references = ["auth.token", "http.auth_token", "http.tokens[0].token", "adapters.main.wire"];
        const more = ["adapters.main.api_key", "adapters.main.headers.x-key", "adapters.main.headers.x-other"];
        assert.deepEqual(
          paths,
          [...references, ...more, "log.level"],
          "each is a reference that does not resolve here",
        );
        return true;
      },
    );
  });

  test("have every type of adapter, and no other", () => {
    const known: Record<Exclude<AdapterSettings["type"], "given">, true> = {
      echo: true,
      openai: true,
      command: true,
      module: true,
      "ai-sdk": true,
    };
    assert.deepEqual(Object.keys(known), Object.keys(adapterOptions));
  });
});
