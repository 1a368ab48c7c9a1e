/** Conversations that outgrow their model's window: what the gateway remembered gives way, what the caller shows does not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, messagesOf, replyWith } from "../harness/client.ts";
import { ask, refuse, shareServed } from "./aids.ts";

/** Each long text is 600 to 750 tokens, however one counts: two fit, four never do. */
const open = shareServed({ context_window: 2000 });
const long = (name: string) => `${name} ${"word ".repeat(600)}`;

/** The first word of each message that the model's server was sent last. */
async function seen(): Promise<readonly string[]> {
  const { server } = await open();
  return messagesOf(server.received.at(-1)!).map(
    ({ role, content }) => `${role}: ${(content ?? "call").split(" ")[0]}`,
  );
}

async function start() {
  const { address, server } = await open();
  server.script = replyWith(() => ({ content: "well" }));
  return { address, server };
}

test("a chain that is longer than the window loses its middle, and a header tells how much", async () => {
  const { address } = await start();
  let id: string | undefined;
  for (const [at, name] of ["task", "one", "two", "three", "four"].entries()) {
    const body = { model: "m", input: long(name), previous_response_id: id, truncation: "auto" };
    const { headers, body: told, raw } = await call(address, "POST", "/v1/responses", body);
    id = told.id;
    const left = await seen();
    assert.equal(left.at(-1), `user: ${name}`, raw);
    if (at < 3) continue;
    assert.ok(!left.includes("user: one"), left.join());
    const [, count, omitted] = /^(\d+) items\D+(\d+)/.exec(headers.get("x-portico-context") ?? "") ?? [];
    assert.deepEqual([Number(count), Number(count) + Number(omitted)], [left.length, 2 * at + 1]);
  }
});

test("a chain that may not be truncated is refused when it is longer than the window, and stays as it was", async () => {
  const { address, server } = await start();
  const { id } = await ask(address, long("task"));
  const { id: previous_response_id } = await ask(address, long("one"), { previous_response_id: id });
  const asked = server.received.length;
  for (const stream of [false, true]) {
    const input = long("two").repeat(2);
    const body = { model: "m", input, previous_response_id, stream, truncation: "disabled" };
    const [status, code] = await refuse(address, "POST", "/v1/responses", body);
    assert.deepEqual([status, code], [400, "context_length_exceeded"]);
  }
  assert.equal(server.received.length, asked);
  await ask(address, "short", { previous_response_id });
  assert.equal((await seen()).length, 5);
});

test("a call and its output leave together, and instructions stay", async () => {
  const { address, server } = await start();
  const called = { id: "c1", type: "function", function: { name: "look", arguments: "{}" } };
  server.script = replyWith((received) =>
    messagesOf(received).at(-1)?.content?.startsWith("look") ? { tool_calls: [called] } : { content: "well" },
  );
  const more = { truncation: "auto", instructions: "Be brief." };
  const rules = { role: "system", content: "Be kind." };
  let { id } = await ask(address, [rules, { role: "user", content: long("task") }], more);
  ({ id } = await ask(address, "look", { ...more, previous_response_id: id }));
  const output = { type: "function_call_output", call_id: "c1", output: long("seen") };
  ({ id } = await ask(address, [output], { ...more, previous_response_id: id }));
  assert.deepEqual((await seen()).slice(-3), ["user: look", "assistant: call", "tool: seen"]);
  for (const name of ["three", "four"]) {
    ({ id } = await ask(address, long(name), { ...more, previous_response_id: id }));
    const left = await seen();
    assert.equal(left.includes("assistant: call"), left.includes("tool: seen"), left.join());
    const sent = server.received.at(-1)!.text;
    for (const steering of ["Be brief.", "Be kind."]) assert.ok(sent.includes(steering), steering);
  }
  assert.ok(!(await seen()).includes("tool: seen"));
});

test("the newest message is never left out: what is too long by itself is refused", async () => {
  const { address, server } = await start();
  const { id } = await ask(address, "task");
  const asked = server.received.length;
  const body = { model: "m", input: long("new").repeat(6), previous_response_id: id, truncation: "auto" };
  const [status, code] = await refuse(address, "POST", "/v1/responses", body);
  assert.deepEqual([status, code], [400, "context_length_exceeded"]);
  assert.equal(server.received.length, asked);
});

for (const truncation of [undefined, "auto", "disabled"]) {
  test(`words that the client itself shows are not left out, with truncation ${truncation ?? "unset"}`, async () => {
    const { address, server } = await start();
    const asked = server.received.length;
    const input = ["task", "one", "two", "three", "four"].flatMap((name) => [
      { role: "user", content: long(name) },
      { role: "assistant", content: "well" },
    ]);
    const body = { model: "m", input: [...input, { role: "user", content: "And?" }], truncation };
    const { status, body: told } = await call(address, "POST", "/v1/responses", body);
    assert.deepEqual([status, told.error?.code], [400, "context_length_exceeded"]);
    assert.equal(server.received.length, asked);
  });
}
