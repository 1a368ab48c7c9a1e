/** Routing to models over real sockets: which server is called, which is next, and what the caller learns of it. */
import assert from "node:assert/strict";
import { request as send } from "node:http";
import { test, type TestContext } from "node:test";
import { openPortico } from "../../src/index.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { answerJson, beginEvents, chunk, type Script, type ScriptedUpstream, startUpstream } from "../upstream.ts";
import { endpoints, paths, replyWith, tell, tellWell, toRequest } from "./talk.ts";

const sentences = (name: string) => replyWith(() => ({ content: `I am ${name}.` }));

/** A server for each name, which answers with its name unless it has a script. */
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

test("an exact model name, then the longest prefix, then the adapter that lists it, then the default determines the adapter", async (context) => {
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
      const result = await tellWell(address, { on, say: "who?", more: { model } });
      assert.equal(result.text, `I am ${name}.`, model);
      assert.equal(JSON.parse(result.raw).model, model);
      assert.equal(result.headers.get("x-portico-tried"), null);
    }
  }
  const once = ["gpt-5", "gpt-oss-120b", "gpt-5-mini"];
  assert.deepEqual(modelsAsked(servers.cloud), [...once, ...once]);
  assert.deepEqual(modelsAsked(servers.spare), ["house-model", "house-model"]);
});

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}, ${stream ? "streamed" : "whole"}: if a server refuses connections the next one answers, and a header says so`, async (context) => {
      const servers = await startServers(context, { first: undefined, second: undefined });
      await servers.first.close();
      const { address } = await startGateway(context, {
        default_adapter: "first",
        adapters: {
          first: toAdapter(servers.first, { fallback: ["second"], retry: { times: 0 } }),
          second: toAdapter(servers.second, { model: "other" }),
        },
      });
      const result = await tellWell(address, { on, say: "hello", stream });
      assert.equal(result.text, "I am second.");
      assert.equal(result.headers.get("x-portico-tried"), "first (adapter_error)");
      assert.deepEqual(modelsAsked(servers.second), ["other"]);
    });
  }
}

test("what only the fallback cannot support is reported when the fallback answers", async (context) => {
  const servers = await startServers(context, { first: answerJson(down, 500), second: undefined });
  const { address } = await startGateway(context, {
    default_adapter: "first",
    adapters: {
      first: toAdapter(servers.first, { wire: "responses", fallback: ["second"], ...quickly }),
      second: toAdapter(servers.second),
    },
  });
  const tools = [{ type: "web_search" }];
  const result = await tellWell(address, { on: "responses", say: "hello", more: { tools } });
  assert.equal(result.headers.get("x-portico-tried"), Array(3).fill("first (adapter_error)").join(", "));
  assert.equal(result.headers.get("x-portico-warning"), "tool web_search left out");
  assert.doesNotMatch(servers.second.received[0]!.text, /web_search/);
});

for (const on of endpoints) {
  test(`${on}: a server with a Retry-After of 30 seconds is not retried, and the caller gets the error within a second`, async (context) => {
    const { model } = await startServers(context, { model: answerJson(down, 429, { "retry-after": "30" }) });
    const { address } = await startGateway(context, { adapters: { model: toAdapter(model) } });
    const from = performance.now();
    const result = await tell(address, { on, say: "hello", stream: true });
    assert.ok(performance.now() - from < 1000);
    assert.equal(result.status, 429);
    assert.equal(result.headers.get("retry-after"), "30");
    assert.equal(result.headers.get("x-portico-tried"), "model (adapter_rate_limit)");
    assert.equal(model.received.length, 1);
  });

  test(`${on}: a server that fails and then answers is retried, and the session stores one turn`, async (context) => {
    const { model } = await startServers(context, { model: answerJson(down, 500) });
    const script = model.script;
    model.script = (received, response) => {
      model.script = sentences("well again");
      return script(received, response);
    };
    const { address } = await startGateway(context, { adapters: { model: toAdapter(model, quickly) } });
    const more = { user: "someone" };
    const result = await tellWell(address, { on, say: "hello", stream: true, more });
    assert.equal(result.text, "I am well again.");
    assert.equal(result.headers.get("x-portico-tried"), "model (adapter_error)");
    assert.equal(model.received.length, 2);
    const next = await tellWell(address, { on, say: "and now?", more });
    assert.equal(next.headers.get("x-portico-context"), "3 items");
  });

  test(`${on}: after the first word no other server is called: a cut stream has failed`, async (context) => {
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
    const result = await tell(address, { on, say: "hello", stream: true });
    assert.equal(result.text, "half");
    assert.ok(result.error, result.raw);
    assert.equal(servers.first.received.length, 1);
    assert.equal(servers.second.received.length, 0);
  });

  test(`${on}: an invalid request is reported to the caller, and no other server is called`, async (context) => {
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
    const result = await tell(address, { on, say: "hello" });
    assert.equal(result.status, 400);
    assert.equal(result.error?.["param"], "temperature");
    assert.equal(result.headers.get("x-portico-tried"), null);
    assert.equal(servers.first.received.length + servers.second.received.length, 1);
  });

  test(`${on}: a caller that disconnects between two attempts ends the turn at once, without a retry`, async (context) => {
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
    let result = await tell(address, { on, say: "next" });
    // The only slot is free as soon as the gateway has noticed that the caller disconnected.
    while (result.status === 503 && performance.now() - from < 1_000) result = await tell(address, { on, say: "next" });
    assert.equal(result.status, 200, result.raw);
    assert.equal(model.received.length, 2);
  });
}

function open(limits: Record<string, unknown> = {}) {
  return { port: 0, auth_token: token, endpoints: { compat_chat: true, compat_responses: true }, limits };
}

test("five consecutive failures open a server's circuit breaker, an answer closes it, and /readyz shows its state", async (context) => {
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

test("while a server's breaker is open, the next one answers at once", async (context) => {
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
