/** What a caller carries from turn to turn: reasoning, compactions, items of its own dialect; over real sockets. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { openStore } from "../../src/stores/index.ts";
import { makeFolder } from "../gateway.ts";
import { checkStream } from "../protocols/grammar.ts";
import {
  authorization,
  type BoxOptions,
  createBox,
  say,
  type Script,
  seal,
  token,
  toToken,
  usage,
} from "../scripted.ts";

async function open(context: TestContext, script: Script, options: BoxOptions = {}) {
  const box = createBox(context, script, options);
  const address = await box.listen();
  async function send(method: string, path: string, body?: object) {
    const response = await fetch(`${address}${path}`, {
      method,
      headers: { authorization, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }
  const post = async (path: string, body: object) => {
    const { status, headers, text } = await send("POST", path, body);
    return { status, headers, body: JSON.parse(text) };
  };
  return { ...box, send, post };
}

/** Reasons, then answers; a request for a summary gets one. */
const model: Script = async function* (turn) {
  const last = turn.items.at(-1);
  const isDemand = last?.type === "message" && JSON.stringify(last.content).includes("Write a summary");
  if (isDemand) yield say("Ann ", "asked for 7.");
  else yield [{ type: "reasoning", text: "A lucky number." }, ...say("It is 7.")];
  yield [
    { type: "usage", usage },
    { type: "finish", reason: "stop" },
  ];
};

test("reasoning reaches a model that seals nothing in the next turn, although the gateway stores nothing", async (context) => {
  const { send, adapter } = await open(context, model);
  const agent = { model: "m", store: false, stream: true, include: ["reasoning.encrypted_content"] };
  const asked = { type: "message", role: "user", content: [{ type: "input_text", text: "Which?" }] };
  const first = await send("POST", "/v1/responses", { ...agent, input: [asked] });
  const { response, events } = checkStream(first.text);
  const [reasoning, message] = response.output;
  assert.match(String(reasoning?.["encrypted_content"]), /^portico2\./);
  assert.ok(events.some(({ type, item }) => type === "response.output_item.done" && item.id === reasoning?.id));

  const shown = { type: "reasoning", summary: [], encrypted_content: reasoning?.["encrypted_content"] };
  await send("POST", "/v1/responses", { ...agent, input: [asked, shown, message, { ...asked }] });
  const [, seen] = adapter.turns[1]?.items ?? [];
  assert.deepEqual(seen, { type: "reasoning", summary: [], text: "A lucky number.", encrypted: undefined });
});

suite("a request that ends with a compaction trigger", () => {
  const trigger = { type: "compaction_trigger" };

  test("is answered with one compaction, which replaces everything before it", async (context) => {
    const { post, send, adapter } = await open(context, model);
    const { body: first } = await post("/v1/responses", { model: "m", input: "Which number?" });
    const short = { model: "m", previous_response_id: first.id, input: [trigger], stream: true };
    const { response } = checkStream((await send("POST", "/v1/responses", short)).text);
    const [item] = response.output;
    assert.deepEqual(response.output, [
      {
        id: item?.id,
        type: "compaction",
        encrypted_content: seal.seal(JSON.stringify({ summary: "Ann asked for 7." })),
      },
    ]);
    assert.match(String(item?.id), /^cmp_/);
    const again = await send("GET", `/v1/responses/${String(response["id"])}`);
    assert.deepEqual(JSON.parse(again.text).output, response.output);
    await post("/v1/responses", { model: "m", previous_response_id: response["id"], input: "Why?" });
    assert.deepEqual(adapter.turns.at(-1)?.items, [
      { type: "compaction", summary: "Ann asked for 7." },
      { type: "message", role: "user", content: "Why?" },
    ]);
  });

  test("is answered with a compaction in a stateless history too, and the item is accepted as input", async (context) => {
    const { post, adapter } = await open(context, model);
    const history = [
      { role: "user", content: "Which number?" },
      { role: "assistant", content: "It is 7." },
    ];
    const { body } = await post("/v1/responses", { model: "m", store: false, input: [...history, trigger] });
    await post("/v1/responses", {
      model: "m",
      store: false,
      input: [...body.output, { role: "user", content: "Why?" }],
    });
    assert.deepEqual(adapter.turns.at(-1)?.items[0], { type: "compaction", summary: "Ann asked for 7." });
  });
});

