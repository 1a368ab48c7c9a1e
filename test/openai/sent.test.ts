/** What a server is sent for the requests of both endpoints: its own dialect as it is, and the other's in its own words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "../harness/client.ts";
import { ask, bodyOf, type Fields, says, send, shareScene } from "./scene.ts";

const open = shareScene({
  old: { max_tokens_field: "max_tokens", developer_role: "system" },
  new: { max_tokens_field: "max_completion_tokens", developer_role: "developer" },
});

const user = { role: "user", content: "hi" };
const asked = { type: "message", ...user };
const said = { chat: { messages: [user] }, responses: { input: [asked], store: false } };
const dialects = ["chat", "responses"] as const;

const parameters = { type: "object", properties: { at: { type: "number" } } };
const look = { name: "look", description: "Looks.", parameters, strict: true };
const grammar = { syntax: "lark", definition: "start: X" };
const schema = { name: "sum", schema: { type: "object" }, strict: true };
const effort = { reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] };
const logprobs = { top_logprobs: 2, include: ["message.output_text.logprobs"] };
const ofChat = { tools: [{ type: "function", function: look }], parallel_tool_calls: false };
const ofResponses = { tools: [{ type: "function", ...look }], parallel_tool_calls: false };
const named = { type: "function", function: { name: "look" } };
const shell = { name: "shell", format: { type: "grammar", grammar } };
const free = { tools: [{ type: "custom", custom: shell }], tool_choice: { type: "custom", custom: { name: "shell" } } };
const freeTool = { type: "custom", name: "shell", format: { type: "grammar", ...grammar } };
const freeResponses = { tools: [freeTool], tool_choice: { type: "custom", name: "shell" } };
const toText = (type: string, format: Fields = {}) => ({ text: { format: { type, ...format } } });

const picture = "data:image/png;base64,AA==";
const file_data = "data:application/pdf;base64,AA==";
const sound = { type: "input_audio", input_audio: { data: "AA==", format: "wav" } };
const chatParts = [
  { type: "text", text: "Look" },
  { type: "image_url", image_url: { url: picture, detail: "low" } },
  sound,
  { type: "file", file: { file_data, filename: "a.pdf" } },
  { type: "file", file: { file_id: "file-1" } },
];
const responsesParts = [
  { type: "input_text", text: "Look" },
  { type: "input_image", image_url: picture, detail: "low" },
  sound,
  { type: "input_file", file_data, filename: "a.pdf" },
  { type: "input_file", file_id: "file-1" },
];

const toolCall = (id: string) => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
const calling = (call_id: string) => ({ type: "function_call", call_id, name: "look", arguments: "{}" });
const tool = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
const output = (call_id: string, output: unknown) => ({ type: "function_call_output", call_id, output });
const spoken = (content: string) => ({ type: "message", role: "assistant", content });
const model = (content: string | null, ...tool_calls: readonly Fields[]) => {
  return { role: "assistant", content, ...(tool_calls.length > 0 && { tool_calls }) };
};
const talk = (...messages: readonly Fields[]) => ({ messages: [user, ...messages] });
const items = (...input: readonly Fields[]) => ({ input: [asked, ...input] });
const [a, b] = [toolCall("a"), toolCall("b")];
const typed = { id: "a", type: "custom", custom: { name: "shell", input: "ls" } };
const typedItem = { type: "custom_tool_call", call_id: "a", name: "shell", input: "ls" };
const seen = { type: "custom_tool_call_output", call_id: "a", output: "1" };
const sampling = { temperature: 0, top_p: 0.9, service_tier: "flex" };
const keys = { prompt_cache_key: "k", safety_identifier: "s" };
const [outA, outB] = [output("a", "1"), output("b", "2")];
const rule = { role: "system", content: "x" };
const json = { response_format: { type: "json_schema", json_schema: schema } };
const twoCalls = [spoken("Hm."), calling("a"), calling("b")];
const twoSteps = [model(null, a), tool("a", "1"), model(null, b), tool("b", "2")];

/** The same in the words of either dialect. */
const wishes: readonly (readonly [what: string, chat: Fields, responses: Fields])[] = [
  ["no more than a question", {}, {}],
  ["sampling", sampling, sampling],
  ["keys of caches", keys, keys],
  ["a limit", { max_completion_tokens: 100 }, { max_output_tokens: 100 }],
  ["verbosity", { verbosity: "high" }, { text: { verbosity: "high" } }],
  ["any JSON", { response_format: { type: "json_object" } }, toText("json_object")],
  ["a schema", json, toText("json_schema", schema)],
  ["effort", { reasoning_effort: "low" }, effort],
  ["log probabilities", { logprobs: true, top_logprobs: 2 }, logprobs],
  ["a function", ofChat, ofResponses],
  ["any call", { ...ofChat, tool_choice: "required" }, { ...ofResponses, tool_choice: "required" }],
  ["a call", { ...ofChat, tool_choice: named }, { ...ofResponses, tool_choice: { type: "function", name: "look" } }],
  ["free text", free, freeResponses],
  ["a rule", talk(rule), items({ type: "message", ...rule })],
  ["files", { messages: [{ ...user, content: chatParts }] }, { input: [{ ...asked, content: responsesParts }] }],
  ["words", talk(model("Yes?"), user), items(spoken("Yes?"), asked)],
  ["calls", talk(model("Hm.", a, b), tool("a", "1"), tool("b", "2")), items(...twoCalls, outA, outB)],
  ["steps", talk(...twoSteps), items(calling("a"), outA, calling("b"), outB)],
  ["calls with free text", talk(model(null, typed), tool("a", "1")), items(typedItem, seen)],
];

