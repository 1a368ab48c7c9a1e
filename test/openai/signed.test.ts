/** Reasoning that a server wants back with the calls it led to: kept with them, sent inside the tool loop, to its maker alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endAfter } from "../harness/house.ts";
import { answerEvents, answerJson, chunk, type Script, startUpstream } from "../harness/upstream.ts";
import { added, type Asked, ask, completed, done, event, type Fields, isStreamed, item } from "./scene.ts";
import { openScene, respond, responseOf, type Scene, says, shareScene, whole } from "./scene.ts";

const open = shareScene({ thinking: { send_reasoning: true } });

const look = { name: "look", arguments: "{}" };
const call = { id: "call_1", type: "function", function: look };
const signature = "c2lnbmVk";
const [rome, italy, thought] = ["Rome, ", "so Italy.", "Rome, so Italy."];
const detail = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 };
const details = (fields: Fields) => ({ reasoning_details: [{ ...detail, ...fields }] });
const block = (thinking: string, signature = "") => ({ thinking_blocks: [{ type: "thinking", thinking, signature }] });
const sealed = { reasoning_details: [{ type: "reasoning.encrypted", data: "AAAA", id: "call_1", index: 0 }] };
const google = { extra_content: { google: { thought_signature: signature } } };
const piece = (fields: Fields) => ({ tool_calls: [{ index: 0, ...fields }] });
const calling = piece(call);

interface Told {
  /** The fields of the message as they go back, and as they are told whole. */
  readonly ofMessage?: Fields | undefined;
  readonly ofCall?: Fields | undefined;
  readonly pieces: readonly Fields[];
}

const signed = details({ text: thought, signature });
const said = [rome, italy].map((text) => ({ reasoning: text, ...details({ text }) }));
const late = details({ signature });
const blocks = [block(rome), block(italy), block("", signature), calling];
const no = undefined;

const scenes: readonly (readonly [
  where: string,
  ofMessage: Told["ofMessage"],
  ofCall: Told["ofCall"],
  pieces: Told["pieces"],
])[] = [
  ["beside readable reasoning", signed, no, [...said, late, calling]],
  ["that comes after the call", signed, no, [...said, calling, late]],
  ["that is all there is of the reasoning", sealed, no, [{ ...calling, ...sealed }]],
  ["in blocks of thought", block(thought, signature), no, blocks],
  ["in a field of the message", google, no, [calling, google]],
  ["of the call itself", no, google, [piece({ ...call, ...google })]],
  ["of the call, in a later piece", no, google, [calling, piece(google)]],
];

/** Calls while the user spoke last, and is done when it has the output. */
function calls({ ofMessage, ofCall, pieces }: Told): Script {
  const streamed = answerEvents(...pieces.map((delta) => chunk(delta)), chunk({}, "tool_calls"));
  const message = { content: null, ...ofMessage, tool_calls: [{ ...call, ...ofCall }] };
  const made = answerJson(whole(message, "tool_calls"));
  return (received, response) => {
    const { messages } = received.json as { readonly messages: readonly Fields[] };
    const script = messages.at(-1)?.["role"] === "tool" ? says("done") : isStreamed(received) ? streamed : made;
    return script(received, response);
  };
}

async function say(scene: Scene, asked: Asked): Promise<string> {
  const { status, raw } = await ask(scene, asked);
  assert.equal(status, 200, raw);
  return raw;
}

/** The model's message as its server gets it back. */
function sentBack({ upstream }: Pick<Scene, "upstream">): Fields {
  const { messages } = upstream.received.at(-1)!.json as { readonly messages: readonly Fields[] };
  return messages.find(({ role }) => role === "assistant") ?? {};
}

const question = { role: "user", content: "Rome?" };
const output = { role: "tool", tool_call_id: "call_1", content: "Sunny." };
const given = { type: "function_call_output", call_id: "call_1", output: "Sunny." };

