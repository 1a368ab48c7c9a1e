/** The way to a model over real sockets: which server is asked, which is asked next, and what the caller is told of it. */
import assert from "node:assert/strict";
import { request as send } from "node:http";
import { test, type TestContext } from "node:test";
import { openPortico } from "../../src/index.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { answerJson, beginEvents, chunk, type Script, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { endpoints, paths, replyWith, tell, tellWell, toRequest } from "./talk.ts";

const sentences = (name: string) => replyWith(() => ({ content: `I am ${name}.` }));

/** A server for each name, which says its name unless a script says otherwise. */
async function startServers<Name extends string>(
  context: TestContext,
  scripts: Readonly<Record<Name, Script | undefined>>,
): Promise<Readonly<Record<Name, ScriptedUpstream>>> {
  const entries = Object.entries<Script | undefined>(scripts).map(async ([name, script]) => {
    const server = await startUpstream(script ?? sentences(name));
    context.after(() => server.close());
    return [name, server] as const;
  });
  return Object.fromEntries(await Promise.all(entries)) as Record<Name, ScriptedUpstream>;
}

function toAdapter({ url }: ScriptedUpstream, more: Record<string, unknown> = {}) {
  return { type: "openai" as const, base_url: `${url}/v1`, ...more };
}

function modelsAsked({ received }: ScriptedUpstream): readonly unknown[] {
  return received.map(({ json }) => (json as { readonly model?: unknown }).model);
}

const down = { error: { message: "out of order", type: "server_error", code: null } };
const quickly = { retry: { base_ms: 1 } };

