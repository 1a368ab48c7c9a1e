/** What an adapter in JavaScript may say and throw, and what it is asked with: a module, or an object that a program passes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { tell, tellWell } from "../harness/client.ts";
import { ConfigError, createModel, makeFolder, openGateway, say, seenBy } from "../harness/house.ts";
import { shareGateway, type Script } from "../harness/house.ts";
import { listModels, whyNot } from "./scene.ts";

const open = shareGateway();

/** A script that yields or throws anything at all. */
const script = (make: () => unknown): Script => make as Script;
const counted = { inputTokens: 1, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

for (const said of [
  { type: "text", text: "no list" },
  "text",
  [undefined],
  [{ type: "text" }],
  [{ type: "text", text: 1n }],
  [{ type: "words", text: "x" }],
  [{ type: "toString" }],
  [{ type: "reasoning", text: "x", summary: "one" }],
  [{ type: "refusal", text: "a", extra: {} }],
  [{ type: "tool-call", name: "look" }],
  [{ type: "tool-call", index: 0, name: "look", kind: "evil" }],
  [{ type: "tool-arguments", text: "{}" }],
  [{ type: "annotation", annotation: { fields: {} } }],
  [{ type: "usage", usage: { ...counted, inputTokens: -1 } }],
  [{ type: "finish", reason: "bored" }],
]) {
  test(`${inspect(said, { breakLength: Infinity })} is not a batch of deltas: adapter_protocol, and the log shows it`, async () => {
    const { address, model, logged } = await open();
    model.script = script(async function* () {
      yield said;
    });
    const { status, error } = await tell(address, { on: "chat", say: "hi" });
    assert.deepEqual([status, error?.["code"]], [502, "adapter_protocol"]);
    assert.match(inspect(logged.slice(-2), { depth: Infinity }), /found: /);
  });
}

test("fields that are null, and details of usage that are absent, count as none", async () => {
  const { address, model } = await open();
  model.script = script(async function* () {
    yield [{ type: "text", text: "Hi", logprobs: null }];
    yield [{ type: "usage", usage: { inputTokens: 3, outputTokens: 2, reasoningTokens: null } }];
  });
  const { raw, text } = await tellWell(address, { on: "responses", say: "hi" });
  assert.deepEqual([text, JSON.parse(raw).usage.total_tokens], ["Hi", 5]);
});

const codes = {
  400: ["adapter_bad_request", "unsupported_parameter", "context_length_exceeded"],
  404: ["adapter_not_found"],
  429: ["adapter_rate_limit"],
  502: ["adapter_error", "adapter_refused", "adapter_protocol"],
  503: ["overloaded"],
  504: ["adapter_timeout"],
};

for (const [status, code] of Object.entries(codes).flatMap(([status, all]) => all.map((code) => [status, code]))) {
  test(`an error with the code ${code} reaches the caller with its message, whatever its class`, async () => {
    const { address, model } = await open();
    model.script = script(() => {
      throw Object.assign(new Error("Not now."), { code, retryAfterSeconds: 2.5 });
    });
    const { error, headers, ...heard } = await tell(address, { on: "chat", say: "hi" });
    assert.deepEqual([heard.status, error?.["code"]], [Number(status), code]);
    assert.match(String(error?.["message"]), /Not now\./);
    if (status === "429" || status === "503") assert.equal(headers.get("retry-after"), "3");
  });
}

for (const code of ["ECONNREFUSED", "invalid_api_key", "session_busy"]) {
  test(`an error with the code ${code}, which is not an adapter's to report, is adapter_error without details`, async () => {
    const { address, model } = await open();
    model.script = script(() => {
      throw Object.assign(new Error("connect secret-1"), { code });
    });
    const { status, error } = await tell(address, { on: "chat", say: "hi" });
    assert.deepEqual([status, error?.["code"]], [502, "adapter_error"]);
    assert.doesNotMatch(String(error?.["message"]), /secret-1/);
  });
}

test("what an adapter changes in its turn changes neither the session nor later turns", async () => {
  const { address, model } = await open();
  model.script = script(async function* spoil() {
    const items = model.turns.at(-1)!.items as unknown as { content: unknown }[];
    for (const item of items) item.content = "changed";
    items.length = 0;
    yield say("yes");
  });
  await tellWell(address, { on: "chat", say: "one", more: { user: "spoilt" } });
  model.script = [say("yes")];
  await tellWell(address, { on: "chat", say: "two", more: { user: "spoilt" } });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: one", "assistant: yes", "user: two"]);
});

test("what an adapter tells that it leaves out is in x-portico-warning", async (context) => {
  const modest = {
    async *stream(_turn: unknown, _signal: AbortSignal, tell?: (remark: { type: "left-out"; what: string }) => void) {
      tell?.({ type: "left-out", what: "tool telescope" });
      yield say("Hi");
    },
  };
  const { address } = await openGateway(context, { given: { modest }, gateway: { adapters: {} } });
  for (const stream of [false, true]) {
    const { headers } = await tellWell(address, { on: "chat", say: "hi", stream });
    assert.match(String(headers.get("x-portico-warning")), /tool telescope left out/);
  }
});

test("an adapter that speaks responses gets its hosted tools; for any other they are left out with a warning", async (context) => {
  const [plain, native] = [createModel(), createModel()];
  const given = { plain: plain.adapter, native: { ...native.adapter, speaks: ["responses" as const] } };
  const gateway = { adapters: {}, default_adapter: "plain", models: { native: "native" } };
  const { address } = await openGateway(context, { given, gateway });
  const tools = [{ type: "web_search" }, { type: "function", name: "look", parameters: {}, strict: false }];
  const refusals: unknown[] = [];
  for (const [model, kept, warning] of [
    ["plain", "function", "tool web_search left out"],
    ["native", "other,function", null],
  ] as const) {
    const { headers } = await tellWell(address, { on: "responses", say: "hi", more: { model, tools } });
    assert.equal(headers.get("x-portico-warning"), warning);
    const turn = { plain, native }[model].turns.at(-1)!;
    assert.equal(turn.settings.tools.map(({ type }) => type).join(), kept);
    const more = { model, tools: tools.slice(0, 1), tool_choice: "required" };
    const demanded = await tell(address, { on: "responses", say: "hi", more });
    refusals.push([demanded.status, demanded.error?.["param"]]);
  }
  assert.deepEqual(refusals.join(" "), "400,tool_choice 200,");
});

test("the trace of a request reaches its adapter", async () => {
  const { address, model } = await open();
  model.script = [say("Hi")];
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await tellWell(address, { on: "chat", say: "hi", headers: { traceparent, tracestate: "a=1" } });
  const { trace } = model.turns.at(-1) as { trace?: { parent: string; state?: string } };
  assert.match(String(trace?.parent), /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
  assert.equal(trace?.state, "a=1");
});

for (const [what, given, default_adapter, why] of [
  ["an object without a stream is passed", { mine: {} }, "mine", /mine.*stream/s],
  ["the default adapter is nobody's name", { mine: createModel().adapter }, "nobody", /nobody/],
] as const) {
  test(`a gateway does not start where ${what}`, async (context) => {
    const options = { gateway: { adapters: {}, default_adapter } };
    const thrown = await whyNot(options, makeFolder(context), { adapters: given });
    assert.ok(thrown instanceof ConfigError);
    assert.match(thrown.message, why);
  });
}

test("a passed adapter survives a reload and is closed once, with the gateway", async (context) => {
  let closed = 0;
  const model = createModel([say("still here")]);
  const given = { mine: { ...model.adapter, close: async () => void closed++ } };
  const { address, reload, close, settings } = await openGateway(context, { given, gateway: { adapters: {} } });
  await reload(settings);
  assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "still here");
  assert.equal(closed, 0);
  assert.deepEqual(await listModels(address), ["scripted"]);
  await close();
  assert.equal(closed, 1);
});
