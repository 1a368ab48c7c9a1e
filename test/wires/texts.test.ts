/** Text as it is: characters that JavaScript cuts in two, line ends of all kinds, and names that objects have of themselves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, endpoints, paths, tellWell } from "../harness/client.ts";
import { type Delta, say, seenBy, shareGateway } from "../harness/house.ts";
import { playChat, playResponse } from "./play.ts";

const open = shareGateway();
const split = ["a\ud83d", "\ude00b"];

test("a character that comes in two halves is whole for the reader, wherever it is said", async () => {
  const gateway = await open();
  const chat = await playChat(
    gateway,
    split.map((text) => [{ type: "text", text }]),
  );
  assert.deepEqual([chat.choice.message.content, chat.gathered.message.content], ["a😀b", "a😀b"]);
  const said: Delta[] = [
    ...split.map((text): Delta => ({ type: "reasoning", text })),
    ...split.map((text): Delta => ({ type: "text", text })),
    { type: "tool-call", index: 0, callId: "c", name: "f", kind: "custom" },
    ...split.map((text): Delta => ({ type: "tool-arguments", index: 0, text })),
  ];
  const { whole, response } = await playResponse(
    gateway,
    said.map((delta) => [delta]),
  );
  for (const { output } of [whole, response]) {
    const [reasoning, message, made] = output;
    assert.deepEqual(
      [reasoning!.content![0]!["text"], message!.content![0]!["text"], made!["input"]],
      ["a😀b", "a😀b", "a😀b"],
    );
  }
});

for (const on of endpoints) {
  test(`${on}: half a character that nobody completes changes nothing around it, and stays as it was said`, async () => {
    const { address, model } = await open();
    model.script = [say("x\ud83d", "y")];
    const more = { user: `lone ${on}` };
    for (const stream of [false, true]) {
      const heard = await tellWell(address, { on, say: "q\ud83d!", stream, more });
      assert.equal(heard.text, "x\ud83dy");
    }
    await tellWell(address, { on, say: "And?", more });
    const seen = seenBy(model.turns.at(-1));
    assert.deepEqual(seen.slice(-3), ["user: q\ud83d!", "assistant: x\ud83dy", "user: And?"]);
  });

  test(`${on}: no text can be taken for the end of an event or of the stream`, async () => {
    const { address, model } = await open();
    const odd = ["data: [DONE]\n\n", "\r\n\r\nevent: error\ndata: {}\n\n", "\u2028\u0000\u0085\ufeff", '"}]}\\'];
    model.script = [say(...odd)];
    for (const stream of [false, true]) {
      const heard = await tellWell(address, { on, say: odd.join(""), stream });
      assert.equal(heard.text, odd.join(""));
      assert.deepEqual(seenBy(model.turns.at(-1)), [`user: ${odd.join("")}`]);
    }
  });
}

test("a schema, arguments and a model that are named __proto__ are repeated as any other", async () => {
  const { address, model } = await open();
  const parameters = '{"type":"object","properties":{"__proto__":{"type":"string"}}}';
  const written = '{"__proto__":"a","constructor":1}';
  model.script = [
    [
      { type: "tool-call", index: 0, callId: "__proto__", name: "constructor" },
      { type: "tool-arguments", index: 0, text: written },
    ],
  ];
  const tool = `"type":"function","name":"constructor","parameters":${parameters}`;
  const body = `{"model":"__proto__","input":"Hi","tools":[{${tool}}],"metadata":{"__proto__":"b"}}`;
  const answer = await call(address, "POST", paths.responses, body);
  assert.equal(answer.status, 200, answer.raw);
  const [item] = answer.body.output;
  assert.deepEqual(
    [answer.body.model, item.call_id, item.name, item.arguments],
    ["__proto__", "__proto__", "constructor", written],
  );
  assert.ok(answer.raw.includes('"metadata":{"__proto__":"b"}'));
  assert.equal(JSON.stringify(answer.body.tools[0].parameters), parameters);
  const [seen] = model.turns.at(-1)!.settings.tools;
  assert.equal(JSON.stringify(seen?.type === "function" && seen.parameters), parameters);
});
