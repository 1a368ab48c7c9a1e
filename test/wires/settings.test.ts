/** Settings, formats, tools and the choice of them: in the words of either endpoint, and as the model gets them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, type Endpoint, endpoints, paths, startServer } from "../harness/client.ts";
import { openGateway, shareGateway } from "../harness/house.ts";
import { ask, assertSettings } from "./shown.ts";

const open = shareGateway();

type Row = readonly [what: string, fields: Readonly<Record<string, unknown>>, settings: object];

const parameters = { $schema: "s", type: "object" };
const json_schema = { name: "n", schema: { $ref: "#" }, strict: true };
const f = { type: "function", name: "f" };
const g = { ...f, name: "g", description: "Does it.", parameters, strict: true };
const c = { type: "custom", name: "c" };
const grammar = { syntax: "lark", definition: "start: /.+/" };

/** A tool as chat completions have it. */
const inChat = ({ type, ...rest }: { readonly type: string }) => ({ type, [type]: rest });
const chatAllowed = { mode: "required", tools: [f, c].map(inChat) };
const allow = (tools: readonly object[]) => ({ type: "allowed_tools", mode: "required", tools });

const both: readonly Row[] = [
  ["temperature and top_p", { temperature: 0.5, top_p: 0.9 }, { temperature: 0.5, topP: 0.9 }],
  ["penalties", { presence_penalty: 1, frequency_penalty: -1 }, { presencePenalty: 1, frequencyPenalty: -1 }],
  ["values at the borders", { temperature: 2, top_p: 0, presence_penalty: -2 }, { temperature: 2, topP: 0 }],
  ["one call at a time", { parallel_tool_calls: false }, { parallelToolCalls: false }],
  ["a service tier", { service_tier: "flex" }, { serviceTier: "flex" }],
  ["auto", { tool_choice: "auto" }, { toolChoice: { type: "auto" } }],
  ["none", { tool_choice: "none" }, { toolChoice: { type: "none" } }],
];

const rows: Readonly<Record<Endpoint, readonly Row[]>> = {
  chat: [
    ...both,
    ["a seed", { seed: -7 }, { seed: -7 }],
    ["a seed of 64 bits", { seed: 2 ** 63 - 1024 }, { seed: 2 ** 63 - 1024 }],
    ["the least seed", { seed: -(2 ** 63) }, { seed: -(2 ** 63) }],
    ["a stop sequence", { stop: "END" }, { stop: ["END"] }],
    ["four stop sequences", { stop: ["a", "b", "c", "d"] }, { stop: ["a", "b", "c", "d"] }],
    ["the older limit", { max_tokens: 5 }, { maxOutputTokens: 5 }],
    ["the newer limit", { max_completion_tokens: 9 }, { maxOutputTokens: 9 }],
    ["both limits, of which the newer wins", { max_tokens: 5, max_completion_tokens: 9 }, { maxOutputTokens: 9 }],
    ["log probabilities", { logprobs: true }, { topLogprobs: 0 }],
    ["alternatives", { logprobs: true, top_logprobs: 3 }, { topLogprobs: 3 }],
    [
      "effort and verbosity",
      { reasoning_effort: "high", verbosity: "low" },
      { reasoningEffort: "high", verbosity: "low" },
    ],
    ["one choice", { n: 1 }, {}],
    ["text", { response_format: { type: "text" } }, { format: { type: "text" } }],
    ["JSON", { response_format: { type: "json_object" } }, { format: { type: "json" } }],
    [
      "a schema",
      { response_format: { type: "json_schema", json_schema } },
      { format: { type: "schema", ...json_schema } },
    ],
    ["tools", { tools: [{ ...f, strict: null }, g, c].map(inChat) }, { tools: [f, g, c] }],
    ["a required call", { tools: [inChat(f)], tool_choice: "required" }, { toolChoice: { type: "required" } }],
    ["a function", { tools: [inChat(f)], tool_choice: inChat(f) }, { toolChoice: { type: "tool", name: "f" } }],
    ["a custom tool", { tools: [inChat(c)], tool_choice: inChat(c) }, { toolChoice: { type: "tool", name: "c" } }],
    [
      "allowed_tools, which are enforced",
      { tools: [f, g, c].map(inChat), tool_choice: { type: "allowed_tools", allowed_tools: chatAllowed } },
      { tools: [f, c], toolChoice: { type: "required" } },
    ],
  ],
  responses: [
    ...both,
    ["the least limit", { max_output_tokens: 16 }, { maxOutputTokens: 16 }],
    ["log probabilities", { include: ["message.output_text.logprobs"] }, { topLogprobs: 0 }],
    ["alternatives", { top_logprobs: 20 }, { topLogprobs: 20 }],
    ["effort", { reasoning: { effort: "high", summary: "auto" } }, { reasoningEffort: "high" }],
    ["verbosity", { text: { verbosity: "low" } }, { verbosity: "low" }],
    ["text", { text: { format: { type: "text" } } }, { format: { type: "text" } }],
    ["JSON", { text: { format: { type: "json_object" } } }, { format: { type: "json" } }],
    [
      "a schema",
      { text: { format: { type: "json_schema", ...json_schema } } },
      { format: { type: "schema", ...json_schema } },
    ],
    ["tools", { tools: [{ ...f, description: null, parameters: null, strict: null }, g, c] }, { tools: [f, g, c] }],
    ["a required call", { tools: [f], tool_choice: "required" }, { toolChoice: { type: "required" } }],
    ["a function", { tools: [f], tool_choice: f }, { toolChoice: { type: "tool", name: "f" } }],
    ["a custom tool", { tools: [c], tool_choice: c }, { toolChoice: { type: "tool", name: "c" } }],
    [
      "allowed_tools, which are enforced",
      { tools: [f, g, c], tool_choice: allow([f, c]) },
      { tools: [f, c], toolChoice: { type: "required" } },
    ],
    [
      "allowed_tools without a mode, which is auto",
      { tools: [f, g], tool_choice: { ...allow([f]), mode: null } },
      { tools: [f], toolChoice: { type: "auto" } },
    ],
  ],
};

for (const on of endpoints) {
  for (const [what, fields, settings] of rows[on]) {
    test(`${on}: a request with ${what} reaches the model`, async () => {
      assertSettings(await ask(await open(), on, fields), settings);
    });
  }
}

test("a custom tool's grammar reaches the model", async () => {
  const gateway = await open();
  for (const [on, tool] of [
    ["chat", inChat({ ...c, format: { type: "grammar", grammar } } as typeof c)],
    ["responses", { ...c, format: { type: "grammar", ...grammar } }],
  ] as const) {
    const { settings } = await ask(gateway, on, { tools: [tool] });
    assert.match(JSON.stringify(settings.tools), /"syntax":"lark","definition":"start: \/\.\+\/"/);
  }
});

test("metadata of sixteen pairs is taken, and as long as each may be", async () => {
  const metadata = { ...Array(15).fill("x"), ["é".repeat(64)]: "é".repeat(512) };
  for (const on of endpoints) await ask(await open(), on, { metadata });
});

test("more than one choice is refused, though the model's server could give several", async (context) => {
  const server = await startServer(context);
  const { address } = await openGateway(context, { gateway: { adapters: server.adapters } });
  const messages = [{ role: "user", content: "Hi" }];
  const { status, body } = await call(address, "POST", paths.chat, { model: "m", messages, n: 2 });
  assert.deepEqual([status, body.error?.param, server.received.length], [400, "n", 0]);
});
