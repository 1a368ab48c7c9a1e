/** One conversation, whatever happens around it: two endpoints, streams or not, restarts, crashes, other callers. */
import assert from "node:assert/strict";
import { request as send } from "node:http";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { dial } from "../http/websocket-client.ts";
import { beginEvents, chunk, writeEvent } from "../upstream.ts";
import { type Program, runProgram, toConfig, writeConfig } from "./program.ts";
import { endpoints, messagesOf, paths, replyWith, startModel, tell, tellWell, toRequest, type Wish } from "./talk.ts";

const user = "someone@example.com";

for (const store of ["memory:", "sqlite:sessions.db"]) {
  test(`${store} one user's turns on both endpoints, whole and streamed, form one conversation without repetitions`, async (context) => {
    const model = await startModel(context);
    const gateway = await startGateway(context, { adapters: model.adapters, sessions: { store } });
    const wishes: readonly Wish[] = [
      { on: "chat", say: "one" },
      { on: "responses", say: "two" },
      { on: "chat", say: "three", stream: true },
      { on: "responses", say: "four", stream: true },
      { on: "responses", say: [{ role: "user", content: "five" }] },
      { on: "chat", say: "six" },
    ];
    const expected: string[] = [];
    for (const wish of wishes) {
      const result = await tellWell(gateway.address, { ...wish, more: { user } });
      const said = typeof wish.say === "string" ? wish.say : "five";
      assert.equal(result.text, `re: ${said}`);
      assert.equal(result.headers.get("x-portico-history"), expected.length === 0 ? "new" : "continued");
      expected.push(`user: ${said}`);
      assert.deepEqual(model.shown.at(-1), expected);
      assert.equal(result.headers.get("x-portico-context"), `${expected.length} items`);
      expected.push(`assistant: re: ${said}`);
    }
    assert.equal(model.received.length, wishes.length);
  });
}

test("a conversation continues after the gateway was closed and opened again", async (context) => {
  const model = await startModel(context);
  const folder = makeFolder(context);
  const first = await startGateway(context, { adapters: model.adapters }, folder);
  await tellWell(first.address, { on: "chat", say: "one", more: { user } });
  await tellWell(first.address, { on: "responses", say: "two", more: { user } });
  await first.close();
  const second = await startGateway(context, { adapters: model.adapters }, folder);
  await tellWell(second.address, { on: "chat", say: "three", more: { user } });
  assert.deepEqual(model.shown.at(-1), [
    "user: one",
    "assistant: re: one",
    "user: two",
    "assistant: re: two",
    "user: three",
  ]);
});

test("a memory: store forgets everything when the gateway is closed", async (context) => {
  const model = await startModel(context);
  const folder = makeFolder(context);
  const settings = { adapters: model.adapters, sessions: { store: "memory:" } };
  const first = await startGateway(context, settings, folder);
  await tellWell(first.address, { on: "chat", say: "one", more: { user } });
  await first.close();
  const second = await startGateway(context, settings, folder);
  await tellWell(second.address, { on: "chat", say: "two", more: { user } });
  assert.deepEqual(model.shown.at(-1), ["user: two"]);
});

test("a process that is stopped or killed remembers everything it answered, and nothing else", async (context) => {
  const model = await startModel(context);
  const folder = makeFolder(context);
  const file = writeConfig(folder, toConfig({ adapters: model.adapters }));
  const start = () => runProgram(context, folder, "start", "--config", file);

  let program = start();
  const first = await tellWell(await program.address(), { on: "chat", say: "one", more: { user } });
  assert.equal(first.headers.get("x-portico-history"), "new");
  assert.equal((await program.stop("SIGTERM")).code, 0);

  program = start();
  // The process dies as soon as the caller has read the terminal event, without waiting for the connection's end.
  await killAfter(program, { on: "responses", say: "two", stream: true, more: { user } }, "response.completed");

  program = start();
  model.script = (_, response) => {
    beginEvents(response);
    writeEvent(response, chunk({ role: "assistant", content: "half an answer" }));
  };
  await killAfter(program, { on: "chat", say: "lost", stream: true, more: { user } }, "half an answer");

  program = start();
  model.script = replyWith(() => ({ content: "back" }));
  const last = await tellWell(await program.address(), { on: "chat", say: "three", more: { user } });
  assert.equal(last.headers.get("x-portico-session"), first.headers.get("x-portico-session"));
  assert.deepEqual(model.shown.at(-1), [
    "user: one",
    "assistant: re: one",
    "user: two",
    "assistant: re: two",
    "user: three",
  ]);
});