for (const [where, ofMessage, ofCall, pieces] of scenes) {
  const script = calls({ ofMessage, ofCall, pieces });
  const tool_calls = [{ ...call, ...ofCall }];
  const sent = { role: "assistant", content: null, tool_calls, ...ofMessage };

  test(`a signature ${where} goes back on chat: in a session, though it is not shown, and without one as it is shown`, async () => {
    const scene = await open();
    scene.plays(script);
    const asked = { on: "chat", model: "chat" } as const;
    for (const stream of [false, true]) {
      const more = { user: crypto.randomUUID() };
      await say(scene, { ...asked, say: [question], stream, more });
      await say(scene, { ...asked, say: [output], stream, more });
      assert.deepEqual(sentBack(scene), sent, "only what is new");
      const shown = { role: "assistant", content: "", tool_calls: [call] };
      await say(scene, { ...asked, say: [question, shown, output], more });
      assert.deepEqual(sentBack(scene), sent, "the history");
    }
    const { message } = JSON.parse(await say(scene, { ...asked, say: [question] })).choices[0];
    await say(scene, { ...asked, say: [question, message, output] });
    const back = sentBack(scene);
    for (const [key, value] of Object.entries({ tool_calls, ...ofMessage })) assert.deepEqual(back[key], value);
  });

  test(`a signature ${where} goes back when a response is continued, and with sealed reasoning`, async () => {
    const scene = await open();
    scene.plays(script);
    for (const stream of [false, true]) {
      const include = ["reasoning.encrypted_content"];
      const first = await respond(scene, stream, { model: "chat", input: "Rome?", include });
      assert.doesNotMatch(JSON.stringify(first), /c2lnbmVk|AAAA/);
      await respond(scene, stream, { model: "chat", input: [given], previous_response_id: first["id"] });
      assert.deepEqual(sentBack(scene), sent, "continued");
      if (ofMessage === undefined) continue;
      await respond(scene, stream, { model: "chat", input: [question, ...first.output, given], store: false });
      assert.deepEqual(sentBack(scene), sent, "sealed");
    }
  });
}

test("what one server's model signed goes to no other server, and still to the first", async (context) => {
  const script = calls({ ofMessage: signed, pieces: [...said, late, calling] });
  const other = await startUpstream(script);
  endAfter(context, () => other.close());
  const scene = await openScene(context, { other: { base_url: `${other.url}/v1` } });
  scene.plays(script);
  const more = { user: "ann" };
  await say(scene, { on: "chat", model: "chat", say: [question], more });
  await say(scene, { on: "chat", model: "other", say: [output], more });
  assert.deepEqual(sentBack({ upstream: other }), { role: "assistant", content: null, tool_calls: [call] });
  await say(scene, { on: "chat", model: "chat", say: [output], more });
  assert.deepEqual(sentBack(scene)["reasoning_details"], signed.reasoning_details);
});

for (const [model, sent] of [
  ["thinking", thought],
  ["chat", undefined],
] as const) {
  test(`with send_reasoning ${model === "thinking"} a model's reasoning goes back with its call ${sent ? "in the tool loop" : "never"}`, async () => {
    const scene = await open();
    const reasoning = { reasoning_content: thought };
    scene.plays(calls({ ofMessage: reasoning, pieces: [reasoning, calling] }));
    for (const on of ["chat", "responses"] as const) {
      const more = { user: crypto.randomUUID() };
      await say(scene, { on, model, say: "Rome?", more });
      await say(scene, { on, model, say: [on === "chat" ? output : given], more });
      assert.deepEqual([sentBack(scene)["reasoning_content"], sentBack(scene)["tool_calls"]], [sent, [call]]);
    }
  });
}

test("on the responses wire the server's own sealed reasoning goes back to it before its call, stored or shown", async () => {
  const scene = await open();
  const reasoning = item.reasoning(["Hm."], { encrypted_content: "c2VhbGVk" });
  const items = [reasoning, item.call("call_1", "look", "{}")];
  const hm = event("reasoning_summary_text.delta", { output_index: 0, summary_index: 0, delta: "Hm." });
  const events = [added(0, item.reasoning([])), hm, done(0, reasoning), done(1, items[1]!), completed(items)];
  for (const script of [answerEvents(...events), answerJson(responseOf(items))]) {
    scene.plays(script);
    const first = await respond(scene, true, {
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "low" },
    });
    assert.doesNotMatch(JSON.stringify(first), /c2VhbGVk/);
    scene.plays(says("done"));
    const shown = { input: [question, ...first.output, given], store: false };
    for (const more of [{ input: [given], previous_response_id: first["id"] }, shown]) {
      await respond(scene, false, more);
      const [, before, made, answered] = (scene.last().json as { readonly input: readonly Fields[] }).input;
      assert.deepEqual([before?.["type"], before?.["encrypted_content"]], ["reasoning", "c2VhbGVk"]);
      assert.deepEqual([made?.["type"], made?.["call_id"], answered], ["function_call", "call_1", given]);
    }
  }
});
