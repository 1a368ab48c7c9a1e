/** A body as a whole: how much it may have, and how much of it nobody here needs to know. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, endpoints, paths, tellWell } from "../harness/client.ts";
import { say, seenBy, shareGateway } from "../harness/house.ts";

const open = shareGateway();

const repeat = (count: number) => Array.from({ length: count }, () => ({ role: "user", content: "a" }));

const most: readonly (readonly [what: string, param: string, code: string, fields: (count: number) => object])[] = [
  ["messages", "messages", "too_many_messages", (count) => ({ messages: repeat(count) })],
  ["items", "input", "too_many_messages", (count) => ({ input: repeat(count) })],
  [
    "tools",
    "tools",
    "too_many_tools",
    (count) => ({
      input: "hi",
      tools: Array.from({ length: count }, (_, at) => ({ type: "function", name: `f${at}` })),
    }),
  ],
];

for (const [what, param, code, fields] of most) {
  test(`4,096 ${what} are taken, and one more is refused`, async () => {
    const { address, model } = await open();
    model.script = [say("ok")];
    const path = paths[param === "messages" ? "chat" : "responses"];
    const taken = await call(address, "POST", path, { model: "m", store: false, ...fields(4_096) });
    assert.equal(taken.status, 200, taken.raw.slice(0, 500));
    const { status, body } = await call(address, "POST", path, { model: "m", ...fields(4_097) });
    assert.deepEqual([status, body.error.param, body.error.code], [400, param, code]);
    assert.match(body.error.message, /4,?096/);
  });
}

test("64 levels and fields that nobody knows are tolerated", async () => {
  const { address, model } = await open();
  model.script = [say("ok")];
  const unknown = { client_metadata: { id: 1 }, n_ctx: null, stream_options: null, include_obfuscation: true };
  const deep = JSON.parse(`${'{"a":'.repeat(63)}1${"}".repeat(63)}`);
  for (const on of endpoints) {
    const heard = await tellWell(address, { on, say: "hi", more: { deep, ...unknown } });
    assert.equal(heard.text, "ok");
  }
});

test("a field named __proto__ or constructor is one that nobody knows, and changes nothing", async () => {
  const { address, model } = await open();
  model.script = [say("ok")];
  const odd = '"__proto__":{"stream":true,"role":"system"},"constructor":{"prototype":{"stream":true}}';
  const chat = `{"model":"m","messages":[{"role":"user","content":"hi",${odd}}],${odd}}`;
  const responses = `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi",${odd}}],${odd}}],${odd}}`;
  for (const [on, body] of Object.entries({ chat, responses })) {
    const answer = await call(address, "POST", paths[on as "chat"], body);
    assert.equal(answer.status, 200, answer.raw);
    assert.equal(answer.headers.get("content-type")?.includes("event-stream"), false);
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi"]);
  }
  assert.equal(({} as Record<string, unknown>)["stream"], undefined);
});
