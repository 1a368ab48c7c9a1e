/** A request that is part of a trace is continued as a part of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPortico } from "../../src/index.ts";
import { makeFolder, token } from "../gateway.ts";
import { startUpstream } from "../upstream.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

test("the trace of a request is sent to the model's server and logged; a malformed one is not", async (context) => {
  const upstream = await startUpstream((_, response) => {
    const message = { role: "assistant", content: "Hello" };
    const completion = { object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }] };
    response.setHeader("content-type", "application/json").end(JSON.stringify(completion));
  });
  context.after(() => upstream.close());
  const lines: Record<string, unknown>[] = [];
  const log = { info: (fields: object) => void lines.push({ ...fields }), error: () => {} };
  const http = { port: 0, auth_token: token, endpoints: { compat_chat: true, compat_responses: true } };
  const adapters = { up: { type: "openai", base_url: `${upstream.url}/v1`, api_key: "k" } } as const;
  const settings = { gateway: { http, adapters, sessions: { store: "memory:" } } };
  const portico = await openPortico(settings, { folder: makeFolder(context), env: {}, log });
  context.after(() => portico.close());
  const ask = async (path: string, body: object, headers: Record<string, string>) => {
    const all = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
    const answer = await fetch(`${portico.address}${path}`, {
      method: "POST",
      headers: all,
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200, await answer.text());
    const { traceparent: parent, tracestate: state } = upstream.received.at(-1)?.headers ?? {};
    return { parent, state };
  };
  const chat = { model: "m", messages: [{ role: "user", content: "Hello" }] };
  const traced = { traceparent, tracestate: "vendor=1" };
  assert.deepEqual(await ask("/v1/chat/completions", chat, traced), { parent: traceparent, state: "vendor=1" });
  const response = { model: "m", input: "Hello" };
  assert.deepEqual(await ask("/v1/responses", response, { traceparent }), { parent: traceparent, state: undefined });
  const none = { parent: undefined, state: undefined };
  assert.deepEqual(await ask("/v1/responses", response, { tracestate: "vendor=1" }), none);
  for (const wrong of ["", "00-x", traceparent.replace(traceId, "0".repeat(32)), `ff${traceparent.slice(2)}`]) {
    assert.deepEqual(await ask("/v1/chat/completions", chat, { traceparent: wrong }), none);
  }
  const ids = lines.filter(({ path }) => path !== undefined).map(({ traceId: id }) => id);
  assert.deepEqual(ids, [traceId, traceId, undefined, undefined, undefined, undefined, undefined]);
});
