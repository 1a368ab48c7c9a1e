/** Reasoning: sealed for its owner where the caller carries it, back to the model inside a tool loop, and only to who made it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, messagesOf } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { call as calls, openGateway, say, type Script, seenBy } from "../harness/house.ts";
import { answerEvents, answerJson, chunk } from "../harness/upstream.ts";
import { ask, refuse, shareServed, shareTalk, stranger, strangersToken } from "./aids.ts";

type Fields = Readonly<Record<string, unknown>>;

const include = ["reasoning.encrypted_content"];
const open = shareTalk({ http: stranger });
const user = (content: string) => ({ role: "user", content });

/** Reasons, then calls when it is asked to, and answers else. */
const thinks: Script = async function* (turn) {
  yield [{ type: "reasoning", text: "A lucky number." }];
  yield seenBy(turn).at(-1) === "user: look" ? calls("c1", "look") : say("It is 7.");
};

for (const stream of [false, true]) {
  test(`reasoning is sealed for who asks for it, and opened again when it comes back, ${stream ? "streamed" : "whole"}`, async () => {
    const { address, seen } = await open(thinks);
    const body = { model: "m", input: [user("look")], store: false, include, stream };
    const { raw } = await call(address, "POST", "/v1/responses", body);
    const { output } = stream ? checkStream(raw).response : JSON.parse(raw);
    const { type, encrypted_content } = output[0];
    assert.equal(type, "reasoning");
    assert.ok(!Buffer.from(encrypted_content, "base64").toString("latin1").includes("lucky"));
    const shown = { type: "reasoning", summary: [], encrypted_content };
    const given = { type: "function_call_output", call_id: "c1", output: "7" };
    await ask(address, [user("look"), shown, output[1], given], { store: false, include });
    assert.deepEqual(seen(), ["user: look", "reasoning: A lucky number.", "call c1: look {}", "output c1: 7"]);
  });
}

for (const what of ["another owner's", "an altered"]) {
  test(`${what} seal is refused by name, and the model is not asked`, async () => {
    const { address, model } = await open(thinks);
    const { output } = await ask(address, "hi", { store: false, include });
    const sealed: string = output[0].encrypted_content;
    const middle = Math.floor(sealed.length / 2);
    const altered = sealed.slice(0, middle) + (sealed[middle] === "A" ? "B" : "A") + sealed.slice(middle + 1);
    const isAltered = what === "an altered";
    const caller = isAltered ? {} : { token: strangersToken };
    const asked = model.turns.length;
    const reasoning = { type: "reasoning", summary: [], encrypted_content: isAltered ? altered : sealed };
    const input = [user("hi"), reasoning, { role: "assistant", content: "It is 7." }, user("why?")];
    const refused = await refuse(address, "POST", "/v1/responses", { model: "m", input, store: false }, caller);
    assert.deepEqual(refused.slice(0, 2), [400, "invalid_encrypted_content"]);
    assert.match(String(refused[2]), /^input\[1\]/);
    assert.equal(model.turns.length, asked);
  });
}

test("a seal is opened by the gateway that is started anew on the same data", async (context) => {
  const first = await openGateway(context, { script: thinks });
  const { output } = await ask(first.address, "hi", { store: false, include });
  await first.close();
  const { address, model } = await openGateway(context, { folder: first.folder });
  await ask(address, [user("hi"), ...output, user("why?")], { store: false });
  assert.ok(seenBy(model.turns.at(-1)).includes("reasoning: A lucky number."));
});

/** How a chat server signs what its model thought, and the same in the pieces of a stream. */
const called = { id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };
const calling = { tool_calls: [{ index: 0, ...called }] };
const piece = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 };
const details = [{ ...piece, text: "Rome, so Italy.", signature: "c2lnbmVk" }];
const google = { google: { thought_signature: "c2lnbmVk" } };
const scenes = {
  "that comes late, after the call": {
    back: { reasoning_details: details },
    whole: { reasoning: "Rome, so Italy.", reasoning_details: details },
    pieces: [
      { reasoning: "Rome, so Italy.", reasoning_details: [{ ...piece, text: "Rome, so Italy." }] },
      calling,
      { reasoning_details: [{ ...piece, signature: "c2lnbmVk" }] },
    ],
  },
  "in the field of another server": {
    back: { extra_content: google },
    whole: { extra_content: google },
    pieces: [calling, { extra_content: google }],
  },
} as const;

