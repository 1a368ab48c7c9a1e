/** What a caller should know besides its answer, where the response headers have already been sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { startGateway, token } from "../gateway.ts";
import { authorization, type Box, createBox, readEvents, say, type Script } from "../scripted.ts";
import { dial } from "./websocket-client.ts";

const headers = { authorization, "content-type": "application/json" };
const warning = "tool web_search left out";
const tried = "main (adapter_timeout)";

const remarking: Script = async function* (_turn, _signal, report) {
  report({ type: "tried", adapter: "main", code: "adapter_timeout" });
  report({ type: "left-out", what: "tool web_search" });
  yield say("hi");
};

interface Line {
  readonly method: string;
  readonly tried?: string;
  readonly warning?: string;
}

/** The log line of the request with this method, once it is written. */
async function lineOf(box: Box, method: string): Promise<Line> {
  for (;;) {
    const lines = box.logged.filter(({ message }) => message === "request").map(({ fields }) => fields as Line);
    const found = lines.find((line) => line.method === method);
    if (found !== undefined) return found;
    await new Promise(setImmediate);
  }
}

async function remarksOfStored(address: string, id: string | undefined): Promise<readonly (string | null)[]> {
  const stored = await fetch(`${address}/v1/responses/${id}`, { headers });
  return [stored.headers.get("x-portico-tried"), stored.headers.get("x-portico-warning")];
}

test("remarks that are too late for a stream's headers are logged, and sent with the stored response", async (context) => {
  const open = Promise.withResolvers<void>();
  const box = createBox(
    context,
    async function* (...asked) {
      await open.promise;
      yield* remarking(...asked);
    },
    { limits: { heartbeatMs: 1 } },
  );
  const address = await box.listen();
  const body = JSON.stringify({ model: "m", input: "hi", stream: true });
  const answer = await fetch(`${address}/v1/responses`, { method: "POST", headers, body });
  assert.equal(answer.headers.get("x-portico-warning"), null);
  open.resolve();
  const [created = ""] = readEvents(await answer.text());
  const { tried: first, warning: rest } = await lineOf(box, "POST");
  assert.deepEqual([first, rest], [tried, warning]);
  assert.deepEqual(await remarksOfStored(address, JSON.parse(created).response.id), [tried, warning]);
});

test("remarks on a WebSocket turn are logged, and sent with the stored response", async (context) => {
  const box = createBox(context, remarking);
  const address = await box.listen();
  const client = await dial(context, address);
  client.create({ input: "hi" });
  const frames = await client.answer();
  const { tried: first, warning: rest } = await lineOf(box, "response.create");
  assert.deepEqual([first, rest], [tried, warning]);
  assert.deepEqual(await remarksOfStored(address, frames.at(-1)?.response?.id), [tried, warning]);
});

test("changes are reported too, in header-safe characters and up to a maximum length", async (context) => {
  const address = await createBox(context, async function* (_turn, _signal, report) {
    report({ type: "changed", what: "max_tokens", to: "16" });
    report({ type: "left-out", what: `tool é\n${"x".repeat(2_000)}` });
    yield say("hi");
  }).listen();
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
  const answer = await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body });
  const header = answer.headers.get("x-portico-warning") ?? "";
  assert.match(header, /^max_tokens changed to 16, tool \?\?x+$/);
  assert.equal(header.length, 1_000);
});

test("a failure on a WebSocket connection carries the headers that it would have over HTTP", async (context) => {
  const box = createBox(context, async function* (_turn, _signal, report): AsyncGenerator<readonly Delta[]> {
    report({ type: "tried", adapter: "main", code: "adapter_timeout" });
    throw new GatewayError("adapter_error", "down");
  });
  const client = await dial(context, await box.listen());
  client.create({ input: "hi" });
  const [frame] = await client.answer();
  assert.deepEqual(JSON.parse(client.received[0] ?? "").error.headers, { "x-portico-tried": tried });
  assert.equal(frame?.error?.code, "adapter_error");
});

test("a replayed answer has the remarks of the original one", async (context) => {
  const address = await createBox(context, remarking).listen();
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], store: true });
  for (const replayed of [null, "true"]) {
    const answer = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, "idempotency-key": "k" },
      body,
    });
    await answer.text();
    assert.equal(answer.headers.get("x-portico-replayed"), replayed);
    assert.equal(answer.headers.get("x-portico-warning"), warning);
  }
});

test("how much of a conversation was left out is told with the answer, and with the stored response", async (context) => {
  const adapters = { main: { type: "echo" as const, context_window: 120 } };
  const { address } = await startGateway(context, { adapters, sessions: { store: "memory:" } });
  const own = { ...headers, authorization: `Bearer ${token}` };
  const said: (string | null)[] = [];
  for (let count = 0; count < 3; count++) {
    const body = JSON.stringify({ model: "m", input: "word ".repeat(20), user: "ann" });
    const answer = await fetch(`${address}/v1/responses`, { method: "POST", headers: own, body });
    const { id } = (await answer.json()) as { id: string };
    const stored = await fetch(`${address}/v1/responses/${id}`, { headers: own });
    await stored.text();
    said.push(answer.headers.get("x-portico-context"));
    assert.equal(stored.headers.get("x-portico-context"), said.at(-1));
  }
  assert.deepEqual(said, ["1 items", "3 items", "2 items, 3 left out"]);
});
