/** Tokens that may use only some models: what is refused, what is listed, and whom it does not concern. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, startGateway, token as unnamed } from "../gateway.ts";
import { answerJson, startUpstream } from "../upstream.ts";
import { dial, textOf } from "./websocket-client.ts";

const limited = "sk-limited-0123456789";
const free = "sk-free-0123456789abc";
const models = ["small", "gpt-*"];
const http = {
  ...open,
  tokens: [
    { name: "limited", token: limited, models },
    { name: "free", token: free },
  ],
};
const adapters = { echo: { type: "echo" as const, models: { small: "small", "gpt-5": "gpt-5", large: "large" } } };
const settings = { http, adapters, sessions: { store: "memory:" } };

interface Answer {
  readonly status: number;
  readonly error?: { readonly message: string; readonly type: string; readonly param: string; readonly code: string };
}

/** Sends a request, a POST if it has a body. */
async function send(address: string, path: string, body?: object, bearer = limited, headers = {}): Promise<Answer> {
  const response = await fetch(`${address}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { ...(text.startsWith("{") ? (JSON.parse(text) as object) : {}), status: response.status };
}

const refusal =
  "This token may not use the model 'large'. Name one that it may use: 'small', 'gpt-*'. The operator can allow more (gateway.http.tokens[].models).";
const messages = [{ role: "user", content: "hi" }];
const input = "hi";
const image = { type: "image_generation", model: "large" };
const brought = { type: "additional_tools", role: "developer", tools: [image] };

test("a token is refused a model that it may not use, wherever a request names it", async (context) => {
  const { address } = await startGateway(context, settings);
  for (const [path, body, param = "model"] of [
    ["/v1/chat/completions", { messages }],
    ["/v1/chat/completions", { messages, stream: true }],
    ["/v1/responses", { input }],
    ["/v1/responses", { input, stream: true }],
    ["/v1/responses", { input, background: true }],
    ["/v1/responses/input_tokens", { input }],
    ["/v1/responses/compact", { input }],
    ["/openai/deployments/large/chat/completions", { messages, model: "small" }],
    ["/v1/chat/completions", { messages, model: "small", models: ["gpt-5", "large"] }, "models[1]"],
    ["/v1/chat/completions", { messages, model: "small", fallbacks: ["gpt-5", "large"] }, "fallbacks[1]"],
    ["/v1/chat/completions", { messages, model: "small", fallbacks: [{ model: "large" }] }, "fallbacks[0].model"],
    [
      "/v1/chat/completions",
      { messages, model: "small", fallbacks: [null, { small: ["large"] }] },
      "fallbacks[1].small[0]",
    ],
    [
      "/v1/chat/completions",
      { messages, model: "small", fallbacks: [{ model: "small", small: [{ model: "large" }] }] },
      "fallbacks[0].small[0].model",
    ],
    ["/v1/responses", { input, model: "small", tools: [image] }, "tools[0].model"],
    ["/v1/responses", { input: [brought, ...messages], model: "small" }, "input"],
  ] as const) {
    const request = { model: "large", ...body };
    const { status, error } = await send(address, path, request);
    assert.equal(status, 403, JSON.stringify([path, request]));
    assert.deepEqual(error, { message: refusal, type: "permission_error", param, code: "model_not_allowed" });
    for (const other of [free, unnamed]) assert.equal((await send(address, path, request, other)).status, 200);
    if (request.model !== "large") continue;
    for (const model of ["small", "gpt-5"]) assert.equal((await send(address, path, { ...body, model })).status, 200);
  }
});

test("a token cannot leave a tool with such a model in a conversation, for a later request to use", async (context) => {
  const { address } = await startGateway(context, settings);
  const { id } = (await send(address, "/v1/conversations", {})) as Answer & { readonly id: string };
  for (const path of ["/v1/conversations", `/v1/conversations/${id}/items`]) {
    const { status, error } = await send(address, path, { items: [...messages, brought] });
    assert.deepEqual([status, error?.code, error?.param], [403, "model_not_allowed", "items"], path);
    const allowed = { ...brought, tools: [{ ...image, model: "small" }] };
    assert.equal((await send(address, path, { items: [...messages, allowed] })).status, 200);
  }
});

test("a refused model is not asked, and a fallback needs no permission", async (context) => {
  const [main, spare] = [await startUpstream(answerJson({}, 500)), await startUpstream(answerWith("from the spare"))];
  context.after(() => Promise.all([main.close(), spare.close()]));
  const toAdapter = (url: string) => ({ type: "openai", base_url: `${url}/v1`, retry: { times: 0 } });
  const { address } = await startGateway(context, {
    ...settings,
    adapters: {
      main: { ...toAdapter(main.url), fallback: ["spare"] },
      spare: { ...toAdapter(spare.url), model: "large" },
    },
    default_adapter: "main",
  });
  assert.equal((await send(address, "/v1/chat/completions", { model: "large", messages })).status, 403);
  assert.deepEqual([main.received.length, spare.received.length], [0, 0]);
  assert.equal((await send(address, "/v1/chat/completions", { model: "small", messages })).status, 200);
  assert.deepEqual(
    spare.received.map(({ json }) => (json as { readonly model: string }).model),
    ["large"],
  );
});

test("a token that may use only some models must name one to count tokens", async (context) => {
  const { address } = await startGateway(context, settings);
  const { status, error } = await send(address, "/v1/responses/input_tokens", { input });
  assert.deepEqual([status, error?.code, error?.param], [400, "missing_required_parameter", "model"]);
  assert.equal((await send(address, "/v1/responses/input_tokens", { input }, free)).status, 200);
});

test("a WebSocket stays open when a model is refused, and what it remembers can be continued", async (context) => {
  const { address } = await startGateway(context, settings);
  const client = await dial(context, address, { authorization: `Bearer ${limited}` });
  client.create({ model: "small", input: "one", store: false });
  const first = await client.answer();
  for (const generate of [true, false]) {
    const previous_response_id = first.at(-1)?.response?.id;
    client.create({ model: "large", generate, previous_response_id, store: false });
    const [frame] = await client.answer();
    const { status, error } = frame ?? {};
    assert.deepEqual([frame?.type, status, error?.code, error?.param], ["error", 403, "model_not_allowed", "model"]);
  }
  client.create({ model: "gpt-5", input: "two", previous_response_id: first.at(-1)?.response?.id, store: false });
  assert.equal(textOf(await client.answer()), "two");
});

test("a token is shown only the models that it may use", async (context) => {
  const { address } = await startGateway(context, settings);
  const idsFor = async (bearer: string) => {
    const answer = (await send(address, "/v1/models", undefined, bearer)) as unknown as {
      readonly data: readonly { readonly id: string }[];
    };
    return answer.data.map(({ id }) => id);
  };
  assert.deepEqual(await idsFor(limited), ["small", "gpt-5"]);
  for (const other of [free, unnamed]) assert.deepEqual(await idsFor(other), ["small", "gpt-5", "large"]);
  assert.equal((await send(address, "/v1/models/gpt-5")).status, 200);
  const [hidden, unknown] = [await send(address, "/v1/models/large"), await send(address, "/v1/models/huge")];
  assert.deepEqual([hidden.status, hidden.error?.code], [404, "model_not_found"]);
  assert.deepEqual(hidden.error?.message, unknown.error?.message.replace("huge", "large"));
});

test("a reload applies to the next request, even on an open WebSocket or with a known Idempotency-Key", async (context) => {
  const portico = await startGateway(context, settings);
  const { address } = portico;
  const client = await dial(context, address, { authorization: `Bearer ${limited}` });
  const again = () => send(address, "/v1/responses", { model: "small", input }, limited, { "idempotency-key": "k" });
  const stored = (await again()) as Answer & { readonly id: string };
  assert.equal(stored.status, 200);
  const tokens = [{ name: "limited", token: limited, models: ["gpt-*"] }];
  await portico.reload({ gateway: { ...settings, http: { ...http, tokens }, log: { level: "silent" } } });
  assert.deepEqual([(await again()).status, (await again()).error?.code], [403, "model_not_allowed"]);
  client.create({ model: "small" });
  assert.equal((await client.answer())[0]?.error?.code, "model_not_allowed");
  assert.equal((await send(address, `/v1/responses/${stored.id}`)).status, 200, "what it owns stays readable");
});

test("a program's own messages may use any model, whoever owns them", async (context) => {
  const { talk } = await startGateway(context, settings);
  assert.equal(await (await talk({ model: "large", owner: "limited", content: "hi" })).text(), "hi");
});

function answerWith(content: string) {
  return answerJson({
    id: "c",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  });
}
