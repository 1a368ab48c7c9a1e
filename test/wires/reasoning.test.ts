/** Reasoning: hidden on chat until it is asked for, as it was said on responses, and sealed for who stores nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call as request, paths, tellWell } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { type Delta, openGateway, say, seenBy, shareGateway } from "../harness/house.ts";
import { failure, normalise, playChat, playFailure, playResponse } from "./play.ts";

const open = shareGateway();
const openExposing = shareGateway({ http: { expose_reasoning: true } });
const summed: Delta[] = [
  { type: "reasoning", text: "First", summary: 0 },
  { type: "reasoning", text: "ly", summary: 0 },
  { type: "reasoning", text: "Then", summary: 1 },
];
const raw: Delta[] = [{ type: "reasoning", text: "hm" }];
const include = ["reasoning.encrypted_content"];
const toSummary = (...texts: readonly string[]) => texts.map((text) => ({ type: "summary_text", text }));

const asking = [
  ["nothing", {}, false, true],
  ["include_reasoning", { include_reasoning: true }, true, true],
  ["a reasoning object", { reasoning: { effort: "low" } }, true, true],
  ["include_reasoning null", { include_reasoning: null }, false, true],
  ["include_reasoning false", { include_reasoning: false }, false, false],
  ["reasoning that excludes it", { reasoning: { exclude: true } }, false, false],
] as const;

for (const [what, more, isShown, isExposed] of asking) {
  test(`chat: a request with ${what} gets ${isShown ? "" : "no "}reasoning, and ${isExposed ? "" : "none "}where the operator exposes it`, async () => {
    for (const [gateway, shown] of [
      [await open(), isShown],
      [await openExposing(), isExposed],
    ] as const) {
      const { choice, gathered } = await playChat(gateway, [[...summed, ...say("So.")]], more);
      const { content, reasoning_content: reasoning } = choice.message;
      assert.deepEqual([content, reasoning], ["So.", shown ? "Firstly\n\nThen" : undefined]);
      assert.equal(gathered.message.reasoning, reasoning ?? "");
      const plain = await playChat(gateway, [[...raw, ...say("So.")]], more);
      assert.equal(plain.choice.message.reasoning_content, shown ? "hm" : undefined);
    }
  });
}

test("responses: raw reasoning is a part of its item, and a summary has its sections", async () => {
  const { response, whole } = await playResponse(await open(), [[...summed, ...raw]]);
  const [item] = response.output;
  assert.deepEqual(item!.summary, toSummary("Firstly", "Then"));
  assert.deepEqual(item!.content, [{ type: "reasoning_text", text: "hm" }]);
  assert.deepEqual(normalise(whole), normalise(response));
});

test("responses: a summary is streamed section by section, with the fields of the wire", async () => {
  const said: Delta[] = [{ type: "reasoning", text: "hm", summary: 0 }, ...say("So")];
  const { events } = await playResponse(await open(), [said]);
  const place = { item_id: "rs", output_index: 0, summary_index: 0 };
  const item = { id: "rs", type: "reasoning", status: "in_progress", summary: [] };
  const part = { type: "summary_text", text: "" };
  const summary = toSummary("hm");
  const expected = [
    { type: "response.output_item.added", item, output_index: 0 },
    { type: "response.reasoning_summary_part.added", ...place, part },
    { type: "response.reasoning_summary_text.delta", ...place, delta: "hm" },
    { type: "response.reasoning_summary_text.done", ...place, text: "hm" },
    { type: "response.reasoning_summary_part.done", ...place, part: summary[0] },
    { type: "response.output_item.done", item: { ...item, status: "completed", summary }, output_index: 0 },
  ];
  const found = events.slice(2, 8).map(({ sequence_number: _number, ...event }) => normalise(event));
  assert.deepEqual(found, expected);
});

const forms = [
  [{ summary: "detailed" }, raw, "hm", []],
  [{ summary: "auto" }, summed, undefined, ["Firstly", "Then"]],
  [{ effort: "high" }, raw, "hm", []],
  [undefined, summed, undefined, ["Firstly", "Then"]],
] as const;

for (const [reasoning, said, content, summary] of forms) {
  const kind = said === raw ? "raw reasoning" : "a summary";
  test(`responses: ${kind} for a caller with reasoning ${JSON.stringify(reasoning) ?? "unset"} is in ${content ? "content" : "summary"}`, async () => {
    const { whole, response } = await playResponse(await open(), [[...said, ...say("So")]], { reasoning });
    for (const [item] of [whole.output, response.output]) {
      assert.deepEqual(item!.summary, toSummary(...summary));
      assert.deepEqual(item!.content, content && [{ type: "reasoning_text", text: content }]);
    }
  });
}

test("responses: a summary that is cut off is never done", async () => {
  const half: Delta[] = [{ type: "reasoning", text: "hm", summary: 0 }];
  const stream = await playFailure(await open(), "responses", [half], failure("adapter_error"));
  const { events, response } = checkStream(stream);
  assert.equal(
    events.some(({ type }) => type.endsWith(".done")),
    false,
  );
  assert.deepEqual([response.output[0]!.status, response.output[0]!.summary], ["incomplete", toSummary("hm")]);
});

const sealed = [
  ["raw reasoning", raw, "reasoning: hm"],
  ["a summary", summed, "reasoning: Firstly Then"],
] as const;

for (const [what, said, line] of sealed) {
  test(`responses: ${what} is sealed for a caller that asks, and read again by the model when it comes back`, async () => {
    const gateway = await open();
    const { whole, events, response } = await playResponse(gateway, [[...said, ...say("So")]], { include });
    const added = events.find(({ type }) => type === "response.output_item.added")!;
    assert.equal("encrypted_content" in added.item, false, "it is sealed when it is whole");
    for (const [item] of [whole.output, response.output]) {
      assert.equal(typeof item!["encrypted_content"], "string");
      gateway.model.script = [say("ok")];
      const shown = [
        { ...item, content: undefined },
        { role: "user", content: "And?" },
      ];
      await tellWell(gateway.address, { on: "responses", say: shown });
      assert.deepEqual(seenBy(gateway.model.turns.at(-1)), [line, "user: And?"]);
    }
    const unasked = await playResponse(gateway, [[...said, ...say("So")]]);
    assert.equal("encrypted_content" in unasked.whole.output[0]!, false);
  });
}

test("responses: a model's own seal travels within the gateway's", async () => {
  const gateway = await open();
  const said: Delta[] = [...raw, { type: "reasoning-seal", encrypted: "opaque-of-the-model" }, ...say("So")];
  const { whole } = await playResponse(gateway, [said], { include });
  const [item] = whole.output;
  assert.equal(JSON.stringify(item).includes("opaque-of-the-model"), false);
  gateway.model.script = [say("ok")];
  await tellWell(gateway.address, { on: "responses", say: [item, { role: "user", content: "And?" }] });
  const read = gateway.model.turns.at(-1)!.items.find(({ type }) => type === "reasoning");
  assert.deepEqual(read?.type === "reasoning" && [read.encrypted, read.text], ["opaque-of-the-model", "hm"]);
});

test("responses: sealed content of another owner, or altered, is refused with its path", async (context) => {
  const tokens = ["one", "two"].map((name) => ({ name, token: `sk-${name}-0123456789abcdef` }));
  const { address, model } = await openGateway(context, { http: { tokens } });
  model.script = [[...raw, ...say("So")]];
  const [one, two] = tokens.map(({ token }) => ({ token }));
  const asked = { model: "m", input: "hi", include, store: false };
  const { body } = await request(address, "POST", paths.responses, asked, one);
  const [item] = body.output;
  const show = async (reasoning: object, by: { token: string } | undefined) => {
    const input = [{ role: "user", content: "hi" }, reasoning, { role: "user", content: "And?" }];
    return request(address, "POST", paths.responses, { ...asked, input }, by);
  };
  assert.equal((await show(item, one)).status, 200);
  const altered = { ...item, encrypted_content: `${item.encrypted_content.slice(0, -6)}AAAAAA` };
  for (const [shown, by] of [
    [item, two],
    [altered, one],
  ] as const) {
    const { status, body: refused } = await show(shown, by);
    assert.deepEqual([status, refused.error.code], [400, "invalid_encrypted_content"]);
    assert.equal(refused.error.param, "input[1].encrypted_content");
  }
});
