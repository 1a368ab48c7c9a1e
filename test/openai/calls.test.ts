/** Calls on the chat wire, however a server cuts, numbers and names them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerEvents, answerJson, chunk, type Script } from "../harness/upstream.ts";
import { type Answer, ask, type Fields, judge, send, shareScene, tools, ways, whole } from "./scene.ts";

const open = shareScene({ functions: { custom_tools: "function" } });

/** Pieces of calls, one an event. */
function pieces(...calls: readonly (Fields | readonly Fields[])[]): Script {
  return answerEvents(...calls.map((call) => chunk({ tool_calls: [call].flat() })), chunk({}, "tool_calls"));
}

/** A piece of a function call; what is undefined is not sent. */
function piece(index?: number, id?: string, name?: string, written?: unknown): Fields {
  return { index, id, type: "function", function: { name, arguments: written } };
}

function message(...calls: readonly Fields[]): Script {
  return answerJson(whole({ content: null, tool_calls: calls }, "tool_calls"));
}

const no = undefined;
const more = (index: number | undefined, written: string) => piece(index, no, no, written);
const look = (written: string) => piece(0, no, "look", written);
const one = ['look {"at":1}'];
const two = ["look {}", 'hear {"a":1}'];
const ends = '"a":1}';
const last = `{${ends}`;
const free = { index: 0, id: "a", type: "custom", custom: { name: "shell", input: "ls" } };
const old = [{ name: "look", arguments: "" }, { arguments: "{}" }].map((call) => chunk({ function_call: call }));

const rows: readonly (readonly [what: string, calls: readonly string[], script: Script])[] = [
  ["in pieces", one, pieces(piece(0, "a", "look", ""), more(0, '{"at"'), more(0, ":1}"))],
  ["interleaved", two, pieces(piece(0, "a", "look"), piece(1, "b", "hear", "{"), more(0, "{}"), more(1, ends))],
  ["without an index", two, pieces([piece(no, "a", "look", "{}"), piece(no, "b", "hear", last)])],
  ["in pieces without an index", two, pieces(piece(no, "a", "look", "{"), more(no, "}"), piece(no, "b", "hear", last))],
  ["with the same index", two, pieces(piece(0, "a", "look", "{}"), piece(0, "b", "hear", last))],
  ["with the same index and no id", two, pieces(piece(0, no, "look", "{"), more(0, "}"), piece(0, no, "hear", last))],
  ["with empty ids", two, pieces(piece(0, "", "look", "{}"), piece(0, "", "hear", "{"), piece(0, "", no, ends))],
  ["with the same id", two, pieces(piece(0, "a", "look", "{}"), piece(1, "a", "hear", "{"), piece(1, "a", no, ends))],
  ["with arguments that are an object", one, pieces(piece(0, "a", "look", { at: 1 }))],
  ["without arguments", ["look {}"], pieces(piece(0, "a", "look"))],
  ["that end with stop", ["look {}"], answerEvents(chunk({ tool_calls: [look("{}")] }), chunk({}, "stop"))],
  ["of free text", ["shell ls -l"], pieces(free, { index: 0, custom: { input: " -l" } })],
  ["in the old form", ["look {}"], answerEvents(...old, chunk({}, "function_call"))],
  ["whole, with one id and index", two, message(piece(0, "a", "look", "{}"), piece(0, "a", "hear", last))],
  ["whole, an object and without an id", one, message(piece(no, no, "look", { at: 1 }))],
];

for (const [what, calls, script] of rows) {
  test(`chat wire: calls ${what} are told`, async () => {
    await judge(await open(), "chat", { calls, finish: "tool_calls", text: "" }, script);
  });
}

test("chat wire: every call has an id of its own, also where the server repeats one or has none", async () => {
  const scene = await open();
  for (const id of ["same", "", undefined]) {
    scene.plays(pieces(piece(0, id, "look", "{}"), piece(1, id, "hear", "{}")));
    for (const way of ways) {
      const { calls } = await ask(scene, { ...way, model: "chat" });
      assert.equal(new Set(calls.map((call) => call.id).filter(Boolean)).size, 2);
    }
  }
});

/** [what comes between the pieces of a call, what callers get beside the call]. */
const between: readonly (readonly [what: string, heard: Partial<Answer>, ...deltas: readonly Fields[]])[] = [
  ["text", { text: "Hi" }, { content: "H" }, { content: "i" }],
  ["a refusal", { refusal: "No." }, { refusal: "No." }],
  ["reasoning", { reasoning: "Hm." }, { reasoning_content: "Hm." }],
  ["another call", { calls: ["look {}", "hear {}"] }, { tool_calls: [piece(1, "b", "hear", "{}")] }],
];

for (const [what, heard, ...deltas] of between) {
  test(`chat wire: a call whose arguments go on after ${what} is told with all of them`, async () => {
    const [begin, end] = [{ tool_calls: [piece(0, "a", "look", "{")] }, { tool_calls: [more(0, "}")] }];
    const script = answerEvents(...[begin, ...deltas, end].map((delta) => chunk(delta)), chunk({}, "tool_calls"));
    await judge(await open(), "chat", { calls: ["look {}"], finish: "tool_calls", ...heard }, script);
  });
}

const input = 'if (a) { b("}") } \\ "é"';
const letters = [...JSON.stringify({ input })].map((letter) => more(0, letter));
const parallel = [piece(0, "a", "shell", '{"input":"a'), piece(1, "b", "look", "{"), more(0, '"}'), more(1, "}")];

const asFunctions: readonly (readonly [what: string, calls: readonly string[], script: Script])[] = [
  ["letter by letter", [`shell ${input}`], pieces(piece(0, "a", "shell", ""), ...letters)],
  ["with blanks", ["shell ls"], pieces(piece(0, "a", "shell", '{ "input": '), more(0, '"ls" }\n'))],
  ["in parallel with others", ["shell a", "look {}"], pieces(...parallel)],
  ["whole", ["shell ls"], message(piece(0, "a", "shell", '{"input":"ls"}'))],
  ["that do not fit the function", ["shell ls -l"], pieces(piece(0, "a", "shell", "ls -l"))],
];

for (const [what, calls, script] of asFunctions) {
  test(`custom_tools: arguments ${what} are the free text of the caller's tool`, async () => {
    await judge(await open(), "functions", { calls, finish: "tool_calls" }, script);
  });
}

test("custom_tools: a tool that takes free text is offered, chosen and shown as a function with one string", async () => {
  const written = { id: "a", type: "custom", custom: { name: "shell", input: 'echo "hi"' } };
  const messages = [
    { role: "user", content: "hi" },
    { role: "assistant", content: null, tool_calls: [written] },
    { role: "tool", tool_call_id: "a", content: "x" },
  ];
  const tool_choice = { type: "custom", custom: { name: "shell" } };
  const sent = await send(await open(), "chat", "functions", { tools: tools.chat, tool_choice, messages });
  const offered = (sent["tools"] as readonly { function: { name: string; parameters: Fields } }[])[2]?.function;
  assert.deepEqual([offered?.name, offered?.parameters["required"]], ["shell", ["input"]]);
  assert.deepEqual(sent["tool_choice"], { type: "function", function: { name: "shell" } });
  const call = { id: "a", type: "function", function: { name: "shell", arguments: '{"input":"echo \\"hi\\""}' } };
  assert.deepEqual((sent["messages"] as readonly Fields[])[1]?.["tool_calls"], [call]);
});
