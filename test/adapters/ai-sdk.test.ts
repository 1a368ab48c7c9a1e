/** What a turn looks like on the wires of three providers, through their real packages, and what comes back in a tool loop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answered, type Heard, tell, type Wish } from "../harness/client.ts";
import { endAfter, openGateway } from "../harness/house.ts";
import { startUpstream } from "../harness/upstream.ts";
import { byName, share, user } from "./scene.ts";
import { anthropic, answerStream, compatible, google, toAdapter, type Wire } from "./wires.ts";

type Body = Answered["body"];
const wireOf = { anthropic, google, compatible } as const;
type Name = keyof typeof wireOf;

const open = share(async (scope) => {
  const servers = {
    anthropic: await startUpstream(),
    google: await startUpstream(),
    compatible: await startUpstream(),
  };
  for (const server of Object.values(servers)) endAfter(scope, () => server.close());
  const more = { retries: 0 };
  const options = { supportsStructuredOutputs: true, headers: { "x-house": "yes" } };
  const house = servers.compatible.url;
  const adapters = {
    anthropic: toAdapter(anthropic, servers.anthropic.url, more),
    google: toAdapter(google, servers.google.url, more),
    compatible: toAdapter(compatible, house, more),
    "claude-opus-4-5": toAdapter(anthropic, servers.anthropic.url, { ...more, model: "claude-opus-4-5" }),
    schemas: toAdapter(compatible, house, { ...more, options }),
    diligent: toAdapter(compatible, house, { ...more, provider_options: { house: { reasoningEffort: "high" } } }),
  };
  const gateway = await openGateway(scope, { gateway: { adapters, ...byName(Object.keys(adapters)) } });
  return { address: gateway.address, servers };
});

const hi = (wire: Wire): readonly string[] => [wire.begin(), wire.say(["Hi"]), wire.end("stop")];

/** Asks, and returns what the server received. */
async function exchange(name: Name, { more, ...wish }: Partial<Wish> = {}, answer = hi(wireOf[name])) {
  const { address, servers } = await open();
  servers[name].script = answerStream(...answer);
  const heard: Heard = await tell(address, { on: "responses", say: "Hello", ...wish, more: { model: name, ...more } });
  const { json, path, headers } = servers[name].received.at(-1) ?? {};
  return { heard, body: json as Body, path, headers };
}

async function exchangeWell(...asked: Parameters<typeof exchange>) {
  const exchanged = await exchange(...asked);
  assert.equal(exchanged.heard.status, 200, exchanged.heard.raw);
  return exchanged;
}

test("instructions and system messages come first, wherever they stood", async () => {
  const say = [user("Hello"), { role: "developer", content: "Rhyme." }, user("Now")];
  const wish = { say, more: { instructions: "Be brief." } };
  const texts = (parts: { text: string }[]) => parts.map(({ text }) => text);
  const one = await exchangeWell("anthropic", wish);
  assert.deepEqual(texts(one.body.system), ["Be brief.", "Rhyme."]);
  const other = await exchangeWell("google", wish);
  assert.deepEqual(texts(other.body.systemInstruction.parts), ["Be brief.", "Rhyme."]);
  assert.match(String(other.path), /\/models\/google:streamGenerateContent\?alt=sse$/);
  const third = await exchangeWell("compatible", wish);
  assert.equal(third.body.messages.map(({ role }: Body) => role).join(), "system,system,user,user");
});

test("settings, stops and limits reach the model; what a provider cannot do is in x-portico-warning", async () => {
  const penalties = { presence_penalty: 0.1, frequency_penalty: 0.2 };
  const more = { ...penalties, temperature: 0.5, top_p: 0.9, seed: 7, stop: ["END"], max_tokens: 50 };
  const { body } = await exchangeWell("compatible", { on: "chat", say: "Hello", more });
  assert.deepEqual({ ...body, ...more }, body);
  const other = await exchangeWell("anthropic", { on: "chat", say: "Hello", more });
  assert.deepEqual([other.body.max_tokens, other.body.stop_sequences], [50, ["END"]]);
  const warning = String(other.heard.headers.get("x-portico-warning"));
  for (const what of ["frequency_penalty", "presence_penalty", "seed"])
    assert.match(warning, new RegExp(`${what} left out`));
});

