/** Fields of a chat server's answer that Portico does not know reach its chat callers, and nobody else. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startGateway, token } from "../gateway.ts";
import { gatherChunks, readChunks, type WireCompletion } from "../protocols/chunks.ts";
import { checkStream } from "../protocols/grammar.ts";
import { answerEvents, answerJson, chunk, startUpstream } from "../upstream.ts";

type Fields = Readonly<Record<string, unknown>>;

const image = (url: string) => ({ type: "image_url", image_url: { url }, index: 0 });
const quote = (text: string) => ({ text, url: `https://${text}.test/` });
const quotes = [quote("a"), quote("b")];
const images = [image("data:image/png;base64,AAAA"), image("data:image/png;base64,BBBB")];
const around = { citations: ["https://a.test/"], search_results: [{ title: "A", url: "https://a.test/" }] };
const paid = { cost: 0.5, cost_details: { input: 0.2 } };
const usage = { prompt_tokens: 1, completion_tokens: 1, ...paid };
const moderation = { input: { type: "moderation_results", results: [{ flagged: false }] } };

/** A model that draws, cites what it has found, and is moderated. */
async function startPair(context: TestContext) {
  const upstream = await startUpstream((received, reply) => {
    const { stream, n = 1 } = received.json as { readonly stream?: boolean; readonly n?: number };
    const choice = (index: number) => ({
      index,
      message: { role: "assistant", content: "Look.", images, quotes, token_ids: null, tags: [] },
      finish_reason: "stop",
    });
    const say = (delta: Fields, finish: string | null = null) => ({ ...(chunk(delta, finish) as Fields), ...around });
    const script =
      stream === true
        ? answerEvents(
            say({
              role: "assistant",
              content: "Look.",
              images: images.slice(0, 1),
              quotes: quotes.slice(0, 1),
              tags: [],
            }),
            say({ content: "", images: images.slice(1), quotes: quotes.slice(1) }),
            { ...say({}, "stop"), obfuscation: "CVQ5" },
            { ...(chunk({}) as Fields), choices: [], usage },
            { ...(chunk({}) as Fields), choices: [], moderation },
          )
        : answerJson({
            id: "1",
            choices: Array.from({ length: n }, (_, at) => choice(at)),
            ...around,
            usage,
            moderation,
          });
    return script(received, reply);
  });
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", base_url: `${upstream.url}/v1` } },
  });
  return { upstream, address };
}

async function post(address: string, path: string, body: Fields, headers: Record<string, string> = {}) {
  const answer = await fetch(`${address}/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "m", ...body }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text;
}

/** What the server said of the usage, and what we count. */
function pick(told: Fields | null | undefined) {
  const { cost, cost_details, total_tokens } = told ?? {};
  return { cost, cost_details, total_tokens };
}

const question = { role: "user", content: "Draw a cat." };

test("images, citations, the cost and moderation results reach a chat caller, whole and streamed, first and repeated", async (context) => {
  const { address, upstream } = await startPair(context);
  for (const key of ["first", "first"]) {
    const headers = { "idempotency-key": key };
    const whole: WireCompletion = JSON.parse(
      await post(address, "chat/completions", { messages: [question] }, headers),
    );
    assert.deepEqual(whole.choices[0]?.message, {
      images,
      quotes,
      role: "assistant",
      content: "Look.",
      refusal: null,
      annotations: [],
    });
    for (const [name, value] of Object.entries({ ...around, moderation })) assert.deepEqual(whole[name], value);
    assert.deepEqual(pick(whole.usage), { ...paid, total_tokens: 2 });

    const asked = { messages: [question], stream: true, stream_options: { include_usage: true } };
    const numbered = await post(address, "chat/completions", asked, { "idempotency-key": `${key}, streamed` });
    const stream = numbered.replaceAll(/^id: .*\n/gm, "");
    const { message, rest } = gatherChunks(stream, true);
    assert.deepEqual([message.content, message.added], ["Look.", { images, quotes }]);
    for (const [name, value] of Object.entries({ ...around, moderation })) assert.deepEqual(rest[name], value);
    assert.equal(readChunks(stream).filter((sent) => "moderation" in sent).length, 1, "sent once");
    assert.deepEqual(pick(readChunks(stream).at(-1)?.usage), { ...paid, total_tokens: 2 });
    assert.ok(!("obfuscation" in rest));
  }
  assert.equal(upstream.received.length, 2);
});

test("each choice has its own images, and what surrounds the choices is sent once", async (context) => {
  const { address } = await startPair(context);
  const whole: WireCompletion = JSON.parse(await post(address, "chat/completions", { messages: [question], n: 2 }));
  for (const { message } of whole.choices) assert.deepEqual((message as unknown as Fields)["images"], images);
  const stream = await post(address, "chat/completions", { messages: [question], n: 2, stream: true });
  assert.equal(readChunks(stream).filter((sent) => "citations" in sent).length, 1);
});

test("fields that come with every chunk count towards the length of the answer only if they change", async (context) => {
  const found = [{ title: "A".repeat(10_000) }];
  const chunks = Array.from({ length: 20 }, (_, at) => ({
    ...(chunk({ content: "x" }) as Fields),
    search_results: found,
    progress: at,
    p: "abc".repeat(at),
  }));
  const upstream = await startUpstream(answerEvents(...chunks, chunk({}, "stop")));
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", base_url: `${upstream.url}/v1`, max_answer_characters: 20_000 } },
  });
  const { rest } = gatherChunks(await post(address, "chat/completions", { messages: [question], stream: true }));
  assert.deepEqual([rest["search_results"], rest["progress"], rest["p"]], [found, 19, undefined]);
});

test("what only callers want is neither sent back to the model nor to callers of responses", async (context) => {
  const { address, upstream } = await startPair(context);
  const first = await post(address, "responses", { input: "Draw a cat.", user: "ann" });
  assert.ok(!first.includes("AAAA") && !first.includes("citations"));
  await post(address, "chat/completions", { messages: [{ role: "user", content: "Another." }], user: "ann" });
  const { messages } = upstream.received.at(-1)!.json as { readonly messages: readonly Fields[] };
  assert.deepEqual(messages[1], { role: "assistant", content: "Look." });
});

test("moderation results of a responses server reach callers of responses, whole, streamed and stored", async (context) => {
  const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi", annotations: [] }] };
  const response = { id: "resp_1", object: "response", status: "completed", error: null, moderation, output: [said] };
  const upstream = await startUpstream(answerEvents({ type: "response.completed", response }));
  context.after(() => upstream.close());
  const { address } = await startGateway(context, {
    adapters: { model: { type: "openai", wire: "responses", base_url: `${upstream.url}/v1` } },
  });
  const whole: Fields = JSON.parse(await post(address, "responses", { input: "Hi" }));
  assert.deepEqual(whole["moderation"], moderation);
  const stored = await fetch(`${address}/v1/responses/${String(whole["id"])}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.deepEqual(await stored.json(), whole);
  const { response: streamed } = checkStream(await post(address, "responses", { input: "Hi", stream: true }));
  assert.deepEqual(streamed["moderation"], moderation);
  const chat = await post(address, "chat/completions", { messages: [question] });
  assert.ok(!chat.includes("moderation"));
});