/** Asks for a stream and kills the process in the tick in which the text arrives. */
async function killAfter(program: Program, wish: Wish, text: string): Promise<void> {
  const { method, headers, body } = toRequest(wish);
  const request = send((await program.address()) + paths[wish.on], { method, headers }).end(body);
  const [response] = await once(request, "response");
  let result = "";
  response.setEncoding("utf8").on("data", (piece: string) => {
    result += piece;
    if (result.includes(text)) program.child.kill("SIGKILL");
  });
  response.on("error", () => {});
  await program.ended;
  assert.ok(result.includes(text));
}

const alice = "sk-alice-0123456789abcdef";
const bob = "sk-bob-0123456789abcdef";
const named = {
  port: 0,
  auth_token: token,
  endpoints: { compat_chat: true, compat_responses: true },
  tokens: [
    { name: "alice", token: alice },
    { name: "bob", token: bob },
  ],
};

for (const store of ["memory:", "sqlite:sessions.db"]) {
  test(`${store} owners that send the same user never share a session`, async (context) => {
    const model = await startModel(context);
    const gateway = await startGateway(context, { adapters: model.adapters, sessions: { store }, http: named });
    const sessions = new Set<string | null>();
    for (const on of endpoints) {
      for (const [name, own] of Object.entries({ alice, bob, nobody: token })) {
        const result = await tellWell(gateway.address, { on, say: `${name} on ${on}`, token: own, more: { user } });
        const before = on === "chat" ? [] : [`user: ${name} on chat`, `assistant: re: ${name} on chat`];
        assert.deepEqual(model.shown.at(-1), [...before, `user: ${name} on ${on}`]);
        sessions.add(result.headers.get("x-portico-session"));
      }
    }
    assert.equal(sessions.size, 3);
  });
}

for (const history of ["auto", "resent"] as const) {
  const other = history === "auto" ? "resent" : "auto";
  test(`a token's own history, ${other}, applies instead of the general one, ${history}`, async (context) => {
    const tokens = [
      { name: "alice", token: alice, history: other },
      { name: "bob", token: bob },
    ];
    const http = { ...named, tokens };
    const { address } = await startGateway(context, { sessions: { store: "memory:", history }, http });
    for (const [own, setting] of Object.entries({ [alice]: other, [bob]: history, [token]: history })) {
      const isContinued = setting === "auto";
      await tellWell(address, { on: "chat", say: "one", token: own, more: { user } });
      const { headers } = await tellWell(address, { on: "responses", say: "two", token: own, more: { user } });
      assert.equal(headers.get("x-portico-history"), isContinued ? "continued" : "new");

      const client = await dial(context, address, { authorization: `Bearer ${own}` });
      client.create({ input: "three", user });
      assert.equal((await client.answer()).at(-1)?.response?.usage?.total_tokens, isContinued ? 6 : 2);
    }
  });
}

test("a response is continued by its id after a restart, by its owner only; for anyone else it does not exist", async (context) => {
  const model = await startModel(context);
  const folder = makeFolder(context);
  const settings = { adapters: model.adapters, http: named };
  const before = await startGateway(context, settings, folder);
  const { id } = await tellWell(before.address, { on: "responses", say: "one", token: alice });
  await before.close();

  const { address } = await startGateway(context, settings, folder);
  const go = (own: string, previous: string) =>
    tell(address, { on: "responses", say: "two", token: own, more: { previous_response_id: previous } });
  assert.equal((await go(alice, id)).text, "re: two");
  assert.deepEqual(model.shown.at(-1), ["user: one", "assistant: re: one", "user: two"]);

  const asked = model.received.length;
  const unknown = `resp_${"0".repeat(id.length - "resp_".length)}`;
  const nowhere = await go(bob, unknown);
  assert.equal(nowhere.status, 400);
  assert.equal(nowhere.error?.["code"], "previous_response_not_found");
  for (const own of [bob, token]) {
    const foreign = await go(own, id);
    assert.equal(foreign.status, 400);
    assert.equal(foreign.raw.replaceAll(id, unknown), nowhere.raw);
    assert.deepEqual([...foreign.headers.keys()], [...nowhere.headers.keys()]);
  }
  assert.equal(model.received.length, asked, "the model is not asked");
});