for (const wire of dialects) {
  for (const on of dialects) {
    for (const [what, chat, responses] of wishes) {
      test(`from ${on}, a server on the ${wire} wire gets ${what} in its own words`, async () => {
        const wish = { chat, responses };
        assert.deepEqual(await send(await open(), on, wire, wish[on]), { ...said[wire], ...wish[wire] });
      });
    }
    test(`from ${on}, what names a person or asks to be stored does not reach a server on the ${wire} wire`, async () => {
      const personal = { user: `${on} ${wire}`, store: true, ...(on === "chat" && { metadata: { a: "b" } }) };
      assert.deepEqual(await send(await open(), on, wire, personal), said[wire]);
    });
    test(`from ${on}, a server on the ${wire} wire is asked for a stream where the caller wants one`, async () => {
      const usage = wire === "chat" && { stream_options: { include_usage: true } };
      const sent = await send(await open(), on, wire, { stream: true });
      assert.deepEqual(sent, { ...said[wire], stream: true, ...usage });
    });
  }
}

const rules = [{ role: "developer", content: "x" }, user];
const own = { own: { a: 1 }, metadata: { a: "b" } };
const ownChat = { logit_bias: { 5: 1 }, seed: 7, stop: ["END"], top_k: 3, modalities: ["text"], ...own };
const ownResponses = { max_tool_calls: 3, truncation: "auto", prompt: { id: "p", variables: {} }, ...own };
const marked = [{ ...user, name: "ann", own: 1, content: [{ type: "text", text: "x", cache_control: {} }, sound] }];
const empty = { tools: [], tool_choice: "auto" };

/** [what, the endpoint, the wire, the request, what is sent of it]. */
const rows: readonly (readonly [what: string, on: Endpoint, wire: Endpoint, body: Fields, sent: Fields])[] = [
  ["fields of the dialect go as they are, known or not", "chat", "chat", ownChat, ownChat],
  ["fields of the dialect go as they are, known or not", "responses", "responses", ownResponses, ownResponses],
  ["fields of the other dialect stay here", "responses", "chat", { own: 1, truncation: "auto" }, {}],
  ["fields of the other dialect stay here", "chat", "responses", { own: 1 }, {}],
  ["what is null is not sent", "chat", "chat", { temperature: null, stop: null }, {}],
  ["the old name of the limit stays", "chat", "chat", { max_tokens: 20 }, { max_tokens: 20 }],
  ["a chat caller's roles stay", "chat", "chat", { messages: rules }, { messages: rules }],
  ["rules are a system message", "responses", "chat", { input: rules }, { messages: [rule, user] }],
  ["instructions are a system message", "responses", "chat", { instructions: "x" }, { messages: [rule, user] }],
  ["instructions stay", "responses", "responses", { instructions: "x" }, { instructions: "x" }],
  ["a choice is not sent without tools", "responses", "chat", empty, {}],
  ["a choice is not sent without tools", "chat", "responses", empty, {}],
  ["fields of messages and parts stay", "chat", "chat", { messages: marked }, { messages: marked }],
];

for (const [what, on, wire, body, sent] of rows) {
  test(`from ${on} to a server on the ${wire} wire: ${what}`, async () => {
    assert.deepEqual(await send(await open(), on, wire, body), { ...said[wire], ...sent });
  });
}

for (const [name, field, role] of [
  ["old", "max_tokens", "system"],
  ["new", "max_completion_tokens", "developer"],
] as const) {
  test(`max_tokens_field ${field} and developer_role ${role} are written whatever the caller wrote`, async () => {
    const expected = { [field]: 20, messages: [{ role, content: "x" }, user] };
    for (const limit of [{ max_tokens: 20 }, { max_completion_tokens: 20 }])
      assert.deepEqual(await send(await open(), "chat", name, { ...limit, messages: rules }), expected);
    assert.deepEqual(await send(await open(), "responses", name, { max_output_tokens: 20, input: rules }), expected);
    assert.deepEqual(await send(await open(), "chat", name, {}), said.chat);
  });
}

