/** A model's server that cannot be reached, is silent, does not end, or sends too much, and callers who leave. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { hear, paths, toRequest } from "../harness/client.ts";
import { endAfter, findFreePort } from "../harness/house.ts";
import { answerEvents, beginEvents, chunk, type Script } from "../harness/upstream.ts";
import { startUpstream, unknownHost, writeEvent } from "../harness/upstream.ts";
import { certificate, privateKey } from "../harness/certificate.ts";
import { ask, isStreamed, listen, openScene, says, shareScene, ways, whole } from "./scene.ts";

test("a server that refuses connections, has an unknown name, no TLS or no good certificate is named, with what to do", async (context) => {
  const upstream = await startUpstream();
  endAfter(context, () => upstream.close());
  const tls = createServer({ cert: certificate, key: privateKey }).listen(0, "127.0.0.1");
  await once(tls, "listening");
  endAfter(context, () => tls.close());
  const places = {
    [`http://127.0.0.1:${await findFreePort()}`]: /refuse/,
    [`http://${unknownHost}`]: /name/,
    [`https://127.0.0.1:${upstream.port}`]: /TLS.*http:\/\//,
    [`https://127.0.0.1:${(tls.address() as AddressInfo).port}`]: /TLS.*NODE_EXTRA_CA_CERTS/,
  };
  const adapters = Object.keys(places).map((base_url) => [base_url, { base_url }]);
  const scene = await openScene(context, Object.fromEntries(adapters));
  for (const [model, message] of Object.entries(places)) {
    for (const way of ways) {
      const { status, error, raw } = await ask(scene, { ...way, model });
      assert.deepEqual([status, error?.["code"], error?.["type"]], [502, "adapter_error", "api_error"], raw);
      assert.ok(String(error?.["message"]).includes(new URL(model).host), raw);
      assert.match(String(error?.["message"]), message);
    }
  }
});

const json = { "content-type": "application/json" };
const text = JSON.stringify(whole({ content: "well" }));

/** Says half of its answer, and no more. */
const stuck: Script = (received, response) => {
  if (!isStreamed(received)) return void response.writeHead(200, json).write(text.slice(0, 20));
  beginEvents(response);
  writeEvent(response, chunk({ content: "Half" }));
};

/** Each adapter has one limit that is short. */
const limits = {
  first_byte: { first_byte_timeout_ms: 60 },
  idle: { idle_timeout_ms: 60 },
  total: { total_timeout_ms: 60 },
  eager: { first_byte_timeout_ms: 60, idle_timeout_ms: 60 },
};

const open = shareScene(limits);

const silences: readonly (readonly [what: string, script: Script, limit: string, stream: boolean, status: number])[] = [
  ["sends no head", () => {}, "first_byte", true, 504],
  ["sends a head alone", (_, response) => beginEvents(response), "first_byte", true, 504],
  ["stops in the middle of a stream", stuck, "idle", true, 200],
  ["sends nothing", () => {}, "total", false, 504],
  ["stops in the middle of a whole answer", stuck, "total", false, 504],
];

for (const [what, script, limit, stream, status] of silences) {
  test(`a server that ${what} is adapter_${limit}_timeout, which names its option and cuts the server off`, async () => {
    const scene = await open();
    for (const on of ["chat", "responses"] as const) {
      scene.plays(script);
      const heard = await ask(scene, { on, stream, model: limit });
      assert.equal(heard.status, status, heard.raw);
      for (const word of [`"adapter_${limit}_timeout"`, `${limit}_timeout_ms`]) assert.ok(heard.raw.includes(word));
      const socket = scene.upstream.sockets.at(-1)!;
      if (!socket.closed) await once(socket, "close");
    }
  });
}

