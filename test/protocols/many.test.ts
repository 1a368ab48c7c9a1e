/** Requests with very much of something: each is read and adapted in linear time, and does not block the event loop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Protocol } from "../../src/core/ports.ts";
import { adaptTurn } from "../../src/core/route/adapt.ts";
import type { Turn } from "../../src/core/turn.ts";
import { protocol as chat } from "./chat/script.ts";
import { protocol as responses } from "./responses/script.ts";
import { worked } from "../worked.ts";

/** Quadratic work takes longer. */
const boundMs = 2_000;

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

const toFunction = (index: number) => ({ type: "function", name: `f${index}` });
const toDescribed = (index: number) => ({ ...toFunction(index), description: "What it is for." });
const toChatFunction = (index: number) => ({ type: "function", function: { name: `f${index}` } });
const toNamespace = (index: number, tools: readonly object[]) => ({ type: "namespace", name: `n${index}`, tools });
const spaces = many(64, (space) =>
  toNamespace(
    space,
    many(63, (index) => toFunction(space * 64 + index)),
  ),
);

/** The turn as an adapter that supports none of the dialects gets it. */
function read(protocol: Protocol, body: object): Turn {
  const asked = { model: "m", messages: [{ role: "user", content: "Hi" }], input: "Hi", ...body };
  const { items, settings } = protocol.parse(asked, "default").ask;
  const turn = { id: "resp_1", model: "m", items: items as readonly Item[], settings, stream: false };
  return adaptTurn(turn, {}, () => {}).turn;
}

const cases: readonly (readonly [what: string, protocol: Protocol, body: () => object, tools: number])[] = [
  [
    "40,000 tools of a chat request, all of them allowed",
    chat,
    () => ({
      tools: many(40_000, toChatFunction),
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: many(40_000, toChatFunction) } },
    }),
    40_000,
  ],
  [
    "40,000 tools of a response, all of them allowed",
    responses,
    () => ({
      tools: many(40_000, toFunction),
      tool_choice: { type: "allowed_tools", mode: "auto", tools: many(40_000, toFunction) },
    }),
    40_000,
  ],
  [
    "a type of tools that is allowed many times",
    responses,
    () => ({
      tools: [toFunction(0), ...many(4_000, (index) => ({ type: "mcp", server_label: `l${index}` }))],
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [...many(20_000, () => ({ type: "mcp" })), toFunction(0)],
      },
    }),
    1,
  ],
  [
    "tools of namespaces that are allowed many times",
    responses,
    () => ({
      tools: spaces,
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: many(100_000, (index) => ({ ...toFunction((index % 64) * 64 + 62), namespace: `n${index % 64}` })),
      },
    }),
    64,
  ],
  [
    "a namespace in 10,000 parts",
    responses,
    () => ({
      input: [
        { role: "user", content: "Hi" },
        ...many(10_000, (index) => ({ type: "additional_tools", tools: [toNamespace(0, [toFunction(index)])] })),
      ],
    }),
    10_000,
  ],
  [
    "a long description of a namespace with many tools",
    responses,
    () => ({
      tools: [{ ...toNamespace(0, many(4_000, toDescribed)), description: "long ".repeat(500_000) }],
    }),
    4_000,
  ],
  [
    "a call in a namespace with a very long name",
    responses,
    () => ({
      input: [
        { type: "function_call", call_id: "c", name: "f", namespace: `${"_".repeat(200_000)}x`, arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "" },
      ],
    }),
    0,
  ],
];

for (const [what, protocol, makeBody, tools] of cases) {
  test(`a request is read in linear time: ${what}`, () => {
    const body = makeBody();
    const since = worked();
    const { settings } = read(protocol, body);
    const tookMs = worked() - since;
    assert.equal(settings.tools.length, tools);
    assert.ok(tookMs < boundMs, `it took ${Math.round(tookMs)} ms`);
  });
}

test("more than 1,000 unknown fields are refused, in the body and in a message", () => {
  const fields = Object.fromEntries(many(1_001, (index) => [`x${index}`, 1]));
  const message = { role: "user", content: "Hi", ...fields };
  const refusals: readonly (readonly [Protocol, object, string])[] = [
    [chat, fields, "body"],
    [responses, fields, "body"],
    [chat, { messages: [message] }, "messages[0]"],
    [responses, { input: [message] }, "input[0]"],
  ];
  for (const [protocol, body, param] of refusals) {
    assert.throws(() => read(protocol, body), { param, wireCode: "too_many_properties" });
  }
});

test("a tool or a namespace whose name is longer than 1,000 characters is refused", () => {
  const name = "n".repeat(1_001);
  const refusals: readonly (readonly [Protocol, object, string])[] = [
    [chat, { type: "function", function: { name } }, "tools[0].function.name"],
    [chat, { type: "custom", custom: { name } }, "tools[0].custom.name"],
    [responses, { type: "function", name }, "tools[0].name"],
    [responses, { type: "custom", name }, "tools[0].name"],
    [responses, { type: "namespace", name, tools: [] }, "tools[0].name"],
  ];
  for (const [protocol, tool, param] of refusals) {
    assert.throws(() => read(protocol, { tools: [tool] }), { param, wireCode: "string_too_long" });
  }
});
