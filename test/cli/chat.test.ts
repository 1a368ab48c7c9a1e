/** `portico chat`: a conversation at the terminal, in the sessions of the running gateway. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { tellWell } from "../harness/client.ts";
import {
  findFreePort,
  gate,
  type Gateway,
  makeFolder,
  openGateway,
  repeatLast,
  say,
  seenBy,
  token,
} from "../harness/house.ts";
import { type Ended, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { startUpstream } from "../harness/upstream.ts";
import { createFileScope } from "./shared.ts";

const scope = createFileScope();
let opened: Promise<Gateway> | undefined;

/** The gateway of a config file in its folder. */
function open(): Promise<Gateway> {
  const start = async () => {
    const http = { port: await findFreePort() };
    const gateway = await openGateway(scope, { http });
    writeConfig(gateway.folder, toConfig({ gateway: { adapters: { main: { type: "echo" } } }, http }));
    return gateway;
  };
  return (opened ??= start());
}

/** Runs `portico chat ARGS` with these lines on its standard input. */
function chat(context: TestContext, folder: string, lines: string, ...args: readonly string[]): Promise<Ended> {
  const program = runProgram(context, folder, "chat", ...args);
  program.child.stdin!.end(lines);
  return program.ended;
}

test("a message is answered on standard output, and any client continues its session by X-Session-Id", async (context) => {
  const { folder, address, model } = await open();
  model.script = repeatLast;
  const { code, stdout, stderr } = await chat(context, folder, "", "Hello there!", "--session", "garden");
  assert.deepEqual([code, stdout], [0, "re: Hello there!\n"], stderr);
  assert.ok(!stderr.includes(token));
  const heard = await tellWell(address, { on: "responses", say: "And I?", headers: { "x-session-id": "garden" } });
  assert.equal(heard.headers.get("x-portico-history"), "continued");
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: Hello there!", "assistant: re: Hello there!", "user: And I?"]);
});

test("piped lines are one conversation, which continues what another client began", async (context) => {
  const { folder, address, model } = await open();
  model.script = repeatLast;
  await tellWell(address, { on: "chat", say: "before", headers: { "x-session-id": "pipe" } });
  const { code, stdout } = await chat(context, folder, "one\n\ntwo\n", "--session", "pipe");
  assert.deepEqual([code, stdout], [0, "re: one\nre: two\n"]);
  assert.deepEqual(seenBy(model.turns.at(-1)), [
    "user: before",
    "assistant: re: before",
    "user: one",
    "assistant: re: one",
    "user: two",
  ]);
});

test("a failed answer is told on standard error, and is a failure", async (context) => {
  const { folder, model } = await open();
  model.script = async function* () {
    yield [];
    throw new Error("out of words");
  };
  const { code, stdout, stderr } = await chat(context, folder, "", "Hello", "--session", "failed");
  assert.deepEqual([code, stdout.trim()], [1, ""]);
  assert.notEqual(stderr, "");
});

test("Ctrl-C during an answer stops it, and its turn at the model", async (context) => {
  const { folder, model } = await open();
  const stopped = gate();
  model.script = async function* (_turn, signal) {
    yield say("one ");
    await once(signal, "abort");
    stopped.open();
  };
  const program = runProgram(context, folder, "chat", "Count", "--session", "count");
  program.child.stdin!.end();
  await program.said("one");
  const { code } = await program.stop("SIGINT");
  assert.equal(code, 130);
  await stopped.opened;
});

test("--url names another gateway, which is sent the configured token; a token is never an argument", async (context) => {
  const { address, model } = await open();
  model.script = repeatLast;
  const folder = makeFolder(context);
  const elsewhere = ["--url", address, "--model", "m"];
  writeConfig(folder, toConfig());
  assert.equal((await chat(context, folder, "", "Hello", ...elsewhere)).stdout, "re: Hello\n");
  writeConfig(folder, toConfig({ http: { auth_token: "sk-wrong-0123456789" } }));
  const refused = await chat(context, folder, "", "Hello", ...elsewhere);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /token/i);
  const argument = await chat(context, folder, "", "Hello", ...elsewhere, "--token", token);
  assert.equal(argument.code, 2);
});

test("a gateway with the responses endpoint alone is asked there, and its failures are told", async (context) => {
  const http = { port: await findFreePort(), endpoints: { compat_responses: true } };
  const { folder, model } = await openGateway(context, { http });
  writeConfig(folder, toConfig({ gateway: { adapters: { main: { type: "echo" } } }, http }));
  model.script = repeatLast;
  const { code, stdout, stderr } = await chat(context, folder, "one\ntwo\n");
  assert.deepEqual([code, stdout], [0, "re: one\nre: two\n"], stderr);
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: one", "assistant: re: one", "user: two"]);
  model.script = async function* () {
    yield say("half");
    throw new Error("out of words");
  };
  const failed = await chat(context, folder, "", "three");
  assert.deepEqual([failed.code, failed.stdout], [1, "half\n"]);
  assert.notEqual(failed.stderr, "");
});

test("with both endpoints off it is a gateway of its own, unless another one has the store", async (context) => {
  const folder = makeFolder(context);
  const gateway = { adapters: { main: { type: "echo" } } };
  const http = { endpoints: { compat_chat: false, compat_responses: false } };
  writeConfig(folder, toConfig({ gateway, http }));
  const { code, stdout, stderr } = await chat(context, folder, "one\ntwo\n");
  assert.deepEqual([code, stdout, stderr], [0, "one\ntwo\n", ""]);
  assert.equal((await chat(context, folder, "", "three")).stdout, "three\n");
  const hint = "header:x-session-id=terminal";
  const shown = await runProgram(context, folder, "sessions", "show", "--hint", hint).ended;
  assert.match(shown.stdout, /user: one\n.*assistant: one\n.*user: two\n.*user: three\n/s);
  const running = runProgram(context, folder, "start");
  await running.said("config");
  const refused = await chat(context, folder, "", "four");
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /another gateway.*Stop that one/);
  assert.equal((await running.stop()).code, 0);
});

test("whoever else has the gateway's port is sent no token and no word", async (context) => {
  const stranger = await startUpstream((_, response) => {
    response.setHeader("x-request-id", "req_1").end('{"status":"ok"}');
  });
  context.after(() => stranger.close());
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ gateway: { adapters: { main: { type: "echo" } } }, http: { port: stranger.port } }));
  for (const command of [["chat", "My own words"], ["doctor"]]) {
    const program = runProgram(context, folder, ...command);
    program.child.stdin!.end();
    await program.ended;
  }
  const sent = JSON.stringify(stranger.received.map(({ path, headers, text }) => [path, headers, text]));
  assert.ok(!sent.includes(token) && !sent.includes("My own words"), sent);
});