const image = { type: "input_image", image_url: "data:image/png;base64,iVBORw==" };
const pdf = { type: "input_file", filename: "paper.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQ=" };
const talk = (...content: object[]) => [user(content)];

test("images, files and sound are sent as content, and as URLs where the model takes them", async () => {
  const look = { type: "input_text", text: "Look:" };
  const linked = { type: "input_image", image_url: "https://example.com/cat.jpg" };
  const { body } = await exchangeWell("anthropic", { say: talk(look, image, linked, pdf) });
  const sent = body.messages[0].content.map(({ source, text }: Body) => source?.data ?? source?.url ?? text);
  assert.deepEqual(sent, ["Look:", "iVBORw==", "https://example.com/cat.jpg", "JVBERi0xLjQ="]);
  const sound = { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } };
  const heard = await exchangeWell("compatible", { on: "chat", say: talk(sound) });
  assert.deepEqual(heard.body.messages[0].content, [sound]);
  const seen = await exchangeWell("google", { say: talk(look, image) });
  assert.deepEqual(seen.body.contents[0].parts[1], { inlineData: { mimeType: "image/png", data: "iVBORw==" } });
});

test("content that a package cannot send is a 400 that names the part", async () => {
  const say = talk({ type: "input_text", text: "Read:" }, { type: "input_file", file_id: "file-1" });
  const { heard } = await exchange("anthropic", { say });
  assert.deepEqual([heard.status, heard.error?.["code"]], [400, "unsupported_parameter"]);
  assert.match(String(heard.error?.["param"]), /^input\[0\]\.content\[1\]/);
});

const weather = { type: "function", name: "get_weather", parameters: { type: "object" } };
const paris = { callId: "toolu_1", name: "get_weather", arguments: '{"city":"Paris"}' };
const rome = { callId: "toolu_2", name: "get_weather", arguments: '{"city":"Rome"}' };
const loops = {
  anthropic: {
    answer: [
      anthropic.begin(),
      anthropic.reason(["Let me ", "think."], "sig-abc"),
      anthropic.say(["I look."]),
      anthropic.call([paris]),
      anthropic.end("tool-calls"),
    ],
    calls: [paris],
    read: (body: Body) => body.messages[1].content,
    expected: [
      { type: "thinking", thinking: "Let me think.", signature: "sig-abc" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Paris" } },
    ],
  },
  google: {
    answer: [google.reason(["Hm."]), google.call([paris, rome]), google.end("tool-calls")],
    calls: [paris, rome],
    read: ({ contents }: Body) =>
      contents[1].parts.map((part: Body) => `${part.text ?? part.functionCall.args.city} ${part.thoughtSignature}`),
    expected: ["Hm. undefined", "Paris thought-sig-1", "Rome undefined"],
  },
} as const;

for (const name of ["anthropic", "google"] as const) {
  const { answer, calls, read, expected } = loops[name];
  test(`${name}: inside a tool loop, reasoning and signatures go back to a caller that names the turn`, async () => {
    const first = await exchangeWell(name, { stream: true, more: { tools: [weather] } }, answer);
    const say = calls.map(({ callId }) => ({ type: "function_call_output", call_id: callId, output: "Sunny" }));
    const second = await exchangeWell(name, { say, more: { tools: [weather], previous_response_id: first.heard.id } });
    assert.deepEqual(read(second.body), expected);
  });

  test(`${name}: they go back too where a chat client, which cannot carry them, shows its history`, async () => {
    const offered = { type: "function", function: { name: "get_weather", parameters: { type: "object" } } };
    const more = { tools: [offered], user: `${name}-loop` };
    const { heard } = await exchangeWell(name, { on: "chat", stream: true, more }, answer);
    const tool_calls = heard.calls.map(({ id, arguments: text }) => {
      return { id, type: "function", function: { name: "get_weather", arguments: text } };
    });
    const say = [
      user("Hello"),
      { role: "assistant", content: heard.text || null, tool_calls },
      ...heard.calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "Sunny" })),
    ];
    const second = await exchangeWell(name, { on: "chat", say, more });
    assert.deepEqual(read(second.body), expected);
  });
}