test("a whole answer may be silent until its total time is over, and a stream may last as long as it brings something", async () => {
  const scene = await open();
  scene.plays((_, response) => void setTimeout(() => response.writeHead(200, json).end(text), 150));
  assert.equal((await ask(scene, { on: "chat", model: "eager" })).text, "well");
  scene.plays(async (_, response) => {
    beginEvents(response);
    for (const word of ["w", "e", "l", "l"]) {
      writeEvent(response, chunk({ content: word }));
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    writeEvent(response, chunk({}, "stop"));
    response.end();
  });
  assert.equal((await ask(scene, { on: "responses", stream: true, model: "total" })).text, "well");
});

const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3 } })}\n\n`;

/** What a server does after its finish reason. */
const ends: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "resets the connection": (response) => void response.socket?.resetAndDestroy(),
  "tells the usage and closes the connection": (response) => {
    response.write(usage, () => response.socket?.destroy());
  },
  "cuts an event": (response) => void response.end('data: {"choices":[],"usa'),
  "cuts a character": (response) => void response.end(Buffer.of(0x64, 0xc3)),
  "sends nothing more": () => {},
};

for (const [what, end] of Object.entries(ends)) {
  test(`a stream whose server ${what} after the finish reason is whole`, async () => {
    const scene = await open();
    for (const on of ["chat", "responses"] as const) {
      scene.plays((_, response) => {
        beginEvents(response);
        writeEvent(response, chunk({ content: "well" }));
        response.write(`data: ${JSON.stringify(chunk({}, "stop"))}\n\n`, () => end(response));
      });
      const heard = await listen(scene, { on, stream: true, model: "idle" });
      assert.deepEqual([heard.text, heard.finish], ["well", "stop"]);
    }
  });
}

test("an error after the finish reason is an error", async () => {
  const scene = await open();
  const error = { message: "Broken.", code: 500 };
  scene.plays(answerEvents(chunk({ content: "well" }), chunk({}, "stop"), { error }));
  for (const way of ways) assert.match((await ask(scene, { ...way, model: "chat" })).raw, /Broken\./);
});

for (const [when, begins] of [
  ["before the first byte", false],
  ["in the middle", true],
] as const) {
  test(`a caller who leaves ${when} cuts the connection to the server, and leaves no trace in the session`, async () => {
    const scene = await open();
    for (const { on, stream } of ways) {
      const asked = Promise.withResolvers<ServerResponse>();
      scene.plays((received, response) => {
        if (begins) void stuck(received, response);
        asked.resolve(response);
      });
      const user = crypto.randomUUID();
      const { body, ...options } = toRequest({ on, say: "lost", stream, more: { user, model: "chat" } });
      const request = send(scene.address + paths[on], options).end(body);
      request.on("error", () => {});
      const { socket } = await asked.promise;
      if (stream && begins) await hear((await once(request, "response"))[0], "Half");
      request.destroy();
      await once(socket!, "close");
      scene.plays(says("fine"));
      await listen(scene, { on, say: "and?", model: "chat", more: { user } });
      assert.doesNotMatch(scene.last().text, /lost/);
    }
  });
}

test("an answer that is larger than any answer is refused, whole or in one event, and the rest is not read", async () => {
  const scene = await open();
  const piece = Buffer.alloc(1024 * 1024, "x");
  const most = 160;
  for (const stream of [false, true]) {
    let sent = 0;
    scene.plays(async (_, response) => {
      response.once("close", () => response.emit("drain"));
      response.writeHead(200, stream ? { "content-type": "text/event-stream" } : json);
      response.write(stream ? "data: " : '{"choices":[{"message":{"content":"');
      for (; sent < most && !response.destroyed; sent += 1) if (!response.write(piece)) await once(response, "drain");
      response.end();
    });
    const { status, error } = await ask(scene, { on: "chat", stream, model: "chat" });
    assert.equal(status, 502);
    // An event without an end is as much no event as it is too large.
    assert.match(
      String(error?.["code"]),
      stream ? /^adapter_(answer_too_large|protocol)$/ : /^adapter_answer_too_large$/,
    );
    assert.ok(sent < most, `${sent} MB were taken`);
  }
});
