/** Compaction: a conversation becomes the user's messages and one sealed summary; and its tokens, counted without an answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answered, call } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { say, type Script, seenBy, toLines, type Turn, usage } from "../harness/house.ts";
import { ask, fetchBody, refuse, shareTalk } from "./aids.ts";

const open = shareTalk();
const compact = "/v1/responses/compact";
const trigger = { type: "compaction_trigger" };
const user = (content: string) => ({ role: "user", content });

/** Tells a summary when it is asked for one, else it reasons and answers. */
const summarises: Script = async function* ({ items, settings }) {
  const isDemand = /summar/i.test(`${settings.instructions} ${toLines(items).at(-1)}`);
  if (isDemand) yield say("Ann ", "asked for 7.");
  else yield [{ type: "reasoning", text: "hm" }, ...say("It is 7.")];
  yield [
    { type: "usage", usage },
    { type: "finish", reason: "stop" },
  ];
};

/** What the model saw, with `summary` where it saw that one, in whatever form. */
function seenAfter(turn: Turn | undefined): readonly string[] {
  const lines = seenBy(turn);
  return lines.map((line, at) => (JSON.stringify(turn?.items[at]).includes("Ann asked for 7.") ? "summary" : line));
}

test("the compact route returns the user's messages in order and one compaction, which begin a new chain", async () => {
  const { address, model } = await open(summarises);
  const first = await ask(address, "Which number?");
  const image = { type: "input_image", image_url: "data:image/png;base64,AA", detail: "auto" };
  const { id, output, ...rest } = await fetchBody(address, "POST", compact, {
    model: "m",
    previous_response_id: first.id,
    input: [{ role: "user", content: [{ type: "input_text", text: "And why?" }, image] }],
    instructions: "Be brief.",
  });
  assert.equal(model.turns.at(-1)?.settings.instructions, "Be brief.");
  const input = toLines(model.turns.at(-1)!.items).filter((line) => line !== "reasoning: hm");
  assert.deepEqual(input.slice(0, 3), ["user: Which number?", "assistant: It is 7.", "user: And why?[image]"]);
  const message = (at: number, content: readonly object[]) => {
    return { id: output[at].id, type: "message", status: "completed", role: "user", content };
  };
  const { encrypted_content } = output[2];
  assert.deepEqual(output, [
    message(0, [{ type: "input_text", text: "Which number?" }]),
    message(1, [{ type: "input_text", text: "And why?" }, image]),
    { id: output[2].id, type: "compaction", encrypted_content },
  ]);
  assert.ok(!encrypted_content.includes("Ann"));
  assert.equal(rest.object, "response.compaction");
  const { input_tokens, output_tokens, total_tokens } = rest.usage;
  assert.deepEqual([input_tokens, output_tokens, total_tokens], [3, 2, 5]);
  assert.equal((await call(address, "GET", `/v1/responses/${id}`)).status, 404);

  const strange = [{ type: "hologram" }, user("Which number?")];
  const { headers } = await call(address, "POST", compact, { model: "m", input: strange });
  const told = ["history", "context", "warning"].map((name) => headers.get(`x-portico-${name}`));
  assert.deepEqual(told, ["stateless", "2 items", "item hologram left out"]);

  await ask(address, [...output, user("Go on.")]);
  const lines = seenAfter(model.turns.at(-1));
  assert.deepEqual(lines, ["user: Which number?", "user: And why?[image]", "summary", "user: Go on."]);
});

test("what is compacted without a model or a conversation is refused by name", async () => {
  const { address, model } = await open();
  const asked = model.turns.length;
  for (const [body, param] of [
    [{}, "model"],
    [{ input: "Hi" }, "model"],
    [{ model: "m" }, "input"],
    [{ model: "m", input: [] }, "input"],
    [{ model: "m", previous_response_id: "resp_0" }, "previous_response_id"],
  ] as const) {
    const refused = await refuse(address, "POST", compact, body);
    assert.deepEqual([refused[0], refused[2]], [400, param], JSON.stringify(body));
  }
  assert.equal(model.turns.length, asked);
});

