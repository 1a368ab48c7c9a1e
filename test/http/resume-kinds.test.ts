/** Any answer, however it ends, is replayed from a SQLite file exactly, from any event on. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../gateway.ts";
import { authorization, createBox, say, type Script, usage } from "../scripted.ts";

const logprobs = (token: string): unknown[] => [{ token, logprob: -0.5, bytes: null, top_logprobs: [] }];
const call = (index: number, name: string): Delta => ({ type: "tool-call", index, callId: `call_${name}`, name });
const write = (index: number, text: string): Delta => ({ type: "tool-arguments", index, text });

const answers: Readonly<Record<string, Script>> = {
  text: [say("Good"), say(" day", ", Ann"), [{ type: "usage", usage }]],
  "an empty answer": [[{ type: "finish", reason: "stop" }]],
  "text with log probabilities": [
    [{ type: "text", text: "Good", logprobs: logprobs("Good") }],
    [{ type: "text", text: " day", logprobs: logprobs(" day") }],
  ],
  "reasoning and text": [
    [{ type: "reasoning", text: "Let me" }],
    [
      { type: "reasoning", text: " think" },
      { type: "text", text: "So." },
    ],
  ],
  "parallel calls": [[call(0, "look"), call(1, "ask")], [write(0, '{"a"'), write(1, "{}")], [write(0, ":1}")]],
  "a refusal": [[{ type: "refusal", text: "I will" }], [{ type: "refusal", text: " not" }]],
  "a truncated text": [say("Half", " a"), [{ type: "finish", reason: "length" }]],
  "a failure after some text": async function* () {
    yield say("Half", " a");
    throw new GatewayError("adapter_timeout", "Nothing came.");
  },
  "a failure at once": async function* (): AsyncGenerator<readonly Delta[]> {
    throw new GatewayError("adapter_rate_limit", "Slow down.");
  },
  "a cancelled answer": async function* () {
    yield say("Half", " a");
    throw new GatewayError("cancelled", "Called off.");
  },
};

for (const [name, script] of Object.entries(answers)) {
  test(`${name} is replayed exactly, from any event on`, async (context) => {
    const store = createSqliteStore({ file: join(makeFolder(context), "sessions.db") });
    const box = createBox(context, script, { store });
    context.after(() => store.close());
    const address = await box.listen();
    const send = async (path: string, body?: object): Promise<string[]> => {
      const headers = { authorization, "content-type": "application/json" };
      const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      const text = await (await fetch(`${address}${path}`, { headers, ...init })).text();
      return text.split("\n\n").filter((message) => message !== "");
    };
    const asked = { model: "m", input: "hi", user: "ann", background: true, stream: true };
    const messages = await send("/v1/responses", asked);
    assert.equal(messages.at(-1), "data: [DONE]");
    const { response } = JSON.parse((messages[0] ?? "").replace(/^event: .*\ndata: /, ""));
    const path = `/v1/responses/${response.id}`;
    assert.deepEqual(await send(`${path}?stream=true`), messages);
    for (let after = 0; after < messages.length; after++) {
      const rest = messages.slice(Math.min(after + 1, messages.length - 1));
      assert.deepEqual(await send(`${path}?stream=true&starting_after=${after}`), rest);
    }
    const last = messages.findLast((message) => message.startsWith("event: response."));
    const ended = JSON.parse((last ?? "").replace(/^event: .*\ndata: /, "")).response;
    const [whole = ""] = await send(path);
    assert.deepEqual(JSON.parse(whole).output, ended.output);
    assert.deepEqual(JSON.parse(whole).usage, ended.usage);
  });
}
