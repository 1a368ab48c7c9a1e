/** Turns that a program sends itself, beside those that arrive over HTTP. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { type Adapter, type Ask, openPortico } from "../src/index.ts";
import { makeFolder, open, startChain, startGateway, token } from "./gateway.ts";

const echo = { adapters: { echo: { type: "echo" } } };

async function post(address: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "m", ...body }),
  });
}

test("a channel and HTTP continue the same conversation by its name", async (context) => {
  const portico = await startGateway(context, echo);
  const first = await portico.talk({ session: "room-1", content: "Hello from the channel." });
  assert.equal(first.about.history, "new");
  assert.equal(await first.text(), "Hello from the channel.");
  const messages = [{ role: "user", content: "Hello over HTTP." }];
  const { headers } = await post(portico.address, { messages }, { "x-session-id": "room-1" });
  assert.equal(headers.get("x-portico-history"), "continued");
  assert.equal(headers.get("x-portico-session"), first.about.session);
  const third = await portico.talk({ session: "room-1", content: "And again." });
  assert.equal(third.about.contextItems, 5);
  assert.equal(await third.text(), "And again.");
});

test("the answer is received piece by piece", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 5 } } });
  const pieces = await Array.fromAsync(await portico.talk({ content: "one two three" }));
  assert.deepEqual(pieces.join(""), "one two three");
  assert.ok(pieces.length > 1);
});

test("a message without a session is not remembered, and another owner's session is a different one", async (context) => {
  const portico = await startGateway(context, echo);
  const alone = await portico.talk({ content: "one" });
  assert.equal(alone.about.history, "stateless");
  await alone.text();
  await (await portico.talk({ session: "s", content: "one" })).text();
  const other = await portico.talk({ session: "s", owner: "bot", content: "two" });
  assert.equal(other.about.history, "new");
  await other.text();
});

test("a reader that stops early cancels the turn, and the session stays unchanged", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 20 } } });
  for await (const piece of await portico.talk({ session: "s", content: "one two three four" })) {
    assert.equal(piece.startsWith("one"), true);
    break;
  }
  const next = await portico.talk({ session: "s", content: "five" });
  assert.equal(next.about.contextItems, 1);
  assert.equal(await next.text(), "five");
});

test("a signal cancels the turn", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 20 } } });
  const caller = new AbortController();
  const talk = await portico.talk({ content: "one two three four", signal: caller.signal });
  const text = talk.text();
  caller.abort(new Error("enough"));
  await assert.rejects(text, { name: "GatewayError", code: "cancelled" });
});

test("a turn that is cancelled before it is read does not block the next one", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 20 } } });
  const caller = new AbortController();
  const unread = await portico.talk({ session: "s", content: "one", signal: caller.signal });
  const waiting = portico.talk({ session: "s", content: "two" });
  caller.abort();
  const next = await waiting;
  assert.equal(next.about.contextItems, 1);
  assert.equal(await next.text(), "two");
  await assert.rejects(unread.text(), { name: "GatewayError", code: "cancelled" });
  const late = portico.talk({ session: "s", content: "three", signal: caller.signal });
  await assert.rejects(
    late.then((talk) => talk.text()),
    { code: "cancelled" },
  );
  const last = await portico.talk({ session: "s", content: "four" });
  assert.deepEqual([last.about.contextItems, await last.text()], [3, "four"]);
});

test("a turn that is never read blocks its session for a minute at most; one that is read takes any time", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo" } } });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const reading = (await portico.talk({ content: "one two three" }))[Symbol.asyncIterator]();
  const { value: begin } = await reading.next();
  const unread = await portico.talk({ session: "s", content: "one" });
  const waiting = portico.talk({ session: "s", content: "two" });
  context.mock.timers.tick(60_000);
  context.mock.timers.reset();
  assert.equal(begin + (await Array.fromAsync({ [Symbol.asyncIterator]: () => reading })).join(""), "one two three");
  const next = await waiting;
  assert.equal(next.about.contextItems, 1);
  assert.equal(await next.text(), "two");
  await assert.rejects(unread.text(), { code: "cancelled" });
});

test("a failure is thrown with its code", async (context) => {
  const portico = await startGateway(context, {
    adapters: { away: { type: "openai", base_url: "http://127.0.0.1:9/v1", api_key: "k", retry: { times: 0 } } },
  });
  const failing = portico.talk({ content: "Hello" }).then((talk) => talk.text());
  await assert.rejects(failing, { name: "GatewayError", code: "adapter_error" });
});

test("a message without a model uses the configured one, otherwise the first that the adapter lists", async (context) => {
  const listing = await startChain(context);
  const mapped = await startChain(context, { models: { fast: "echo" } });
  for (const [portico, model] of [
    [listing, "echo"],
    [mapped, "fast"],
  ] as const) {
    const talk = await portico.talk({ content: "Hello" });
    assert.deepEqual([talk.about.model, await talk.text()], [model, "Hello"]);
  }
});

test("an adapter that lists no models is used by its own name", async (context) => {
  const agent = { type: "command", argv: ["cat"], input: "text" };
  const portico = await startGateway(context, { adapters: { agent } });
  const talk = await portico.talk({ content: "Hello" });
  assert.deepEqual([talk.about.model, await talk.text()], ["agent", "Hello"]);
});

test("where the list of models is unavailable, a message must name its model", async (context) => {
  const adapters = { main: { type: "openai", base_url: "http://127.0.0.1:1/v1" } };
  const portico = await startGateway(context, { adapters });
  await assert.rejects(portico.talk({ content: "Hello" }), {
    name: "GatewayError",
    code: "adapter_error",
    message: /^No model is named, .*ECONNREFUSED.* Name a model with the message, or configure one\.$/,
  });
});

test("a closing gateway lets what a channel reads end, and stores it", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 20 } } });
  const talk = await portico.talk({ session: "s", content: "one two three" });
  const text = talk.text();
  const closing = portico.close();
  await assert.rejects(portico.talk({ session: "s", content: "four" }), { code: "draining" });
  assert.equal(await text, "one two three");
  await closing;
});

test("what a channel reads for longer than a closing gateway waits is cancelled", async (context) => {
  const portico = await startGateway(context, {
    adapters: { echo: { type: "echo", delay_ms: 5_000 } },
    http: { ...open, limits: { drain_timeout_ms: 50 } },
  });
  const talk = await portico.talk({ session: "s", content: "one two three" });
  const text = assert.rejects(talk.text(), { code: "draining" });
  await portico.close();
  await text;
});

test("returning before the first piece cancels the turn at once, and so does a signal while nothing is read", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 5 } } });
  const unread = await portico.talk({ session: "s", content: "one two three" });
  await unread[Symbol.asyncIterator]().return?.();
  const caller = new AbortController();
  const stopped = await portico.talk({ session: "s", content: "four five six", signal: caller.signal });
  const pieces = stopped[Symbol.asyncIterator]();
  await pieces.next();
  caller.abort();
  const next = await portico.talk({ session: "s", content: "seven" });
  assert.equal(next.about.contextItems, 1);
  assert.equal(await next.text(), "seven");
  await assert.rejects(pieces.next(), { code: "cancelled" });
});

test("a channel continues its session, whatever its other callers show", async (context) => {
  for (const history of ["auto", "resent"]) {
    const portico = await startGateway(context, { ...echo, sessions: { store: "memory:", history } });
    await (await portico.talk({ session: "s", content: "a" })).text();
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: "a" },
      { role: "user", content: "b" },
    ];
    const { headers } = await post(portico.address, { messages }, { "x-session-id": "s" });
    assert.equal(headers.get("x-portico-history"), "matched");
    for (const [content, items] of [
      ["c", 5],
      ["d", 7],
    ] as const) {
      const talk = await portico.talk({ session: "s", content });
      assert.deepEqual([talk.about.history, talk.about.contextItems], ["continued", items], history);
      await talk.text();
    }
  }
});

test("a pending list of models does not hold a caller that has cancelled", async (context) => {
  const folder = makeFolder(context);
  const silent: Adapter = {
    async *stream() {},
    models: () => new Promise(() => {}),
  };
  const portico = await openPortico({ gateway: { http: open } }, { folder, env: {}, adapters: { silent } });
  const caller = new AbortController();
  const talk = portico.talk({ content: "hi", signal: caller.signal });
  caller.abort();
  await assert.rejects(talk, { code: "cancelled" });
  await portico.close();
});

test("closing waits for turns that a program starts itself, and then accepts no more", async (context) => {
  const portico = await startGateway(context, { adapters: { echo: { type: "echo", delay_ms: 20 } } });
  const ask: Ask = {
    model: "m",
    items: [{ type: "message", role: "user", content: "one two three" }],
    itemsParam: "items",
    settings: { tools: [] },
    stream: true,
    keep: "yes",
  };
  const caller = { owner: "default", hint: undefined, signal: new AbortController().signal };
  const { events } = await portico.gateway.answer(ask, { ...caller, turnId: "resp_1" });
  const received = Array.fromAsync(events);
  await portico.close();
  const last = (await received).at(-1)?.at(-1);
  assert.equal(last?.type === "turn-end" && last.answer.status, "completed");
  await assert.rejects(portico.gateway.answer(ask, { ...caller, turnId: "resp_2" }), { code: "draining" });
});

test("closing resolves even if nothing else keeps the process alive", () => {
  const script = `
    const { openPortico } = await import(${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)});
    const limits = { drain_timeout_ms: 50 };
    const portico = await openPortico({ gateway: {
      http: { auth_token: "${token}", limits }, sessions: { store: "memory:" }, adapters: { echo: { type: "echo" } } } });
    await portico.talk({ session: "s", content: "nobody hears this" });
    await portico.close();
    process.stdout.write("closed");`;
  const child = spawnSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" });
  assert.deepEqual([child.status, child.stdout], [0, "closed"], child.stderr);
});
