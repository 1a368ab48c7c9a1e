/** What callers read when a model's server fails: the status, the code, and that the next turn knows nothing of it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { paths, readAnswer, toRequest } from "../harness/client.ts";
import { answerEvents, answerJson, beginEvents, chunk, type Script, writeEvent } from "../harness/upstream.ts";
import { event, type Fields, isStreamed, item, listen, responseOf } from "./scene.ts";
import { says, sends, shareScene, textDelta, ways, whole } from "./scene.ts";

const open = shareScene();

function typeOf(status: number): string {
  return status === 429 ? "rate_limit_error" : status >= 500 ? "api_error" : "invalid_request_error";
}

let heardHalf = Promise.withResolvers<void>();

interface Expected {
  readonly model?: string;
  readonly status: number;
  readonly code: string;
  readonly message?: RegExp;
  /** The server has said "Half" before: a stream has begun, and has a status of 200. */
  readonly half?: boolean;
}

/** Asks both endpoints, all ways where it matters, and then again: a failed turn is no part of its session. */
async function judgeFailure(script: Script, expected: Expected): Promise<void> {
  const { model = "chat", status, code, message = /./, half = false } = expected;
  const scene = await open();
  const user = crypto.randomUUID();
  for (const { on, stream } of ways) {
    if (!half && (on === "chat") === stream) continue;
    scene.plays(script);
    heardHalf = Promise.withResolvers();
    const before = scene.upstream.received.length;
    const wish = { on, stream, say: "lost", more: { model, user } };
    const response = await fetch(scene.address + paths[on], toRequest(wish));
    let raw = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      raw += piece;
      if (raw.includes("Half")) heardHalf.resolve();
    }
    const heard = readAnswer(wish, response.status, response.headers, raw);
    const [, data] = /^event: error\ndata: (.*)$/m.exec(raw) ?? [];
    const error: Fields = (data === undefined ? heard.error : JSON.parse(data).error) ?? {};
    const hasBegun = stream && half;
    assert.deepEqual([heard.status, error["code"]], [hasBegun ? 200 : status, code], `${on}, ${stream}: ${raw}`);
    assert.equal(error["type"], typeOf(status));
    if (code === "own_code" && status === 400) assert.equal(error["param"], "messages");
    assert.match(String(error["message"]), message);
    assert.equal(heard.text, hasBegun ? "Half" : "");
    assert.equal(response.headers.get("retry-after"), (status === 429 || status === 503) && !hasBegun ? "1" : null);
    assert.equal(scene.upstream.received.length, before + 1, "asked once");
    assert.doesNotMatch(raw, /private/);
  }
  scene.plays(says("fine"));
  await listen(scene, { on: "responses", model, say: "and?", more: { user } });
  assert.doesNotMatch(scene.last().text, /lost/);
}

const error = { message: "Said by the server.", type: "x", param: "messages", code: "own_code" };

/** [what the server answers, what callers get, with its own code and message unless it says otherwise]. */
const statuses: readonly (readonly [answered: number, status: number, code?: string, message?: RegExp])[] = [
  [400, 400],
  [401, 502, "adapter_refused", /operator/],
  [402, 502, "adapter_refused"],
  [403, 502, "adapter_refused"],
  [404, 404],
  [408, 504],
  [409, 502],
  [413, 413],
  [422, 400],
  [429, 429],
  [500, 502],
  [502, 502],
  [503, 503],
  [504, 504],
  [529, 503],
];

for (const [answered, status, code = "own_code", message = /Said by the server\./] of statuses) {
  test(`a server that answers ${answered} is a ${status} ${code}`, async () => {
    await judgeFailure(answerJson({ error }, answered), { status, code, message });
  });
}

function page(status: number): Script {
  return (_, response) => void response.writeHead(status, { "content-type": "text/html" }).end("<p>private</p>");
}

const refuses = (status: number, body: unknown) => answerJson(body, status);
const begins = (error: Fields) => answerEvents({ error });
const events = (...pieces: readonly (string | Uint8Array)[]) => sends("text/event-stream", ...pieces);
const json = (...pieces: readonly (string | Uint8Array)[]) => sends("application/json", ...pieces);
const raw =
  (bytes: string): Script =>
  (_, response) =>
    void response.socket?.end(bytes);
