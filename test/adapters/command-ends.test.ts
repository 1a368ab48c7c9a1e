/** How programs behind the command adapter end, and that no process stays behind. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { begin, hear, tell } from "../harness/client.ts";
import { makeFolder, openGateway } from "../harness/house.ts";
import { makePipe } from "./scene.ts";

/** A gateway with a shell's script, in which `$pipe` is the writing end of the pipe that the test reads. */
async function openProgram(context: TestContext, script: string, more: object = {}) {
  const path = join(makeFolder(context), "pipe");
  const pipe = makePipe(path);
  const set_env = { pipe: path, node: process.execPath };
  const agent = { type: "command", retries: 0, argv: ["sh", "-c", script], set_env, output: "text", ...more };
  const gateway = { adapters: { agent } };
  return { ...(await openGateway(context, { limits: { drain_timeout_ms: 50 }, gateway })), pipe };
}

const wish = { on: "chat", say: "Hello", stream: true } as const;
/** It ignores SIGTERM, and so does the program that it has started. */
const stubborn = `trap '' TERM; exec 3>"$pipe"; sleep 60 & echo started; wait; wait; sleep 60`;

test("a caller that leaves ends a program at once with everything that it has started, whatever it ignores", async (context) => {
  const { address, pipe } = await openProgram(context, stubborn);
  const response = await begin(address, wish);
  await hear(response, "started");
  response.destroy();
  await pipe.ended;
});

test("a gateway that closes ends its programs when their turns had their time", async (context) => {
  const { address, pipe, close } = await openProgram(context, stubborn);
  const response = await begin(address, wish);
  await hear(response, "started");
  await Promise.all([close(), pipe.ended]);
});

test("what a program has started ends with it, and what left its group is not waited for", async (context) => {
  const left = `"$node" -e 'require("child_process").spawn("sleep", ["5"], { detached: true, stdio: "inherit" }).unref()' 3>&-`;
  const { address, pipe } = await openProgram(context, `exec 3>"$pipe"; sleep 60 & ${left}; echo done`);
  assert.equal((await tell(address, wish)).text, "done");
  await pipe.ended;
});

for (const [why, how, code] of [
  ["is silent too long", "", "adapter_idle_timeout"],
  ["writes nonsense", "printf '\\377'", "adapter_protocol"],
  ["only closes its output", "exec >&-", "adapter_idle_timeout"],
] as const) {
  test(`a program that ${why} is killed with all that it has started`, async (context) => {
    const script = `exec 3>"$pipe"; trap '' TERM; echo started; ${how}\nsleep 60 & wait; wait`;
    const { address, pipe } = await openProgram(context, script, { idle_timeout_ms: 150 });
    const heard = await tell(address, wish);
    assert.equal(heard.error?.["code"], code, heard.raw);
    await pipe.ended;
  });
}

test("a whole answer of a program may be silent until its total timeout", async (context) => {
  const hasty = { first_byte_timeout_ms: 30, idle_timeout_ms: 30 };
  const { address } = await openProgram(context, `exec 3>"$pipe"; sleep 0.1; echo we; sleep 0.1; echo ll`, hasty);
  assert.equal((await tell(address, { ...wish, stream: false })).text, "we\nll");
});
