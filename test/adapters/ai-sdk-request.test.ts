/** What a turn looks like on the wires of three providers, through their real packages. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { writePrompt } from "../../src/adapters/ai-sdk/prompt.ts";
import { writeRequest } from "../../src/adapters/ai-sdk/request.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item, Part } from "../../src/core/item.ts";
import type { Remark } from "../../src/core/ports.ts";
import type { Settings, Turn } from "../../src/core/turn.ts";
import { startUpstream } from "../upstream.ts";
import {
  type AiSdkOptions,
  type Wire,
  anthropic,
  answerStream,
  compatible,
  createAdapter,
  google,
} from "./ai-sdk-wires.ts";

type Body = any; // oxlint-disable-line typescript/no-explicit-any -- bodies of three wires are looked at field by field

const hello: Item = { type: "message", role: "user", content: "Hello" };

interface Exchange {
  readonly body: Body;
  readonly path: string;
  readonly deltas: readonly Delta[];
  readonly remarks: readonly Remark[];
}

/** Sends a turn; returns the body that the server received, and what the adapter emitted. */
async function exchange(
  wire: Wire,
  items: readonly Item[],
  settings: Partial<Settings> = {},
  answer: readonly string[] = [wire.begin(), wire.say(["Hi"]), wire.end("stop")],
  options: AiSdkOptions = {},
  model = "model-1",
): Promise<Exchange> {
  await using server = await startUpstream(answerStream(...answer));
  const adapter = createAdapter(wire, server.url, options);
  const turn: Turn = { id: "resp_1", model, items, settings: { tools: [], ...settings }, stream: true };
  const deltas: Delta[] = [];
  const remarks: Remark[] = [];
  const collectRemark = (remark: Remark) => void remarks.push(remark);
  for await (const batch of adapter.stream(turn, new AbortController().signal, collectRemark)) deltas.push(...batch);
  const [received] = server.received;
  return { body: received?.json, path: received?.path ?? "", deltas, remarks };
}

function user(...content: Part[]): Item {
  return { type: "message", role: "user", content };
}