const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } };
const outputs = {
  chat: { role: "tool", tool_call_id: "call_1", content: "sunny" },
  responses: { type: "function_call_output", call_id: "call_1", output: "sunny" },
};
const tools = {
  chat: [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }],
  responses: [{ type: "function", name: "get_weather", parameters: { type: "object" } }],
};

for (const [asks, answers] of [
  ["chat", "responses"],
  ["responses", "chat"],
] as const) {
  for (const stream of [false, true]) {
    test(`a tool call on ${asks} is answered by its output on ${answers}, ${stream ? "streamed" : "whole"}`, async (context) => {
      const model = await startModel(context);
      const gateway = await startGateway(context, { adapters: model.adapters });
      model.script = replyWith(() => ({ tool_calls: [{ index: 0, ...call }] }));
      const more = { user, tools: tools[asks] };
      const { calls } = await tellWell(gateway.address, { on: asks, say: "weather in Rome?", stream, more });
      assert.deepEqual(calls, [
        { id: "call_1", type: "function", name: "get_weather", arguments: call.function.arguments },
      ]);
      model.script = replyWith(() => ({ content: "It is sunny." }));
      const result = await tellWell(gateway.address, { on: answers, say: [outputs[answers]], stream, more: { user } });
      assert.equal(result.text, "It is sunny.");
      assert.deepEqual(messagesOf(model.received.at(-1)!), [
        { role: "user", content: "weather in Rome?" },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "sunny" },
      ]);
    });
  }
}

test("an old and a new token of one name share their sessions", async (context) => {
  const model = await startModel(context);
  const tokens = [
    { name: "alice", token: alice, expires_at: "2999-01-01T00:00:00Z" },
    { name: "alice", token: bob },
  ];
  const gateway = await startGateway(context, { adapters: model.adapters, http: { ...named, tokens } });
  await tellWell(gateway.address, { on: "chat", say: "one", token: alice, more: { user } });
  const { headers } = await tellWell(gateway.address, { on: "responses", say: "two", token: bob, more: { user } });
  assert.equal(headers.get("x-portico-history"), "continued");
  assert.deepEqual(model.shown.at(-1), ["user: one", "assistant: re: one", "user: two"]);
});

test("neither the `user` nor a token ever reaches the model, the disk or the log", async (context) => {
  const secret = "whom-i-speak-for-4711";
  const model = await startModel(context);
  const folder = makeFolder(context);
  const elsewhere = makeFolder(context);
  const file = writeConfig(elsewhere, toConfig({ adapters: model.adapters, data_dir: folder }));
  const program = runProgram(context, elsewhere, "start", "--config", file);
  const address = await program.address();
  for (const on of endpoints) {
    for (const stream of [false, true]) await tellWell(address, { on, say: "hello", stream, more: { user: secret } });
    assert.equal((await tell(address, { on, say: [{ role: "nobody" }], more: { user: secret } })).status, 400);
  }
  for (const received of model.received) {
    assert.ok(!received.text.includes(secret) && !JSON.stringify(received.headers).includes(secret));
    assert.ok(!JSON.stringify(received).includes(token));
  }
  const live = readEverything(folder);
  const { code, stdout, stderr } = await program.stop();
  assert.equal(code, 0);
  assert.match(stdout + stderr, /"path":"\/v1\/responses"/, "requests are logged");
  assert.ok(live.includes("hello"), "the turns are there, and can be searched");
  for (const text of [live, readEverything(folder), stdout, stderr]) {
    assert.ok(!text.includes(secret));
    assert.ok(!text.includes(token));
  }
});

function readEverything(folder: string): string {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return names.map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1")).join("");
}