type Scene = (typeof scenes)[keyof typeof scenes];

/** A server, and another whose model is as good. */
const openServed = shareServed({}, (url) => ({
  other: { base_url: `${url.replace("127.0.0.1", "localhost")}/other/v1` },
}));

async function play(scene: Scene) {
  const { address, server } = await openServed();
  server.script = (received, reply) => {
    const { messages, stream } = received.json as { readonly messages: readonly Fields[]; readonly stream?: boolean };
    const isAsked = messages.at(-1)?.["role"] === "user";
    const done = { role: "assistant", content: "done" };
    const message = isAsked ? { role: "assistant", content: null, ...scene.whole, tool_calls: [called] } : done;
    const finish = isAsked ? "tool_calls" : "stop";
    const pieces = isAsked ? scene.pieces : [done];
    const streamed = answerEvents(...pieces.map((each) => chunk(each)), chunk({}, finish));
    const whole = answerJson({ choices: [{ index: 0, message, finish_reason: finish }] });
    return (stream === true ? streamed : whole)(received, reply);
  };
  const seen = (): unknown => messagesOf(server.received.at(-1)!).find(({ role }) => role === "assistant");
  return { address, seen };
}

const given = (call_id: string) => ({ type: "function_call_output", call_id, output: "Sunny." });

for (const [where, scene] of Object.entries(scenes)) {
  const back = { role: "assistant", content: null, tool_calls: [called], ...scene.back };
  for (const stream of [false, true]) {
    test(`a signature ${where} returns to its server inside the tool loop, ${stream ? "streamed" : "whole"}`, async () => {
      const { address, seen } = await play(scene);
      const body = { model: "m", input: "Rome?", stream, include };
      const { raw } = await call(address, "POST", "/v1/responses", body);
      assert.ok(!raw.includes("c2lnbmVk"));
      const first = stream ? checkStream(raw).response : JSON.parse(raw);
      await ask(address, [given("call_1")], { previous_response_id: first.id });
      assert.deepEqual(seen(), back, "continued");
      await ask(address, [user("Rome?"), ...first.output, given("call_1")], { store: false });
      assert.deepEqual(seen(), back, "carried by the caller");
    });
  }
}

test("what one server signed goes to no other server", async () => {
  const { address, seen } = await play(scenes["that comes late, after the call"]);
  const first = await ask(address, "Rome?", { include });
  await ask(address, [given("call_1")], { previous_response_id: first.id, model: "other" });
  assert.deepEqual(seen(), { role: "assistant", content: null, tool_calls: [called] });
  await ask(address, [user("Rome?"), ...first.output, given("call_1")], { store: false, model: "other" });
  assert.deepEqual(seen(), { role: "assistant", content: null, tool_calls: [called] });
});

for (const callId of ["call_1", "call_9"]) {
  const isItsOwn = callId === "call_1";
  test(`a session puts what its model signed beside ${isItsOwn ? "its call, which no client can" : "no call of another id"}`, async () => {
    const scene = scenes["that comes late, after the call"];
    const { address, seen } = await play(scene);
    const caller = { headers: { "x-session-id": callId } };
    await ask(address, "Rome?", {}, caller);
    const shown = { type: "function_call", call_id: callId, name: "weather", arguments: "{}" };
    await ask(address, [user("Rome?"), shown, given(callId)], {}, caller);
    const plain = { role: "assistant", content: null, tool_calls: [{ ...called, id: callId }] };
    assert.deepEqual(seen(), { ...plain, ...(isItsOwn && scene.back) });
  });
}