test("text between a call and its output joins the call's message, and reasoning is not shown to who does not want it", async () => {
  const thought = { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
  const input = [user, thought, calling("a"), { role: "assistant", content: "Well." }, output("a", "1")];
  const sent = await send(await open(), "responses", "chat", { input });
  assert.deepEqual(sent["messages"], [user, model("Well.", a), tool("a", "1")]);
});

test("an image of a tool follows the tool's message on the chat wire, and stays in its output on the other", async () => {
  const image = { type: "input_image", image_url: picture, detail: "low" };
  const shown = output("a", [{ type: "input_text", text: "one" }, image]);
  const body = { input: [asked, calling("a"), shown] };
  const sent = await send(await open(), "responses", "chat", body);
  const [, , given, follows] = sent["messages"] as readonly Fields[];
  assert.deepEqual(given, tool("a", "one"));
  assert.equal(follows?.["role"], "user");
  assert.ok(JSON.stringify(follows["content"]).includes(picture));
  assert.deepEqual((await send(await open(), "responses", "responses", body))["input"], body.input);
});

const hosted = { type: "web_search" };
const byUrl = { type: "input_file", file_url: "u" };
const partOf = (part: Fields) => ({ input: [{ role: "user", content: [{ type: "input_text", text: "x" }, part] }] });
const video = [
  { type: "text", text: "x" },
  { type: "video_url", video_url: { url: "v" } },
] as const;

/** [what the server's wire lacks, the endpoint, the wire, the request, the field that is named]. */
const refused: readonly (readonly [what: string, on: Endpoint, wire: Endpoint, body: Fields, param: string])[] = [
  ["a file by its URL", "responses", "chat", partOf(byUrl), "input[0].content[1].file_url"],
  ["a part of responses", "responses", "chat", partOf({ type: "computer_screenshot" }), "input[0].content[1]"],
  ["a part of chat", "chat", "responses", { messages: [{ ...user, content: video }] }, "messages[0].content[1]"],
  ["a hosted tool", "responses", "chat", { tools: [hosted], tool_choice: hosted }, "tool_choice"],
  ["any tool to call", "responses", "chat", { tools: [hosted], tool_choice: "required" }, "tool_choice"],
  ["stop sequences", "chat", "responses", { stop: ["END"] }, "stop"],
  ["biases", "chat", "responses", { logit_bias: { 5: 1 } }, "logit_bias"],
];

for (const [what, on, wire, body, param] of refused) {
  test(`a server on the ${wire} wire that lacks ${what} is not asked, and the caller gets a 400 that names ${param}`, async () => {
    const scene = await open();
    const before = scene.upstream.received.length;
    const { status, error } = await ask(scene, { on, model: wire, more: body });
    assert.deepEqual([status, error?.["code"], error?.["param"]], [400, "unsupported_parameter", param]);
    assert.equal(scene.upstream.received.length, before);
  });
}

const searched = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };

/** [what is left out or changed, the endpoint, the wire, the request, the words about it]. */
const warned: readonly (readonly [what: string, on: Endpoint, wire: Endpoint, body: Fields, words: RegExp])[] = [
  ["a hosted tool", "responses", "chat", { tools: [hosted] }, /tool web_search/],
  ["a hosted item", "responses", "chat", { input: [user, searched, user] }, /item web_search_call/],
  ["a seed", "chat", "responses", { seed: 7 }, /seed/],
  ["a small limit", "chat", "responses", { max_tokens: 1 }, /max_tokens.*16/],
];

for (const [what, on, wire, body, words] of warned) {
  test(`x-portico-warning tells that a server on the ${wire} wire does not get ${what} as it is`, async () => {
    const heard = await ask(await open(), { on, model: wire, more: body });
    assert.equal(heard.status, 200, heard.raw);
    assert.match(heard.headers.get("x-portico-warning") ?? "", words);
    const plain = await ask(await open(), { on, model: wire });
    assert.equal(plain.headers.get("x-portico-warning"), null);
  });
}

test("numbers of 64 bits, odd keys and lone surrogates arrive as they were sent", async () => {
  const scene = await open();
  scene.plays(says("fine"));
  const fields = JSON.parse('{"seed":9223372036854774784,"own":{"__proto__":{"a":1}}}') as Fields;
  const heard = await ask(scene, { on: "chat", model: "chat", say: "\ud83d", more: fields });
  assert.equal(heard.status, 200, heard.raw);
  assert.match(scene.last().text, /"__proto__":\s*\{\s*"a":\s*1\s*\}/);
  const { seed, messages } = bodyOf(scene.last()) as { readonly seed: number; readonly messages: readonly Fields[] };
  assert.deepEqual([seed, messages[0]?.["content"]], [fields["seed"], "\ud83d"]);
});

const long = (letter: string): string => `${'a \ud83d\ude00 "line"\n'.repeat(200)}${letter}${"b\\ ".repeat(1_000)}`;

for (const wire of dialects) {
  test(`long texts that come again, and such as are like them, arrive as they were sent on the ${wire} wire`, async () => {
    const scene = await open();
    scene.plays(says("fine"));
    for (const letter of ["x", "y", "x", "x", "y"]) {
      const heard = await ask(scene, { on: "chat", model: wire, more: talk(model(long(letter)), user) });
      assert.equal(heard.status, 200, heard.raw);
      assert.ok(scene.last().text.includes(JSON.stringify(long(letter))));
    }
  });
}
