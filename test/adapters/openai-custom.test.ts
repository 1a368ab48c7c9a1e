/**
 * Custom tools on a server that supports functions only: free text as the one string of a function, in both directions.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createReplyReader, readWholeReply } from "../../src/adapters/openai/chat/reply.ts";
import { writeRequest } from "../../src/adapters/openai/chat/request.ts";
import type { Delta } from "../../src/core/delta.ts";
import type { Item } from "../../src/core/item.ts";
import type { Settings, Tool } from "../../src/core/turn.ts";
import { chunk } from "../upstream.ts";

const shell: Tool = {
  type: "custom",
  name: "shell",
  description: "Runs it.",
  format: { type: "grammar", syntax: "lark", definition: "start: X" },
};
const look: Tool = { type: "function", name: "look", parameters: {} };
const written = {
  type: "function",
  function: {
    name: "shell",
    description: "Runs it.\n\nThe input must match this lark grammar:\nstart: X",
    parameters: {
      type: "object",
      properties: { input: { type: "string", description: "The tool's whole input, as plain text." } },
      required: ["input"],
      additionalProperties: false,
    },
  },
};

function asked(items: readonly Item[], settings: Settings) {
  const turn = { id: "resp_1", model: "m", items, settings, stream: false };
  return JSON.parse(writeRequest(turn, { customTools: "function" }).toString()) as Record<string, unknown>;
}

test("a custom tool is offered, and chosen, as a function with one string and its grammar as text", () => {
  const { tools, tool_choice } = asked([], { tools: [look, shell], toolChoice: { type: "tool", name: "shell" } });
  assert.deepEqual(tools, [{ type: "function", function: { name: "look", parameters: {} } }, written]);
  assert.deepEqual(tool_choice, { type: "function", function: { name: "shell" } });
  for (const format of [undefined, { type: "text" }, { type: "grammar" }])
    assert.deepEqual(asked([], { tools: [{ ...shell, format }] })["tools"], [
      { ...written, function: { ...written.function, description: "Runs it." } },
    ]);
});

test("custom tools in a chat caller's own fields are rewritten too, and everything else is unchanged", () => {
  const grammar = { type: "grammar", grammar: { syntax: "lark", definition: "start: X" } };
  const own = { type: "function", function: { name: "look" }, own: 1 };
  const fields = {
    tools: [own, { type: "custom", custom: { name: "shell", description: "Runs it.", format: grammar } }],
    tool_choice: { type: "custom", custom: { name: "shell" } },
    logit_bias: {},
  };
  const { messages: _, ...rest } = asked([], { tools: [look, shell], native: { dialect: "chat", fields } });
  const choice = { type: "function", function: { name: "shell" } };
  assert.deepEqual(rest, { model: "m", tools: [own, written], tool_choice: choice, logit_bias: {} });
  const bare = asked([], { tools: [], native: { dialect: "chat", fields: { tool_choice: "auto" } } });
  assert.deepEqual([bare["tools"], bare["tool_choice"]], [undefined, "auto"]);
});

test("custom calls in the history are sent as function calls, with their extra fields", () => {
  const extra = { dialect: "chat", fields: { extra_content: { signature: "s" } } } as const;
  const items: Item[] = [
    { type: "tool-call", kind: "custom", callId: "c", name: "shell", arguments: 'echo "hi"', extra },
    { type: "tool-output", kind: "custom", callId: "c", output: "hi" },
  ];
  assert.deepEqual(asked(items, { tools: [] })["messages"], [
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          extra_content: { signature: "s" },
          id: "c",
          type: "function",
          function: { name: "shell", arguments: '{"input":"echo \\"hi\\""}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "c", content: "hi" },
  ]);
});

const isCustom = (name: string) => name === "shell";

function deltasOf(...events: readonly unknown[]): readonly (readonly Delta[])[] {
  const reader = createReplyReader((text) => text, isCustom);
  const batches = [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((line) => {
    const deltas = reader.read([Buffer.from(`data: ${line}\n\n`)]);
    reader.check();
    return deltas;
  });
  return batches.filter((deltas) => deltas.length > 0);
}

function piece(text: string, index = 0): unknown {
  return chunk({ tool_calls: [{ index, function: { arguments: text } }] });
}

function begin(name: string, index = 0): unknown {
  return chunk({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name, arguments: "" } }] });
}

const begun = { type: "tool-call", index: 0, callId: "call_0", name: "shell", kind: "custom" };
const finish = { type: "finish", reason: "tool-calls" };

function toArguments(text: string, index = 0) {
  return { type: "tool-arguments", index, text };
}

test("the input of a custom call is emitted as soon as the function's arguments are complete", () => {
  const input = 'if (a) { b("}") } \\ "';
  const json = JSON.stringify({ input });
  const cut = [...json].map((character) => piece(character));
  assert.deepEqual(deltasOf(begin("shell"), ...cut, piece("\n"), chunk({}, "tool_calls")), [
    [begun],
    [toArguments(input)],
    [finish],
  ]);
  const spaced = deltasOf(begin("shell"), piece('{"input": '), piece('"ls" }'), chunk({}, "tool_calls"));
  assert.deepEqual(spaced, [[begun], [toArguments("ls")], [finish]]);
});

test("parallel custom calls get their own inputs, and a function call is still streamed in pieces", () => {
  const second = { ...begun, index: 1, callId: "call_1" };
  const third = { type: "tool-call", index: 2, callId: "call_2", name: "look", kind: "function" };
  const events = [begin("shell"), begin("shell", 1), begin("look", 2), piece('{"input":"a'), piece('{"in', 1)];
  const rest = [piece("{", 2), piece('put":"b"}', 1), piece('"}'), piece("}", 2), chunk({}, "tool_calls")];
  assert.deepEqual(deltasOf(...events, ...rest).flat(), [
    begun,
    second,
    third,
    toArguments("{", 2),
    toArguments("b", 1),
    toArguments("a"),
    toArguments("}", 2),
    finish,
  ]);
});

test("arguments that do not fit the function are emitted unchanged, before the text that follows or at the end", () => {
  const words = { type: "text", text: "So.", logprobs: undefined };
  assert.deepEqual(deltasOf(begin("shell"), piece("ls -l"), chunk({ content: "So." }), chunk({}, "stop")).flat(), [
    begun,
    toArguments("ls -l"),
    words,
    { type: "finish", reason: "stop" },
  ]);
  assert.deepEqual(deltasOf(begin("shell"), piece('{"command":"ls"}'), chunk({}, "tool_calls")).flat(), [
    begun,
    toArguments('{"command":"ls"}'),
    finish,
  ]);
  assert.deepEqual(
    deltasOf(begin("shell"), piece('{"input":"l'), chunk({}, "length")).flat().at(-1),
    toArguments('{"input":"l'),
  );
});

test("a whole answer gives the same deltas, and a custom call of the server itself is unchanged", () => {
  const call = { id: "call_0", type: "function", function: { name: "shell", arguments: '{"input":"ls"}' } };
  const known = { id: "call_0", type: "custom", custom: { name: "shell", input: '{"input":"ls"}' } };
  const read = (tool_call: object) => {
    const choices = [{ index: 0, message: { tool_calls: [tool_call] }, finish_reason: "tool_calls" }];
    return readWholeReply(JSON.stringify({ choices }), (text) => text, isCustom);
  };
  assert.deepEqual(read(call), [begun, toArguments("ls"), finish]);
  assert.deepEqual(read(known), [begun, toArguments('{"input":"ls"}'), finish]);
});