suite("the compact route", () => {
  test("returns the user's messages and a summary, which begin a new chain", async (context) => {
    const { post, send, adapter } = await open(context, model);
    const { body: first } = await post("/v1/responses", { model: "m", input: "Which number?" });
    const image = { type: "input_image", image_url: "data:image/png;base64,AA" };
    const { status, body } = await post("/v1/responses/compact", {
      model: "m",
      previous_response_id: first.id,
      input: [{ role: "user", content: [{ type: "input_text", text: "And why?" }, image] }],
      instructions: "Be brief.",
    });
    assert.equal(status, 200);
    const [asked, why, compaction] = body.output;
    const message = { type: "message", status: "completed", role: "user" };
    assert.deepEqual(body, {
      id: body.id,
      object: "response.compaction",
      created_at: body.created_at,
      output: [
        { id: asked.id, ...message, content: [{ type: "input_text", text: "Which number?" }] },
        {
          id: why.id,
          ...message,
          content: [
            { type: "input_text", text: "And why?" },
            { ...image, detail: "auto" },
          ],
        },
        {
          id: compaction.id,
          type: "compaction",
          encrypted_content: seal.seal(JSON.stringify({ summary: "Ann asked for 7." })),
        },
      ],
      usage: {
        input_tokens: 3,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 2,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 5,
      },
    });
    assert.equal(adapter.turns.at(-1)?.settings.instructions, "Be brief.");
    assert.equal((await send("GET", `/v1/responses/${body.id}`)).status, 404);

    await post("/v1/responses", { model: "m", input: [...body.output, { role: "user", content: "Go on." }] });
    const seen = adapter.turns.at(-1)?.items ?? [];
    assert.deepEqual(
      seen.map((item) => item.type),
      ["message", "message", "compaction", "message"],
    );
    assert.deepEqual(seen[2], { type: "compaction", summary: "Ann asked for 7." });
  });

  test("refuses a request without a model or without a conversation", async (context) => {
    const { post } = await open(context, model);
    for (const [body, param] of [
      [{}, "model"],
      [{ input: "Hi" }, "model"],
      [{ model: "m" }, "input"],
      [{ model: "m", input: null, previous_response_id: null }, "input"],
      [{ model: "m", input: [] }, "input"],
      [{ model: "m", previous_response_id: "resp_0" }, "previous_response_id"],
    ] as const) {
      const refused = await post("/v1/responses/compact", body);
      assert.deepEqual([refused.status, refused.body.error.param], [400, param], JSON.stringify(body));
    }
  });
});

test("the input tokens of a request are counted or estimated without an answer, and a header says which", async (context) => {
  const { post, adapter } = await open(context, model);
  const estimated = await post("/v1/responses/input_tokens", { model: "m", input: "Hi" });
  assert.deepEqual(estimated.body, { object: "response.input_tokens", input_tokens: 6 });
  assert.equal(estimated.headers.get("x-portico-tokens"), "estimated");
  assert.equal(adapter.turns.length, 0);
  const { body: first } = await post("/v1/responses", { model: "m", input: "Which number?" });
  adapter.countTokens = async ({ items }) => items.length * 100;
  const next = { model: "m", previous_response_id: first.id, input: "Why?" };
  const exact = await post("/v1/responses/input_tokens", next);
  assert.deepEqual(exact.body, { object: "response.input_tokens", input_tokens: 400 });
  assert.equal(exact.headers.get("x-portico-tokens"), "exact");
  const refused = await post("/v1/responses/input_tokens", { model: "m", input: [{}] });
  assert.deepEqual([refused.status, refused.body.error.param], [400, "input[0].role"]);
});

test("the input tokens of a request whose token resends its history are its own alone", async (context) => {
  for (const [alwaysResends, counted] of [
    [false, 4],
    [true, 1],
  ] as const) {
    const { post, adapter } = await open(context, model, { settings: { tokens: [toToken(token, { alwaysResends })] } });
    adapter.countTokens = async ({ items }) => items.length;
    const next = { model: "m", input: "Why?", user: "ann" };
    await post("/v1/responses", next);
    assert.equal((await post("/v1/responses/input_tokens", next)).body.input_tokens, counted);
  }
});

test("items and fields of the dialect are stored with their turn, on disk too", async (context) => {
  const store = await openStore(`sqlite:${join(makeFolder(context), "sessions.db")}`);
  context.after(() => store.close());
  const { post, send, adapter } = await open(context, model, { store });
  const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } };
  const comment = { role: "assistant", phase: "commentary", content: "Let me see." };
  const asked = { role: "user", content: "Which number?" };
  const { body: first, status } = await post("/v1/responses", { model: "m", input: [asked, comment, search, asked] });
  assert.equal(status, 200);
  await post("/v1/responses", { model: "m", previous_response_id: first.id, input: "Why?" });
  const [, said, searched] = adapter.turns.at(-1)?.items ?? [];
  assert.ok(said?.type === "message");
  assert.deepEqual(said.extra, { dialect: "responses", fields: { phase: "commentary" } });
  assert.deepEqual(searched, { type: "other", extra: { dialect: "responses", fields: search } });
  const { data } = JSON.parse((await send("GET", `/v1/responses/${first.id}/input_items?order=asc`)).text);
  assert.deepEqual([data[1].phase, data[2].type, data[2].action], ["commentary", search.type, search.action]);
});
