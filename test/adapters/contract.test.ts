/** What every kind of adapter does alike, seen by its caller: one table, a row for each kind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, endpoints, hear, tell, tellWell } from "../harness/client.ts";
import { readStream, type WireResponse } from "../harness/grammar.ts";
import { kindNames, openKinds, patient } from "./kinds.ts";
import { share } from "./scene.ts";

const open = share(openKinds);
const pieces = ["Grüße ", "an ", "die ", "世界, ", 'the "world" ', "and\n", "🏳️‍🌈 ", "<b>&amp;</b>\\n ", "too."];
const calls = [
  { callId: "call_paris", name: "get_weather", arguments: '{"city":"Paris, France","days":2}' },
  { callId: "call_rome", name: "get_time", arguments: '{"zone":"Europe/Rome"}' },
];
const tools = calls.map(({ name }) => ({ type: "function", name, parameters: { type: "object" } }));

for (const name of kindNames) {
  test(`${name}: a text arrives complete and in order, streamed or not, on either endpoint`, async () => {
    const { address, kinds } = await open();
    const say = kinds[name].says({ pieces });
    for (const on of endpoints) {
      for (const stream of [false, true]) {
        const heard = await tellWell(address, { on, say, stream, more: { model: name } });
        assert.equal(heard.text, pieces.join(""), `${on} ${stream}`);
      }
    }
  });

  test(`${name}: reasoning comes before the text`, async () => {
    const { address, kinds } = await open();
    const say = kinds[name].says({ reasoning: ["thinking ", "about: ", "the sky"], pieces: ["the ", "sky"] });
    const more = { model: name, reasoning: { effort: "low" } };
    const { raw } = await tellWell(address, { on: "responses", say, more });
    const said = (JSON.parse(raw) as WireResponse).output.map(
      ({ type, content }) => `${type}: ${content?.[0]?.["text"]}`,
    );
    assert.deepEqual(said, ["reasoning: thinking about: the sky", "message: the sky"]);
  });

  test(`${name}: parallel calls arrive with their names and arguments, and their outputs reach the model`, async () => {
    const { address, kinds } = await open();
    const kind = kinds[name];
    const more = { model: name, tools };
    const wish = { say: kind.says({ calls, finish: "tool-calls" }), stream: true, more };
    const asked = await tellWell(address, { on: "responses", ...wish });
    for (const [index, call] of calls.entries()) {
      const { id, ...heard } = asked.calls[index]!;
      assert.deepEqual([heard.name, JSON.parse(heard.arguments)], [call.name, JSON.parse(call.arguments)]);
      if (name !== "echo") assert.equal(id, call.callId);
    }
    assert.equal(asked.calls.length, calls.length);
    kind.says({ pieces: ["Thanks."] });
    const say = asked.calls.map(({ id }, index) => {
      return { type: "function_call_output", call_id: id, output: ["Sunny at 21°", "Noon in Rome"][index] };
    });
    const told = await tellWell(address, { on: "responses", say, more: { ...more, previous_response_id: asked.id } });
    const shown = kind.shown?.() ?? told.text;
    for (const output of ["Sunny at 21°", "Noon in Rome"]) assert.ok(shown.includes(output), shown);
  });

  test(`${name}: the usage is what the model counted`, async () => {
    const { address, kinds } = await open();
    const say = kinds[name].says({ pieces: ["one ", "two ", "three ", "four ", "five ", "six ", "seven"] });
    const { raw } = await tellWell(address, { on: "responses", say, more: { model: name } });
    const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = kinds[name].usage;
    const { usage } = JSON.parse(raw);
    assert.deepEqual([usage.input_tokens, usage.output_tokens], [inputTokens, outputTokens]);
    assert.equal(usage.input_tokens_details.cached_tokens, cachedTokens);
    assert.equal(usage.output_tokens_details.reasoning_tokens, reasoningTokens);
  });

  test(`${name}: an answer that reached its limit says so`, async () => {
    const { address, kinds } = await open();
    const words = "It was so very long that it had to be cut off at the limit".split(/(?<= )/);
    const say = kinds[name].says({ pieces: words, finish: "length" });
    const whole = await tellWell(address, { on: "responses", say, more: { model: name, max_output_tokens: 16 } });
    assert.equal(JSON.parse(whole.raw).incomplete_details?.reason, "max_output_tokens", whole.raw);
    const chat = await tellWell(address, { on: "chat", say, more: { model: name, max_tokens: 14 } });
    assert.equal(JSON.parse(chat.raw).choices[0].finish_reason, "length");
  });

  test(`${name}: a failure before the first word is a status with its meaning`, async () => {
    const { address, kinds } = await open();
    const failure = { status: 429, code: "adapter_rate_limit", message: "Slow down, please." };
    const say = kinds[name].says({ failure });
    for (const stream of [false, true]) {
      const heard = await tell(address, { on: "chat", say, stream, more: { model: name } });
      assert.deepEqual([heard.status, heard.error?.["type"]], [429, "rate_limit_error"]);
      assert.match(String(heard.headers.get("retry-after")), /^\d+$/);
      if (name !== "echo") assert.match(String(heard.error?.["message"]), /Slow down, please\./);
    }
  });

  test(`${name}: a failure after the first word ends the stream with an error, and never as a short answer`, async () => {
    const { address, kinds } = await open();
    const failure = { status: 500, code: "adapter_error", message: "It fell over." };
    const say = kinds[name].says({ pieces: ["Half ", "an "], failure });
    for (const on of endpoints) {
      const heard = await tell(address, { on, say, stream: true, more: { model: name } });
      assert.equal(heard.status, 200);
      assert.match(heard.text, /^Half an ?$/);
      assert.ok(heard.error, heard.raw);
    }
    const whole = await tell(address, { on: "chat", say, more: { model: name } });
    assert.deepEqual([whole.status, whole.error?.["type"]], [502, "api_error"]);
    await tellWell(address, { on: "chat", say: kinds[name].says({ pieces: ["well"] }), more: { model: name } });
  });

  if (name === "echo") continue;
  for (const heard of ["", "Hel"]) {
    test(`${name}: a caller that leaves ${heard === "" ? "before" : "after"} the first word releases the model`, async () => {
      const { address, kinds } = await open();
      const say = kinds[name].says({ hangs: true, pieces: heard === "" ? [] : [heard] });
      const watch = kinds[name].watch!();
      const caller = new AbortController();
      const wish = { on: "chat", say, stream: true, more: { model: name } } as const;
      if (heard === "") {
        const left = assert.rejects(tell(address, wish, caller.signal));
        await watch.asked;
        caller.abort();
        await left;
      } else {
        const response = await begin(address, wish);
        await hear(response, heard);
        response.destroy();
      }
      await watch.gone;
    });
  }

  if (patient.includes(name)) continue;
  for (const [limit, heard, stream] of [
    ["first_byte", [], true],
    ["idle", ["Hel"], true],
    ["total", ["Hel"], false],
  ] as const) {
    test(`${name}: a silence longer than ${limit}_timeout_ms fails the turn and releases the model`, async () => {
      const { address, kinds } = await open();
      const say = kinds[name].says({ hangs: true, pieces: heard });
      const watch = kinds[name].watch!();
      const failed = await tell(address, { on: "responses", say, stream, more: { model: `${name}-${limit}` } });
      assert.equal(failed.status, limit === "idle" ? 200 : 504);
      assert.equal(failed.text, limit === "idle" ? "Hel" : "");
      const error = limit === "idle" ? readStream(failed.raw).at(-2)!["error"] : failed.error;
      const { code, message } = error as Readonly<Record<string, string>>;
      assert.equal(code, `adapter_${limit}_timeout`);
      assert.match(String(message), new RegExp(`${limit}_timeout_ms`));
      await watch.gone;
    });
  }
}