for (const stream of [false, true]) {
  test(`a compaction trigger is answered with one compaction, which stands for all before it, ${stream ? "streamed" : "whole"}`, async () => {
    const { address, model } = await open(summarises);
    const first = await ask(address, "Which number?");
    const body = { model: "m", previous_response_id: first.id, input: [trigger], stream };
    const { raw } = await call(address, "POST", "/v1/responses", body);
    const response: Answered["body"] = stream ? checkStream(raw).response : JSON.parse(raw);
    const { encrypted_content, id } = response.output[0];
    assert.deepEqual(response.output, [{ id, type: "compaction", encrypted_content }]);
    assert.deepEqual((await fetchBody(address, "GET", `/v1/responses/${response.id}`)).output, response.output);
    await ask(address, "Why?", { previous_response_id: response.id });
    assert.deepEqual(seenAfter(model.turns.at(-1)), ["summary", "user: Why?"]);
  });
}

test("an agent that keeps its history itself carries the compaction instead of it", async () => {
  const { address, model } = await open(summarises);
  const history = [user("Which number?"), { role: "assistant", content: "It is 7." }];
  const { output } = await ask(address, [...history, trigger], { store: false });
  await ask(address, [...output, user("Why?")], { store: false });
  assert.deepEqual(seenAfter(model.turns.at(-1)), ["summary", "user: Why?"]);
});

test("the model is asked for its summary in plain text, without tools", async () => {
  const { address, model } = await open(summarises);
  const tools = [{ type: "function", name: "look", parameters: { type: "object" } }];
  const text = { format: { type: "json_object" } };
  await ask(address, [user("look"), trigger], { store: false, tools, tool_choice: "required", text });
  const { settings } = model.turns.at(-1)!;
  assert.deepEqual(settings.tools ?? [], []);
  assert.ok([undefined, "text"].includes(settings.format?.type));
});

const failures: Readonly<Record<string, Script>> = {
  nothing: [],
  "only blanks": [say(" ", "\n")],
  "a refusal": [[{ type: "refusal", text: "No." }]],
  "half of it": [[...say("Ann"), { type: "finish", reason: "length" }]],
};
for (const [what, answer] of Object.entries(failures)) {
  test(`a summary of which the model tells ${what} fails, and replaces nothing`, async () => {
    const { address, model, seen } = await open(summarises);
    const first = await ask(address, "Which number?");
    model.script = answer;
    const body = { model: "m", previous_response_id: first.id, input: [trigger] };
    const { status, body: told } = await call(address, "POST", "/v1/responses", body);
    assert.ok(status >= 500 || told.status === "failed", `${status}`);
    model.script = summarises;
    await ask(address, "Why?", { previous_response_id: first.id });
    assert.equal(seen()[0], "user: Which number?");
  });
}

test("tokens are estimated without asking the model, and include whatever the request continues", async () => {
  const { address, model } = await open(summarises);
  const count = async (more: object): Promise<number> => {
    const body = { model: "m", input: "Good day", ...more };
    const { object, input_tokens } = await fetchBody(address, "POST", "/v1/responses/input_tokens", body);
    assert.equal(object, "response.input_tokens");
    return input_tokens;
  };
  const asked = model.turns.length;
  const alone = await count({});
  assert.ok(alone >= 2 && alone < 50, `${alone}`);
  assert.ok((await count({ instructions: "a long story ".repeat(20) })) > alone + 50);
  const tools = [{ type: "function", name: "look", description: "a long story ".repeat(20) }];
  assert.ok((await count({ tools })) > alone + 50);
  assert.equal(model.turns.length, asked);
  const long = "a long story ".repeat(20);
  const { id } = await ask(address, long);
  assert.ok((await count({ previous_response_id: id })) > alone + 50);
  const conversation = await fetchBody(address, "POST", "/v1/conversations", { items: [user(long)] });
  assert.ok((await count({ conversation: conversation.id })) > alone + 50);
  const path = `/v1/conversations/${conversation.id}/items`;
  assert.equal((await fetchBody(address, "GET", path)).data.length, 1);
});
