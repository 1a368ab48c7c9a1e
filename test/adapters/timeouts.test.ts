/** How long each adapter waits: for a whole answer until its total timeout, for a stream until its idle timeout. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenai } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { Adapter } from "../../src/core/ports.ts";
import { startGateway, token } from "../gateway.ts";
import { type Script, answerEvents, answerJson, beginEvents, chunk, startUpstream } from "../upstream.ts";
import { compatible, createAdapter } from "./ai-sdk-wires.ts";
import { answerOf, textOf, turnOf } from "./command-scene.ts";

const hasty = { first_byte_timeout_ms: 30, idle_timeout_ms: 30 };
const silenceMs = 90;

async function ask(adapter: Adapter, stream: boolean): Promise<string> {
  const deltas: Delta[] = [];
  for await (const batch of adapter.stream(turnOf("Hello", { stream }), new AbortController().signal)) {
    deltas.push(...batch);
  }
  return textOf(deltas);
}

const message = { role: "assistant", content: "well" };
const whole = { choices: [{ index: 0, message, finish_reason: "stop" }] };

/** Sends nothing for longer than a stream may, and then the whole answer. */
const late: Script = (received, response) => {
  setTimeout(() => void answerJson(whole)(received, response), silenceMs);
};

const silent: Script = () => {};

/** Pauses in the middle for as long. */
const halting: Script = (_, response) => {
  const text = JSON.stringify(whole);
  response.writeHead(200, { "content-type": "application/json" });
  response.write(text.slice(0, 20));
  setTimeout(() => response.end(text.slice(20)), silenceMs);
};

/** Stops in the middle for good. */
const stuck: Script = (_, response) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.write(JSON.stringify(whole).slice(0, 20));
};

test("a whole answer of a server is limited by the total timeout only", async () => {
  await using server = await startUpstream(late);
  const adapter = createOpenai({ base_url: server.url, ...hasty }, {});
  assert.equal(await ask(adapter, false), "well");
  server.script = halting;
  assert.equal(await ask(adapter, false), "well");
  server.script = stuck;
  await assert.rejects(ask(adapter, true), { wireCode: "adapter_idle_timeout" });
  server.script = silent;
  await assert.rejects(ask(adapter, true), { wireCode: "adapter_first_byte_timeout" });
  await adapter.close?.();
});

test("a whole answer of a provider's package is limited by the total timeout only", async () => {
  await using server = await startUpstream((_, response) => {
    beginEvents(response);
    setTimeout(() => response.write(compatible.begin() + compatible.say(["we"])), silenceMs);
    setTimeout(() => response.end(compatible.say(["ll"]) + compatible.end("stop")), 2 * silenceMs);
  });
  const adapter = createAdapter(compatible, server.url, hasty);
  assert.equal(await ask(adapter, false), "well");
  server.script = silent;
  await assert.rejects(ask(adapter, true), { wireCode: "adapter_first_byte_timeout" });
});

test("a whole answer of a program is limited by the total timeout only", async () => {
  const script = "sleep 0.1; echo we; sleep 0.1; echo ll";
  const deltas = await answerOf(script, turnOf("Hello", { stream: false }), { ...hasty, output: "text" });
  assert.equal(textOf(deltas), "we\nll");
});

test("a background turn asks the model for a stream, so that no total timeout applies", async (context) => {
  const server = await startUpstream(answerEvents(chunk({ content: "well" }), chunk({}, "stop")));
  context.after(() => server.close());
  const { address } = await startGateway(context, { adapters: { model: { type: "openai", base_url: server.url } } });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "m", input: "Hello", background: true });
  const promised = await fetch(`${address}/v1/responses`, { method: "POST", headers, body });
  const { id } = (await promised.json()) as { readonly id: string };
  const followed = await fetch(`${address}/v1/responses/${id}?stream=true`, { headers });
  assert.match(await followed.text(), /event: response\.completed/);
  const asked = server.received.map(({ json }) => (json as { readonly stream?: boolean }).stream);
  assert.deepEqual(asked, [true]);
});
