/** What Prometheus reads of the door. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { authorization, createBox, say, toToken, token } from "../scripted.ts";

test("requests, turns and the breakers of adapters are counted, for the operator alone", async (context) => {
  const operator = "sk-operator-0123456789";
  const tokens = [toToken(token), toToken(operator, { opens: new Set(["operator"]) })];
  const box = createBox(context, [say("hi")], { settings: { tokens } });
  const address = await box.listen();
  const headers = { authorization, "content-type": "application/json" };
  const body = JSON.stringify({ model: "m", input: "hi" });
  for (let times = 0; times < 3; times++) {
    await (await fetch(`${address}/v1/responses`, { method: "POST", headers, body })).text();
  }
  for (const path of ["/nope", "/nope/again"]) await (await fetch(address + path, { headers })).text();
  assert.equal((await fetch(`${address}/metrics`, { headers })).status, 403);
  const read = await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${operator}` } });
  assert.match(read.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await read.text();
  assert.match(text, /^portico_requests_total\{path="\/v1\/responses",status="200"\} 3$/m);
  assert.match(text, /^portico_requests_total\{path="unknown",status="404"\} 2$/m);
  assert.match(text, /^portico_request_seconds_total\{path="\/v1\/responses",status="200"\} 0\.\d+$/m);
  assert.match(text, /^portico_turns_running 0$/m);
  assert.match(text, /^portico_store_ready 1$/m);
  assert.match(text, /^portico_adapter_breaker_state\{adapter="scripted",state="closed"\} 1$/m);
  assert.match(text, /^portico_adapter_breaker_state\{adapter="scripted",state="open"\} 0$/m);
});

test("a store in trouble is told to whoever watches the gateway", async (context) => {
  const full = new GatewayError("store_unavailable", "The disk is full.");
  const store = { ...createMemoryStore(), check: () => Promise.reject(full) };
  const tokens = [toToken(token, { opens: new Set(["operator"]) })];
  const address = await createBox(context, [say("hi")], { store, settings: { tokens } }).listen();
  const text = await (await fetch(`${address}/metrics`, { headers: { authorization } })).text();
  assert.match(text, /^portico_store_ready 0$/m);
});