test("a model's whole name, then the longest beginning, then who is known for it, then the default says who answers", async (context) => {
  const servers = await startServers(context, { cloud: undefined, local: undefined, spare: undefined });
  const { address } = await startGateway(context, {
    default_adapter: "spare",
    models: { "gpt-*": "cloud", "gpt-oss-*": "local", "gpt-oss-120b": "cloud" },
    adapters: {
      cloud: toAdapter(servers.cloud, { models: { fast: "gpt-5-mini" } }),
      local: toAdapter(servers.local),
      spare: toAdapter(servers.spare, { model: "house-model" }),
    },
  });
  for (const on of endpoints) {
    for (const [model, name] of Object.entries({
      "gpt-5": "cloud",
      "gpt-oss-20b": "local",
      "gpt-oss-120b": "cloud",
      fast: "cloud",
      anything: "spare",
    })) {
      const heard = await tellWell(address, { on, say: "who?", more: { model } });
      assert.equal(heard.text, `I am ${name}.`, model);
      assert.equal(JSON.parse(heard.raw).model, model);
      assert.equal(heard.headers.get("x-portico-tried"), null);
    }
  }
  const once = ["gpt-5", "gpt-oss-120b", "gpt-5-mini"];
  assert.deepEqual(modelsAsked(servers.cloud), [...once, ...once]);
  assert.deepEqual(modelsAsked(servers.spare), ["house-model", "house-model"]);
});

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}, ${stream ? "streamed" : "whole"}: where a server refuses connections the next one answers, and a header tells`, async (context) => {
      const servers = await startServers(context, { first: undefined, second: undefined });
      await servers.first.close();
      const { address } = await startGateway(context, {
        default_adapter: "first",
        adapters: {
          first: toAdapter(servers.first, { fallback: ["second"], retry: { times: 0 } }),
          second: toAdapter(servers.second, { model: "other" }),
        },
      });
      const heard = await tellWell(address, { on, say: "hello", stream });
      assert.equal(heard.text, "I am second.");
      assert.equal(heard.headers.get("x-portico-tried"), "first (adapter_error)");
      assert.deepEqual(modelsAsked(servers.second), ["other"]);
    });
  }
}

test("what only the adapter behind the first cannot take is told when that one answers", async (context) => {
  const servers = await startServers(context, { first: answerJson(down, 500), second: undefined });
  const { address } = await startGateway(context, {
    default_adapter: "first",
    adapters: {
      first: toAdapter(servers.first, { wire: "responses", fallback: ["second"], ...quickly }),
      second: toAdapter(servers.second),
    },
  });
  const tools = [{ type: "web_search" }];
  const heard = await tellWell(address, { on: "responses", say: "hello", more: { tools } });
  assert.equal(heard.headers.get("x-portico-tried"), Array(3).fill("first (adapter_error)").join(", "));
  assert.equal(heard.headers.get("x-portico-warning"), "tool web_search left out");
  assert.doesNotMatch(servers.second.received[0]!.text, /web_search/);
});

for (const on of endpoints) {
  test(`${on}: a server that asks for 30 seconds of patience is not asked again, and the caller knows within a second`, async (context) => {
    const { model } = await startServers(context, { model: answerJson(down, 429, { "retry-after": "30" }) });
    const { address } = await startGateway(context, { adapters: { model: toAdapter(model) } });
    const from = performance.now();
    const heard = await tell(address, { on, say: "hello", stream: true });
    assert.ok(performance.now() - from < 1000);
    assert.equal(heard.status, 429);
    assert.equal(heard.headers.get("retry-after"), "30");
    assert.equal(heard.headers.get("x-portico-tried"), "model (adapter_rate_limit)");
    assert.equal(model.received.length, 1);
  });

  test(`${on}: a server that fails and then answers is asked again, and the session keeps one turn`, async (context) => {
    const { model } = await startServers(context, { model: answerJson(down, 500) });
    const script = model.script;
    model.script = (received, response) => {
      model.script = sentences("well again");
      return script(received, response);
    };
    const { address } = await startGateway(context, { adapters: { model: toAdapter(model, quickly) } });
    const more = { user: "someone" };
    const heard = await tellWell(address, { on, say: "hello", stream: true, more });
    assert.equal(heard.text, "I am well again.");
    assert.equal(heard.headers.get("x-portico-tried"), "model (adapter_error)");
    assert.equal(model.received.length, 2);
    const next = await tellWell(address, { on, say: "and now?", more });
    assert.equal(next.headers.get("x-portico-context"), "3 items");
  });

  test(`${on}: after the first word no other server is asked: a cut stream has failed`, async (context) => {
    const servers = await startServers(context, {
      first: (_, response) => {
        beginEvents(response);
        response.write(`data: ${JSON.stringify(chunk({ content: "half" }))}\n\n`, () => response.socket?.destroy());
      },
      second: undefined,
    });
    const { address } = await startGateway(context, {
      default_adapter: "first",
      adapters: {
        first: toAdapter(servers.first, { fallback: ["second"], ...quickly }),
        second: toAdapter(servers.second),
      },
    });
    const heard = await tell(address, { on, say: "hello", stream: true });
    assert.equal(heard.text, "half");
    assert.ok(heard.error, heard.raw);
    assert.equal(servers.first.received.length, 1);
    assert.equal(servers.second.received.length, 0);
  });

  test(`${on}: a request that is itself wrong is told to the caller, and nobody else is asked`, async (context) => {
    const error = {
      message: "'temperature' is too hot",
      type: "invalid_request_error",
      param: "temperature",
      code: null,
    };
    const servers = await startServers(context, { first: answerJson({ error }, 400), second: undefined });
    const { address } = await startGateway(context, {
      default_adapter: "first",
      adapters: {
        first: toAdapter(servers.first, { fallback: ["second"], ...quickly }),
        second: toAdapter(servers.second),
      },
    });
    const heard = await tell(address, { on, say: "hello" });
    assert.equal(heard.status, 400);
    assert.equal(heard.error?.["param"], "temperature");
    assert.equal(heard.headers.get("x-portico-tried"), null);
    assert.equal(servers.first.received.length + servers.second.received.length, 1);
  });

  test(`${on}: a caller who leaves between two attempts ends the turn at once, and the server is not asked again`, async (context) => {
    const { model } = await startServers(context, { model: undefined });
    const failed = Promise.withResolvers<void>();
    model.script = (_, response) => {
      response.once("close", () => failed.resolve());
      response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify(down));
    };
    const { address } = await startGateway(context, {
      http: open({ max_concurrent_turns: 1 }),
      adapters: { model: toAdapter(model, { retry: { times: 1, base_ms: 20_000, max_wait_ms: 60_000 } }) },
    });
    const { method, headers, body } = toRequest({ on, say: "hello" });
    const request = send(address + paths[on], { method, headers }).end(body);
    request.on("error", () => {});
    await failed.promise;
    // The attempt has failed at the server; a round trip later it has failed at the gateway, which now waits.
    await fetch(`${address}/healthz`);
    request.destroy();
    model.script = sentences("free");
    const from = performance.now();
    let heard = await tell(address, { on, say: "next" });
    // The only place is free as soon as the gateway has seen that the caller left.
    while (heard.status === 503 && performance.now() - from < 1_000) heard = await tell(address, { on, say: "next" });
    assert.equal(heard.status, 200, heard.raw);
    assert.equal(model.received.length, 2);
  });
}

function open(limits: Record<string, unknown> = {}) {
  return { port: 0, auth_token: token, endpoints: { compat_chat: true, compat_responses: true }, limits };
}

test("five failures in a row rest a server, and one that answers again brings it back; /readyz tells", async (context) => {
  let time = Date.now();
  const { model } = await startServers(context, { model: answerJson(down, 500) });
  const portico = await openPortico(
    {
      gateway: {
        http: open(),
        log: { level: "silent" },
        adapters: { model: toAdapter(model, { retry: { times: 0 }, breaker: { open_ms: 10_000 } }) },
      },
    },
    { folder: makeFolder(context), env: {}, now: () => new Date(time) },
  );
  context.after(() => portico.close());
  const address = String(portico.address);
  const state = async () => {
    const response = await fetch(`${address}/readyz`);
    assert.equal(response.status, 200);
    return ((await response.json()) as { adapters: { model: string } }).adapters.model;
  };
  const ask = () => tell(address, { on: "chat", say: "hello" });

  for (let times = 1; times <= 5; times++) {
    assert.equal(await state(), "closed");
    assert.equal((await ask()).status, 502);
  }
  assert.equal(await state(), "open");
  time += 4_000;
  const resting = await ask();
  assert.equal(resting.status, 503);
  assert.equal(resting.error?.["code"], "overloaded");
  assert.match(
    String(resting.error?.["message"]),
    /has failed too often, so its circuit breaker is open. Its last failure: ./,
  );
  assert.equal(resting.headers.get("retry-after"), "6");
  assert.equal(model.received.length, 5);

  time += 6_000;
  assert.equal(await state(), "half-open");
  assert.equal((await ask()).status, 502);
  assert.equal(await state(), "open");

  time += 10_000;
  model.script = sentences("back");
  assert.equal((await ask()).text, "I am back.");
  assert.equal(await state(), "closed");
  assert.equal(model.received.length, 7);
});

test("where a server rests, the next one answers at once", async (context) => {
  const servers = await startServers(context, { first: answerJson(down, 500), second: undefined });
  const { address } = await startGateway(context, {
    default_adapter: "first",
    adapters: {
      first: toAdapter(servers.first, { fallback: ["second"], retry: { times: 0 }, breaker: { failures: 1 } }),
      second: toAdapter(servers.second),
    },
  });
  const codes: unknown[] = [];
  for (let times = 0; times < 3; times++) {
    codes.push((await tellWell(address, { on: "chat", say: "hello" })).headers.get("x-portico-tried"));
  }
  assert.deepEqual(codes, ["first (adapter_error)", "first (overloaded)", "first (overloaded)"]);
  assert.equal(servers.first.received.length, 1);
});