const no = { message: "No.", code: null };
const slow = { message: "No.", code: 429 };
const slowly = JSON.stringify(slow);
const wrongKey = { message: "Incorrect API key: private.", code: "invalid_api_key" };
const unknownUrl = { message: "Unknown request URL: POST /chat/completions.", code: "unknown_url" };
const unknownModel = { message: "No model x.", code: "model_not_found" };
const detail = [{ loc: ["body", "store"], msg: "No." }];
const failing = { index: 0, message: { content: "Half" }, finish_reason: "error", error: slow };
const deep = `{"choices":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
const upgraded = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";

const bad = [400, "adapter_bad_request", /\bNo\.$/] as const;
const limited = [429, "adapter_rate_limit", /\bNo\.$/] as const;
const lost = [404, "adapter_not_found", /base.?url/i] as const;
const garbled = [502, "adapter_protocol"] as const;
const broken = [502, "adapter_error"] as const;

const rows: readonly (readonly [what: string, script: Script, status: number, code: string, message?: RegExp])[] = [
  ["an error as a text", refuses(400, { error: "No." }), ...bad],
  ["an error without an object around it", refuses(400, { object: "error", ...no }), ...bad],
  ["an error in a list", refuses(400, [{ error: no }]), ...bad],
  ["the findings of a validator", refuses(422, { detail }), 400, "adapter_bad_request", /store.*No\./],
  ["a refusal without a word", refuses(400, {}), 400, "adapter_bad_request"],
  ["nothing at its path", refuses(404, { detail: "Not Found" }), ...lost],
  ["an address that it lacks", refuses(404, { error: unknownUrl }), ...lost],
  ["a model that it lacks", refuses(404, { error: unknownModel }), 404, "model_not_found", /^No model x\.$/],
  ["a web page", page(200), ...garbled],
  ["a web page with a status of 404", page(404), ...garbled],
  ["a web page with a status of 403", page(403), 502, "adapter_refused"],
  ["a web page with a status of 503", page(503), 503, "overloaded"],
  ["another type of content", sends("text/plain", JSON.stringify(whole({ content: "private" }))), ...garbled],
  ["another JSON", answerJson({ hello: "private" }), ...garbled],
  ["JSON that ends too early", json('{"choices":[{"private'), ...garbled],
  ["JSON with half a character", json('{"choices":[{"private":"', Buffer.of(0xc3), '"}]}'), ...garbled],
  ["JSON of lists in lists in lists", json(deep), 502, "adapter_answer_too_large"],
  ["an empty stream", events(), ...garbled],
  ["an error within a 200", answerJson({ error: slow }), ...limited],
  ["an error as its first event", begins({ ...no, type: "rate_limit_error" }), ...limited],
  ["an error event without a type", events(`event: error\ndata: ${slowly}\n\n`), ...limited],
  ["an error without a last blank line", events(`data: ${JSON.stringify({ error: no })}`), ...broken, /No\./],
  ["an error in a field called error", events(`error: ${slowly}\n\n`), ...limited],
  ["bare JSON where events were announced", events(JSON.stringify({ error: slow })), ...limited],
  ["a wrong key within a 200", begins(wrongKey), 502, "adapter_refused", /operator/],
  ["an error of the choice itself", answerJson({ choices: [failing] }), ...limited],
  ["a call without a name", answerJson(whole({ tool_calls: [{ function: { arguments: "{}" } }] })), ...garbled],
  ["nothing but the end of the connection", (_, response) => void response.socket?.destroy(), ...broken],
  ["no HTTP", raw("SSH-2.0-hello\r\n\r\n"), ...garbled],
  ["another protocol", raw(upgraded), ...garbled],
];

for (const [what, script, status, code, message] of rows) {
  test(`a server that sends ${what} is a ${status} ${code}`, async () => {
    await judgeFailure(script, { status, code, ...(message && { message }) });
  });
}

/** What a server does after its first word, or in the middle of a whole answer. */
const breaks: readonly (readonly [what: string, how: (response: ServerResponse) => void, code: string])[] = [
  ["closes the connection", (response) => response.socket?.destroy(), "adapter_error"],
  ["resets the connection", (response) => response.socket?.resetAndDestroy(), "adapter_error"],
  ["ends without a finish", (response) => response.end(), "adapter_protocol"],
  ["sends garbage", (response) => response.end("data: {gar\n\n"), "adapter_protocol"],
  ["sends half a character", (response) => response.end(Buffer.from('data: "\xc3"\n\n', "latin1")), "adapter_protocol"],
];

for (const [what, how, code] of breaks) {
  test(`a server that ${what} in the middle is ${code}, after what it had said`, async () => {
    const script: Script = async (received, response) => {
      const stream = isStreamed(received);
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      response.write(stream ? `data: ${JSON.stringify(chunk({ content: "Half" }))}\n\n` : '{"choices":');
      if (stream) await heardHalf.promise;
      how(response);
    };
    await judgeFailure(script, { status: 502, code, half: true });
  });
}

for (const word of ["error", "abort", "insufficient_system_resource", "MALFORMED_FUNCTION_CALL"]) {
  test(`an answer with the finish reason ${word} is a failure, not a short answer`, async () => {
    const script: Script = (received, response) => {
      const events = answerEvents(chunk({ content: "Half" }), chunk({}, word));
      return (isStreamed(received) ? events : answerJson(whole({ content: "Half" }, word)))(received, response);
    };
    await judgeFailure(script, { status: 502, code: "adapter_error", message: new RegExp(word), half: true });
  });
}

test("arguments for a tool call that is over already are adapter_protocol, and the server is cut off", async () => {
  const call = (index: number, name: string | undefined, written: string) =>
    chunk({ tool_calls: [{ index, id: name, function: { name, arguments: written } }] });
  const closed: Promise<unknown>[] = [];
  const script: Script = (_, response) => {
    closed.push(once(response, "close"));
    beginEvents(response);
    const calls = [call(0, "look", "{}"), call(1, "hear", "{"), call(0, undefined, '{"all":true}')];
    for (const event of [chunk({ content: "Half" }), ...calls]) writeEvent(response, event);
  };
  await judgeFailure(script, { status: 502, code: "adapter_protocol", message: /tool call 'look'/, half: true });
  await Promise.all(closed);
  assert.equal(closed.length, 4);
});

const tooMany = { code: "rate_limit_exceeded", message: "No." };
const busy = { code: "server_is_overloaded", message: "No." };
const failed = (error: Fields | null) => responseOf([], { status: "failed", error });
const nameless = responseOf([item.call("a", undefined, "{}")]);
const created = `data: ${JSON.stringify(event("created", { response: responseOf([]) }))}\n\n`;

const onResponses: readonly (readonly [what: string, script: Script, status: number, code: string])[] = [
  ["a failed response", answerEvents(event("failed", { response: failed(tooMany) })), 429, tooMany.code],
  ["a failed response as JSON", answerJson(failed(tooMany)), 429, tooMany.code],
  ["an error event with flat fields", answerEvents({ type: "error", ...tooMany, param: null }), 429, tooMany.code],
  ["an error event with an object", answerEvents({ type: "error", error: tooMany }), 429, tooMany.code],
  ["a refusal", refuses(429, { error: tooMany }), 429, tooMany.code],
  ["a failure of an overloaded server", answerJson(failed(busy)), 503, busy.code],
  ["a failure without a reason", answerJson(failed(null)), ...broken],
  ["a response that is not finished", answerJson(responseOf([], { status: "queued" })), ...garbled],
  ["a stream without its terminal event", events(created), ...garbled],
  ["[DONE] alone", answerEvents(), ...garbled],
  ["a call without a name", answerJson(nameless), ...garbled],
];

for (const [what, script, status, code] of onResponses) {
  test(`on the responses wire, a server that sends ${what} is a ${status} ${code}`, async () => {
    await judgeFailure(script, { model: "responses", status, code });
  });
}

test("on the responses wire, an error after words ends a stream that has begun", async () => {
  const script = answerEvents(textDelta(0, "Half"), { type: "error", message: "Broken." });
  await judgeFailure(script, {
    model: "responses",
    status: 502,
    code: "adapter_error",
    message: /Broken\./,
    half: true,
  });
});

test("a stream without a word and without a finish is adapter_protocol, though it ends with [DONE]", async () => {
  for (const events of [
    [],
    [chunk({ role: "assistant", content: "" })],
    [{ choices: [], usage: { prompt_tokens: 1 } }],
  ])
    await judgeFailure(answerEvents(...events), { status: 502, code: "adapter_protocol" });
});
