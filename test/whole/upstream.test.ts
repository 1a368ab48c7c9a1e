/** Between a caller and a model over real sockets: disconnects, stalls and failures, and what the other side sees. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { startGateway } from "../gateway.ts";
import { answerEvents, answerJson, beginEvents, chunk, type Script, startUpstream, writeEvent } from "../upstream.ts";
import {
  hear,
  endpoints,
  type Endpoint,
  paths,
  replyWith,
  startModel,
  tell,
  tellWell,
  toRequest,
  type Wish,
} from "./talk.ts";
import { startStopwatch } from "../stopwatch.ts";

const kinds = [
  { stream: true, kind: "streamed" },
  { stream: false, kind: "whole" },
] as const;

/** A model whose answers the test writes by hand, and a gateway in front of it. */
async function startPair(context: TestContext, script: Script, limits: Record<string, unknown> = {}) {
  const upstream = await startUpstream(script);
  context.after(() => upstream.close());
  const endpoints = { compat_chat: true, compat_responses: true };
  const gateway = await startGateway(context, {
    http: { port: 0, auth_token: "sk-gateway-0123456789abcdef", endpoints, limits },
    adapters: {
      model: { type: "openai", base_url: `${upstream.url}/v1`, retry: { times: 0 }, breaker: { failures: 0 } },
    },
  });
  return { upstream, address: gateway.address };
}

const beginnings: Readonly<Record<string, (response: ServerResponse, stream: boolean) => void>> = {
  "before the first byte": () => {},
  "in the middle": (response, stream) => {
    if (!stream) {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"id":"chatcmpl-1",');
      return;
    }
    beginEvents(response);
    writeEvent(response, chunk({ role: "assistant", content: "half" }));
  },
};

for (const on of endpoints) {
  for (const { stream, kind } of kinds) {
    for (const [when, begin] of Object.entries(beginnings)) {
      test(`${on}: a caller that leaves a ${kind} answer ${when} closes the connection to the model within 100 ms, without a trace`, async (context) => {
        const more = { user: "someone" };
        const asked = Promise.withResolvers<ServerResponse>();
        const { upstream, address } = await startPair(context, (_, response) => {
          begin(response, stream);
          asked.resolve(response);
        });
        const { method, headers, body } = toRequest({ on, say: "hello", stream, more });
        const request = send(address + paths[on], { method, headers }).end(body);
        request.on("error", () => {});
        const { socket } = await asked.promise;
        if (stream && when === "in the middle") await hear((await once(request, "response"))[0], "half");
        const closed = once(socket!, "close");
        const watch = startStopwatch();
        request.destroy();
        await closed;
        const tookMs = watch.stop();
        assert.ok(tookMs < 100, `${tookMs} ms`);
        upstream.script = replyWith(() => ({ content: "fine" }));
        const next = await tellWell(address, { on, say: "again", stream, more });
        assert.equal(next.headers.get("x-portico-history"), "new");
      });
    }
  }
}

for (const on of endpoints) {
  test(`${on}: a caller that does not read stalls the model, which can send only a few megabytes until it is cut off`, async (context) => {
    const piece = chunk({ content: "x".repeat(64 * 1024) });
    const enough = 256 * 1024 * 1024;
    const over = Promise.withResolvers<number>();
    const { address } = await startPair(
      context,
      async (_, response) => {
        const { socket } = response;
        socket!.once("close", () => {
          over.resolve(socket!.bytesWritten);
          response.emit("drain");
        });
        beginEvents(response);
        while (!socket!.destroyed && socket!.bytesWritten < enough) {
          if (!writeEvent(response, piece)) await once(response, "drain");
        }
        response.end();
      },
      { max_unsent_bytes: 256 * 1024, stalled_client_timeout_ms: 300 },
    );
    const client = connect(Number(new URL(address).port), "127.0.0.1");
    context.after(() => client.destroy());
    client.on("error", () => {});
    client.pause();
    client.write(toBytes({ on, say: "hello", stream: true }));
    const megabytes = (await over.promise) / 1024 / 1024;
    // Most of it is in the buffers of the two connections, whose size is up to the system.
    assert.ok(megabytes < 32, `${megabytes} MB were accepted for a caller that reads none`);
  });
}

/** A request as it is sent over a bare socket. */
function toBytes(wish: Wish): string {
  const { method, headers, body } = toRequest(wish);
  const lines = Object.entries({ host: "localhost", "content-length": String(Buffer.byteLength(body)), ...headers });
  return `${method} ${paths[wish.on]} HTTP/1.1\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n${body}`;
}

test("200 concurrent streams all arrive complete, in order, and each at its own caller", async (context) => {
  const count = 200;
  const words = 40;
  const all = Promise.withResolvers<void>();
  let arrived = 0;
  const { upstream, address } = await startPair(context, async (received, response) => {
    const { messages } = received.json as { readonly messages: readonly { readonly content: string }[] };
    const name = messages[0]!.content;
    if (++arrived === count) all.resolve();
    // No request is answered before all have been sent, so that they really run at once.
    await all.promise;
    beginEvents(response);
    writeEvent(response, chunk({ role: "assistant", content: "" }));
    for (let word = 0; word < words; word++) {
      writeEvent(response, chunk({ content: `${name}.${word} ` }));
      await new Promise(setImmediate);
    }
    writeEvent(response, chunk({}, "stop"));
    writeEvent(response, "[DONE]");
    response.end();
  });
  const names = Array.from({ length: count }, (_, index) => `stream${index}`);
  const result = await Promise.all(
    names.map((say, index) => tellWell(address, { on: index % 2 === 0 ? "chat" : "responses", say, stream: true })),
  );
  for (const [index, { text }] of result.entries()) {
    const expected = Array.from({ length: words }, (_, word) => `${names[index]}.${word} `).join("");
    assert.equal(text, expected);
  }
  assert.equal(upstream.received.length, count);
});