async function refusalOf(wire: Wire, items: readonly Item[], settings: Partial<Settings> = {}): Promise<GatewayError> {
  try {
    await exchange(wire, items, settings);
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  return assert.fail("It was not refused.");
}

/** The items that the core makes of an adapter's deltas, as far as these tests need it. */
function toItems(deltas: readonly Delta[]): Item[] {
  const items: Item[] = [];
  for (const delta of deltas) {
    const last = items.at(-1);
    if (delta.type === "text") items.push({ type: "message", role: "assistant", content: delta.text });
    if (delta.type === "tool-call") {
      const { callId = "", name, kind = "function" } = delta;
      items.push({ type: "tool-call", kind, callId, name, arguments: "" });
    }
    if (delta.type === "tool-arguments") {
      const at = items.findIndex((item) => item.type === "tool-call");
      const call = items[at + delta.index] ?? items[at];
      assert.ok(call?.type === "tool-call");
      items[items.indexOf(call)] = { ...call, arguments: call.arguments + delta.text };
    }
    if (delta.type === "reasoning" || delta.type === "reasoning-seal") {
      const open = last?.type === "reasoning" ? last : { type: "reasoning" as const, summary: [], text: "" };
      if (open !== last) items.push(open);
      items[items.length - 1] =
        delta.type === "reasoning"
          ? { ...open, text: open.text + delta.text }
          : { ...open, encrypted: delta.encrypted };
    }
  }
  return items;
}

test("instructions and system messages come first, wherever they were", async () => {
  const items: Item[] = [hello, { type: "message", role: "developer", content: "Rhyme." }, hello];
  const settings = { instructions: "Be brief." };
  const one = await exchange(anthropic, items, settings);
  assert.deepEqual(
    one.body.system.map((part: Body) => part.text),
    ["Be brief.", "Rhyme."],
  );
  const other = await exchange(google, items, settings);
  assert.deepEqual(other.body.systemInstruction.parts, [{ text: "Be brief." }, { text: "Rhyme." }]);
  assert.equal(other.path, "/v1beta/models/model-1:streamGenerateContent?alt=sse");
  const third = await exchange(compatible, items, settings);
  assert.deepEqual(
    third.body.messages.map((message: Body) => message.role),
    ["system", "system", "user", "user"],
  );
});

test("sampling settings, stops and limits reach the model, and unsupported ones are reported as left out", async () => {
  const settings = {
    temperature: 0.5,
    topP: 0.9,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    seed: 7,
    stop: ["END"],
    maxOutputTokens: 50,
    topLogprobs: 2,
  };
  const { body } = await exchange(compatible, [hello], settings);
  assert.deepEqual(
    [
      body.temperature,
      body.top_p,
      body.presence_penalty,
      body.frequency_penalty,
      body.seed,
      body.stop,
      body.max_tokens,
    ],
    [0.5, 0.9, 0.1, 0.2, 7, ["END"], 50],
  );
  const other = await exchange(anthropic, [hello], settings);
  assert.equal(other.body.max_tokens, 50);
  assert.deepEqual(other.body.stop_sequences, ["END"]);
  assert.deepEqual(
    other.remarks.map((remark) => remark.type === "left-out" && remark.what),
    ["top_logprobs", "frequency_penalty", "presence_penalty", "seed"],
  );
});

test("images, files and audio are sent as content or as URLs", async () => {
  const items = [
    user(
      { type: "text", text: "Look:" },
      { type: "image", url: "data:image/png;base64,iVBORw==" },
      { type: "image", url: "https://example.com/cat.jpg" },
      { type: "file", data: "JVBERi0xLjQ=", name: "paper.pdf" },
      { type: "file", data: "data:text/markdown,%23%20Title", name: "notes.md" },
    ),
  ];
  const { body } = await exchange(anthropic, items);
  assert.deepEqual(
    body.messages[0].content.map(({ source, text, title }: Body) => source ?? { text, title }),
    [
      { text: "Look:", title: undefined },
      { type: "base64", media_type: "image/png", data: "iVBORw==" },
      { type: "url", url: "https://example.com/cat.jpg" },
      { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQ=" },
      { type: "text", media_type: "text/plain", data: "# Title" },
    ],
  );
  const sound = user({ type: "audio", data: "AAAA", format: "mp3" });
  const other = await exchange(compatible, [sound]);
  assert.deepEqual(other.body.messages[0].content, [
    { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
  ]);
  const video = { type: "file", url: "https://youtu.be/abc", name: "talk.mp4" } as const;
  const third = await exchange(google, [
    user({ type: "text", text: "Look:" }, { type: "image", url: "data:image/png;base64,iVBORw==" }, video),
  ]);
  assert.deepEqual(third.body.contents[0].parts.slice(1, 3), [
    { inlineData: { mimeType: "image/png", data: "iVBORw==" } },
    { fileData: { mimeType: "video/mp4", fileUri: "https://youtu.be/abc" } },
  ]);
});

test("content that a package cannot send is refused with 400 and the reason", async () => {
  const uploaded = await refusalOf(anthropic, [user({ type: "file", fileId: "file-1" })]);
  assert.equal(uploaded.code, "unsupported_parameter");
  assert.match(uploaded.message, /file id/);
  assert.deepEqual(uploaded.part, { type: "file", fileId: "file-1" });
  const strange = await refusalOf(anthropic, [user({ type: "audio", data: "AAAA", format: "wav" })]);
  assert.equal(strange.status, 400);
  assert.match(strange.message, /audio\/wav/);
});

test("reasoning, redacted reasoning too, goes back with its signatures in the next turn", async () => {
  const call = { callId: "toolu_1", name: "get_weather", arguments: '{"city":"Paris"}' };
  const tools = [{ type: "function", name: "get_weather", parameters: { type: "object" } }] as const;
  const first = await exchange(anthropic, [hello], { tools }, [
    anthropic.begin(),
    anthropic.reason(["Let me ", "think."], "sig-abc"),
    anthropic.hide("hidden-xyz"),
    anthropic.say(["I look."]),
    anthropic.call([call]),
    anthropic.end("tool-calls"),
  ]);
  const output: Item = { type: "tool-output", kind: "function", callId: "toolu_1", output: "Sunny" };
  const said = toItems(first.deltas);
  const second = await exchange(anthropic, [hello, ...said, output], { tools });
  const expected = [
    { type: "thinking", thinking: "Let me think.", signature: "sig-abc" },
    { type: "redacted_thinking", data: "hidden-xyz" },
    { type: "text", text: "I look." },
    { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Paris" } },
  ];
  assert.deepEqual(second.body.messages[1], { role: "assistant", content: expected });
  assert.deepEqual(second.body.messages[2].content, [
    { type: "tool_result", tool_use_id: "toolu_1", content: "Sunny" },
  ]);
  // A caller that stores only the sealed form loses nothing.
  const bare = said.map((item): Item => (item.type === "reasoning" ? { ...item, text: "" } : item));
  const third = await exchange(anthropic, [hello, ...bare, output], { tools });
  assert.deepEqual(third.body.messages[1].content, expected);
});

test("reasoning that another adapter sealed is sent as its text, without the seal", async () => {
  const sealed: Item = { type: "reasoning", summary: [], text: "I think.", encrypted: "gAAAAopaque" };
  const answer: Item = { type: "message", role: "assistant", content: "Hi" };
  const { body } = await exchange(compatible, [hello, sealed, answer, hello]);
  assert.deepEqual(body.messages[1], { role: "assistant", content: "Hi", reasoning_content: "I think." });
});

test("the signature of a call is sent back with it", async () => {
  const calls = [
    { callId: "c1", name: "get_weather", arguments: '{"city":"Paris"}' },
    { callId: "c2", name: "get_weather", arguments: '{"city":"Rome"}' },
  ];
  const tools = [{ type: "function", name: "get_weather", parameters: { type: "object" } }] as const;
  const first = await exchange(google, [hello], { tools }, [
    google.reason(["Hm."]),
    google.call(calls),
    google.end("tool-calls"),
  ]);
  assert.deepEqual(
    first.deltas.map((delta) => delta.type),
    ["reasoning", "reasoning-seal", "tool-call", "tool-arguments", "tool-call", "tool-arguments", "usage", "finish"],
  );
  const outputs = calls.map(({ callId }): Item => ({ type: "tool-output", kind: "function", callId, output: "Sunny" }));
  const said: Item[] = [
    ...toItems(first.deltas.slice(0, 2)),
    ...calls.map((call): Item => ({ type: "tool-call", kind: "function", ...call })),
  ];
  const second = await exchange(google, [hello, ...said, ...outputs], { tools });
  assert.deepEqual(
    second.body.contents[1].parts.map(({ text, functionCall, thoughtSignature }: Body) => [
      text ?? functionCall.args.city,
      thoughtSignature,
    ]),
    [
      ["Hm.", undefined],
      ["Paris", "thought-sig-1"],
      ["Rome", undefined],
    ],
  );
  assert.equal(second.body.contents[2].parts.length, 2);
});

test("images in a tool's output follow the output in a user message", async () => {
  const call: Item = { type: "tool-call", kind: "function", callId: "c1", name: "look", arguments: "{}" };
  const seen: Part[] = [
    { type: "text", text: "A cat." },
    { type: "image", url: "data:image/png;base64,iVBORw==" },
  ];
  const { body } = await exchange(compatible, [
    hello,
    call,
    { type: "tool-output", kind: "function", callId: "c1", output: seen },
  ]);
  assert.deepEqual(body.messages.slice(2), [
    { role: "tool", tool_call_id: "c1", content: "A cat." },
    {
      role: "user",
      content: [
        { type: "text", text: "Output of tool call c1:" },
        { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" } },
      ],
    },
  ]);
});

test("a custom tool is offered as a function with one string, and its calls carry that string as input", async () => {
  const tools = [
    {
      type: "custom",
      name: "shell",
      description: "Runs it.",
      format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
    },
  ] as const;
  const written = { callId: "c1", name: "shell", arguments: '{"input":"ls -l \\"x\\""}' };
  const first = await exchange(anthropic, [hello], { tools }, [
    anthropic.begin(),
    anthropic.call([written]),
    anthropic.end("tool-calls"),
  ]);
  const [tool] = first.body.tools;
  assert.deepEqual(Object.keys(tool.input_schema.properties), ["input"]);
  assert.match(tool.description, /^Runs it\.[^]*lark grammar:\nstart/);
  assert.deepEqual(first.deltas.slice(0, 2), [
    { type: "tool-call", index: 0, callId: "c1", name: "shell", kind: "custom" },
    { type: "tool-arguments", index: 0, text: 'ls -l "x"' },
  ]);
  const output: Item = { type: "tool-output", kind: "custom", callId: "c1", output: "done" };
  const second = await exchange(anthropic, [hello, ...toItems(first.deltas), output], { tools });
  assert.deepEqual(second.body.messages[1].content[0].input, { input: 'ls -l "x"' });
});

test("the tool choice is sent, and hosted tools are reported as left out", async () => {
  const offered = (name: string) => ({ type: "function", name, parameters: { type: "object" } }) as const;
  const hosted = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } } as const;
  const tools = [offered("one"), offered("two"), hosted];
  const { body, remarks } = await exchange(compatible, [hello], {
    tools,
    toolChoice: { type: "required" },
  });
  assert.deepEqual(
    body.tools.map((tool: Body) => tool.function.name),
    ["one", "two"],
  );
  assert.equal(body.tool_choice, "required");
  assert.deepEqual(remarks, [{ type: "left-out", what: "tool web_search" }]);
  const named = await exchange(compatible, [hello], { tools, toolChoice: { type: "tool", name: "one" } });
  assert.deepEqual(named.body.tool_choice, { type: "function", function: { name: "one" } });
  const refused = await refusalOf(compatible, [hello], { tools: [hosted], toolChoice: { type: "required" } });
  assert.equal(refused.param, "tool_choice");
});

test("a schema for the answer is sent to the provider", async () => {
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const format = { type: "schema", name: "place", schema } as const;
  const one = await exchange(compatible, [hello], { format }, undefined, {
    options: { supportsStructuredOutputs: true },
  });
  assert.deepEqual(one.body.response_format.json_schema.schema, schema);
  assert.equal(one.body.response_format.json_schema.name, "place");
  const other = await exchange(google, [hello], { format });
  assert.equal(other.body.generationConfig.responseMimeType, "application/json");
  assert.deepEqual(other.body.generationConfig.responseJsonSchema.required, ["city"]);
  const json = await exchange(google, [hello], { format: { type: "json" } });
  assert.equal(json.body.generationConfig.responseMimeType, "application/json");
});

test("the reasoning effort is sent in each provider's own form, and the operator's options override it", async () => {
  const settings = { reasoningEffort: "low" };
  const one = await exchange(compatible, [hello], settings);
  assert.equal(one.body.reasoning_effort, "low");
  const configured = { provider_options: { house: { reasoningEffort: "high" } } };
  const fixed = await exchange(compatible, [hello], settings, undefined, configured);
  assert.equal(fixed.body.reasoning_effort, "high");
  const thoughts = { provider_options: { google: { thinkingConfig: { includeThoughts: true } } } };
  const other = await exchange(google, [hello], settings, undefined, thoughts);
  const { thinkingBudget, includeThoughts } = other.body.generationConfig.thinkingConfig;
  assert.ok(thinkingBudget > 0);
  assert.equal(includeThoughts, true);
  const third = await exchange(anthropic, [hello], settings, undefined, {}, "claude-opus-4-5");
  assert.ok(third.body.thinking.budget_tokens > 0);
});

const limits = { maxBytes: 100, timeoutMs: 1_000, allowPrivate: false } as const;

for (const [provider, reasoningEffort, written] of [
  ["house.chat", "minimal", { house: { reasoningEffort: "minimal" } }],
  ["house.chat", "extreme", undefined],
  ["anthropic.messages", "none", undefined],
  ["anthropic.messages", "minimal", { anthropic: { effort: "low" } }],
  ["anthropic.messages", "max", { anthropic: { effort: "max" } }],
  ["google.generative-ai", "none", undefined],
  ["google.generative-ai", "low", { google: { thinkingConfig: { thinkingLevel: "low" } } }],
  ["google.generative-ai", "xhigh", { google: { thinkingConfig: { thinkingLevel: "high" } } }],
  ["google.generative-ai", "max", { google: { thinkingConfig: { thinkingLevel: "high" } } }],
] as const) {
  test(`before version 4 of the specification, ${provider} gets the effort ${reasoningEffort} in its own form or not at all`, () => {
    const turn: Turn = {
      id: "resp_1",
      model: "m",
      items: [hello],
      settings: { tools: [], reasoningEffort },
      stream: true,
    };
    const omitted: string[] = [];
    const model = { provider, specificationVersion: "v3" } as const;
    const call = writeRequest(turn, model, {}, (what) => omitted.push(what), limits);
    assert.deepEqual(call.providerOptions, written ?? {});
    assert.deepEqual(omitted, written === undefined ? ["reasoning_effort"] : []);
    assert.equal(call.reasoning, undefined);
    const configured = { google: { thinkingConfig: { includeThoughts: true } } };
    const { providerOptions } = writeRequest(turn, model, configured, () => {}, limits);
    const thinking = (written as { google?: { thinkingConfig: object } } | undefined)?.google?.thinkingConfig;
    assert.deepEqual(providerOptions?.["google"], { thinkingConfig: { ...thinking, includeThoughts: true } });
  });
}

test("what a prompt must not have is written so that providers accept it", () => {
  const call = { type: "tool-call", kind: "function", callId: "a", name: "look" } as const;
  const write = (...items: readonly Item[]) => writePrompt(undefined, items, limits)[0]?.content;
  // Empty texts.
  assert.deepEqual(write({ type: "message", role: "user", content: "" }), [{ type: "text", text: "" }]);
  assert.deepEqual(write({ type: "message", role: "user", content: [{ type: "text", text: "" }] }), [
    { type: "text", text: "" },
  ]);
  assert.equal(write({ type: "message", role: "assistant", content: "" }), undefined);
  assert.equal(write({ type: "reasoning", summary: [], text: "" }), undefined);
  // Arguments that are no object.
  for (const [written, input] of [
    ['{"at":1}', { at: 1 }],
    [" ", {}],
    ['{"at":', { invalid: '{"at":' }],
    ["[1]", { invalid: "[1]" }],
  ] as const) {
    const content = write({ ...call, arguments: written });
    assert.deepEqual(Array.isArray(content) && content[0]?.type === "tool-call" && content[0].input, input);
  }
});

test("a choice that no tool can meet is refused, and the others are sent", () => {
  const look = { type: "function", name: "look", parameters: {} } as const;
  const write = (settings: Settings) => {
    const turn: Turn = { id: "resp_1", model: "m", items: [hello], settings, stream: true };
    return writeRequest(turn, { provider: "house.chat", specificationVersion: "v3" }, {}, () => {}, limits).toolChoice;
  };
  for (const type of ["auto", "none", "required"] as const) {
    assert.deepEqual(write({ tools: [look], toolChoice: { type } }), { type });
  }
  assert.equal(write({ tools: [], toolChoice: { type: "auto" } }), undefined);
  for (const settings of [
    { tools: [look], toolChoice: { type: "tool", name: "find" } },
    { tools: [], toolChoice: { type: "required" } },
  ] as const) {
    assert.throws(() => write(settings), { code: "unsupported_parameter", param: "tool_choice" });
  }
});