test("images in a tool's output follow it in a message of the user", async () => {
  const say = [
    user("Look."),
    { type: "function_call", call_id: "c1", name: "look", arguments: "" },
    { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "A cat." }, image] },
  ];
  const { body } = await exchangeWell("compatible", { say });
  assert.equal(body.messages[1].tool_calls[0].function.arguments, "{}");
  assert.deepEqual(body.messages[2], { role: "tool", tool_call_id: "c1", content: "A cat." });
  assert.deepEqual(body.messages[3].content.at(-1), { type: "image_url", image_url: { url: image.image_url } });
});

test("a custom tool is offered as a function with one string, and its calls come back as custom calls", async () => {
  const format = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
  const tools = [{ type: "custom", name: "shell", description: "Runs it.", format }];
  const written = { callId: "c1", name: "shell", arguments: '{"input":"ls -l \\"x\\""}' };
  const answer = [anthropic.begin(), anthropic.call([written]), anthropic.end("tool-calls")];
  const first = await exchangeWell("anthropic", { more: { tools } }, answer);
  assert.match(first.body.tools[0].description, /^Runs it\.[^]*start: /);
  const [item] = JSON.parse(first.heard.raw).output;
  assert.deepEqual([item.type, item.name, item.input], ["custom_tool_call", "shell", 'ls -l "x"']);
  const say = [{ type: "custom_tool_call_output", call_id: "c1", output: "done" }];
  const second = await exchangeWell("anthropic", { say, more: { tools, previous_response_id: first.heard.id } });
  assert.deepEqual(second.body.messages[1].content[0].input, { input: 'ls -l "x"' });
});

test("the tool choice is sent, hosted tools are left out with a warning, and a choice that nothing can meet is refused", async () => {
  const tools = [weather, { ...weather, name: "two" }, { type: "web_search" }];
  const { body, heard } = await exchangeWell("compatible", { more: { tools, tool_choice: "required" } });
  assert.equal(body.tools.map((tool: Body) => tool.function.name).join(), "get_weather,two");
  assert.equal(body.tool_choice, "required");
  assert.equal(heard.headers.get("x-portico-warning"), "tool web_search left out");
  const named = await exchangeWell("compatible", { more: { tools, tool_choice: { type: "function", name: "two" } } });
  assert.deepEqual(named.body.tool_choice, { type: "function", function: { name: "two" } });
  const refused = await exchange("compatible", { more: { tools: tools.slice(2), tool_choice: "required" } });
  assert.deepEqual([refused.heard.status, refused.heard.error?.["param"]], [400, "tool_choice"]);
});

test("a schema for the answer is sent in each provider's form, and the operator's options reach the package", async () => {
  const properties = { city: { type: "string" } };
  const schema = { type: "object", properties, required: ["city"], additionalProperties: false };
  const text = { format: { type: "json_schema", name: "place", schema } };
  const one = await exchangeWell("compatible", { more: { model: "schemas", text } });
  assert.deepEqual(one.body.response_format.json_schema.schema.required, ["city"]);
  assert.equal(one.headers?.["x-house"], "yes");
  const other = await exchangeWell("google", { more: { text } });
  assert.equal(other.body.generationConfig.responseMimeType, "application/json");
  assert.deepEqual(other.body.generationConfig.responseJsonSchema.required, ["city"]);
});

test("the reasoning effort is sent in each provider's form, and provider_options win", async () => {
  const reasoning = { effort: "low" };
  const bodyFor = async (name: Name, model: string) => (await exchangeWell(name, { more: { model, reasoning } })).body;
  assert.equal((await bodyFor("compatible", "compatible")).reasoning_effort, "low");
  assert.equal((await bodyFor("compatible", "diligent")).reasoning_effort, "high");
  assert.ok((await bodyFor("google", "google")).generationConfig.thinkingConfig);
  assert.ok((await bodyFor("anthropic", "claude-opus-4-5")).thinking.budget_tokens > 0);
});