const deaths: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "closes its connection": (response) => void response.socket?.destroy(),
  "ends without a terminal event": (response) => void response.end(),
  "sends an error": (response) => {
    writeEvent(response, { error: { message: "out of memory", type: "server_error", code: null } });
    response.end();
  },
  "sends invalid JSON": (response) => {
    writeEvent(response, "{nonsense");
    response.end();
  },
};

for (const on of endpoints) {
  for (const [how, die] of Object.entries(deaths)) {
    test(`${on}: a model that ${how} mid-stream ends in one terminal event, and the session forgets the turn`, async (context) => {
      const model = await startModel(context);
      const { address } = await startGateway(context, { adapters: model.adapters });
      const more = { user: "someone" };
      const { script } = model;
      await tellWell(address, { on, say: "one", more });

      model.script = (_, response) => {
        beginEvents(response);
        writeEvent(response, chunk({ role: "assistant", content: "half an" }));
        response.write(`data: ${JSON.stringify(chunk({ content: " answer" }))}\n\n`, () => die(response));
      };
      const broken = await tell(address, { on, say: "lost", stream: true, more });
      assert.equal(broken.status, 200);
      assert.ok("half an answer".startsWith(broken.text) && broken.text !== "", broken.raw);
      assert.ok(broken.error, "the failure is reported");
      assert.deepEqual(terminalEvents(on, broken.raw), on === "chat" ? ["error"] : ["response.failed"]);

      model.script = script;
      const next = await tellWell(address, { on, say: "two", more });
      assert.equal(next.headers.get("x-portico-history"), "continued");
      assert.deepEqual(model.shown.at(-1), ["user: one", "assistant: re: one", "user: two"]);
    });
  }

  test(`${on}: a model that dies during a whole answer is a 502, and the session forgets the turn`, async (context) => {
    const model = await startModel(context);
    const { address } = await startGateway(context, { adapters: model.adapters });
    const more = { user: "someone" };
    model.script = (_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"id":', () => response.socket?.destroy());
    };
    const broken = await tell(address, { on, say: "lost", more });
    assert.equal(broken.status, 502);
    assert.equal(broken.error?.["code"], "adapter_error");
    model.script = replyWith(() => ({ content: "fine" }));
    const next = await tellWell(address, { on, say: "one", more });
    assert.equal(next.headers.get("x-portico-history"), "new");
    assert.deepEqual(model.shown.at(-1), ["user: one"]);
  });
}

/** The events of a stream after which only its end may follow. */
function terminalEvents(on: Endpoint, raw: string): readonly string[] {
  return on === "chat"
    ? [...raw.matchAll(/"finish_reason":"\w+"|"(error)":\{/g)].map((found) => found[1] ?? found[0])
    : [...raw.matchAll(/^event: (response\.(?:completed|incomplete|failed))$/gm)].map((found) => found[1]!);
}

interface Failure {
  readonly script: Script;
  readonly status: number;
  readonly code: string;
  readonly retryAfter?: string;
}

const overload = { error: { message: "too many", type: "server_error", code: null } };
const failures: Readonly<Record<string, Failure>> = {
  "closes the connection": {
    script: (_, response) => void response.socket?.destroy(),
    status: 502,
    code: "adapter_error",
  },
  "answers 500": { script: answerJson(overload, 500), status: 502, code: "adapter_error" },
  "answers 401": { script: answerJson(overload, 401), status: 502, code: "adapter_refused" },
  "answers 429": {
    script: answerJson(overload, 429, { "retry-after": "7" }),
    status: 429,
    code: "adapter_rate_limit",
    retryAfter: "7",
  },
  "answers 503": { script: answerJson(overload, 503), status: 503, code: "overloaded", retryAfter: "1" },
  "answers a web page": {
    script: (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html></html>"),
    status: 502,
    code: "adapter_protocol",
  },
  "does not speak HTTP": {
    script: (_, response) => void response.socket?.end("HELLO\r\n\r\n"),
    status: 502,
    code: "adapter_protocol",
  },
  "sends an error first": { script: answerEvents(overload), status: 502, code: "adapter_error" },
  "ends an empty stream": {
    script(_, response) {
      beginEvents(response);
      response.end();
    },
    status: 502,
    code: "adapter_protocol",
  },
};

for (const [how, { script, status, code, retryAfter }] of Object.entries(failures)) {
  test(`a model that ${how} before its first word is a status ${status} within a second, without a retry`, async (context) => {
    const { upstream, address } = await startPair(context, script);
    for (const on of endpoints) {
      for (const { stream } of kinds) {
        const asked = upstream.received.length;
        const result = await askInTime(address, { on, say: "hello", stream });
        assert.equal(result.status, status, result.raw);
        assert.equal(result.error?.["code"], code, result.raw);
        assert.equal(result.headers.get("retry-after"), retryAfter ?? null);
        assert.equal(upstream.received.length, asked + 1);
      }
    }
  });
}

test("an unreachable model is a status 502 within a second", async (context) => {
  const { upstream, address } = await startPair(context, () => {});
  await upstream.close();
  for (const on of endpoints) {
    for (const { stream } of kinds) {
      const result = await askInTime(address, { on, say: "hello", stream });
      assert.equal(result.status, 502);
      assert.match(String(result.error?.["message"]), /refuses connections/);
    }
  }
});

async function askInTime(address: string, wish: Wish) {
  const watch = startStopwatch();
  const result = await tell(address, wish);
  const tookMs = watch.stop();
  assert.ok(tookMs < 1000, `${tookMs} ms`);
  return result;
}
