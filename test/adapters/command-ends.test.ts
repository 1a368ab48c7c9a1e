/** The command adapter with real programs: how they end, and that no process stays behind. */
import assert from "node:assert/strict";
import { ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate as turnOfLoop } from "node:timers/promises";
import { createCommand } from "./made.ts";
import { makeFolder } from "../gateway.ts";
import { answerOf, collect, environment, failureOf, type Options, textOf, turnOf } from "./command-scene.ts";

const node = process.execPath;

/** A socket to which programs connect, so that the test notices when they end. */
async function listen(context: TestContext): Promise<{ readonly path: string; readonly connected: Promise<Socket> }> {
  const connected = Promise.withResolvers<Socket>();
  const server = createServer((socket) => connected.resolve(socket.on("error", () => {}).resume()));
  const path = join(makeFolder(context), "test.sock");
  await once(server.listen(path), "listening");
  context.after(() => server.close());
  return { path, connected: connected.promise };
}

/** A shell that ignores SIGTERM, and has started a program that holds a connection to the test. */
function stubborn(path: string): Options["argv"] {
  const inner = `require("node:net").connect(${JSON.stringify(path)}); process.on("SIGTERM", () => {})`;
  return ["sh", "-c", `trap '' TERM; "$0" -e "$1" & echo started; wait; wait`, node, inner];
}

test("a program that writes more than max_output_bytes is stopped", async () => {
  const failure = await failureOf(answerOf("yes", "Hello", { max_output_bytes: 100_000 }));
  assert.equal(failure.code, "adapter_protocol");
  assert.match(failure.message, /more than 100000 bytes/);
});

test("a gateway without free file descriptors answers overloaded, and recovers when there are some again", async () => {
  const program = `
    import { closeSync, openSync } from "node:fs";
    import { collect, environment, textOf, turnOf } from ${JSON.stringify(import.meta.resolve("./command-scene.ts"))};
    import { createCommand } from ${JSON.stringify(import.meta.resolve("./made.ts"))};
    const adapter = createCommand({ argv: ["cat"], input: "text" }, environment);
    const ask = () => collect(adapter, turnOf("Hello")).then(textOf, ({ code }) => code);
    const before = await ask();
    const taken = [];
    try { for (;;) taken.push(openSync("/dev/null")); } catch {}
    const without = await ask();
    taken.forEach(closeSync);
    console.log([before, without, await ask()].join());`;
  const few = spawn("sh", ["-c", 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', node, program]);
  const [[said]] = await Promise.all([once(few.stdout, "data"), once(few, "exit")]);
  assert.equal(String(said), "Hello,overloaded,Hello\n");
});

for (const [limit, script, stream] of [
  ["first_byte", "sleep 60", true],
  ["idle", "echo one; sleep 60", true],
  ["idle", "echo one; exec >&-; sleep 60", true],
  ["total", "while :; do echo x; done", false],
] as const) {
  test(`the ${limit} timeout stops the program: ${script}`, async () => {
    const failure = await failureOf(
      answerOf(script, turnOf("Hello", { stream }), { [`${limit}_timeout_ms`]: 100, output: "text" }),
    );
    assert.deepEqual([failure.code, failure.wireCode], ["adapter_timeout", `adapter_${limit}_timeout`]);
  });
}

for (const [why, line, code] of [
  ["at a timeout", "", "adapter_timeout"],
  [
    "because it reported a failure",
    '{"type":"error","code":"adapter_rate_limit","message":"Busy."}',
    "adapter_rate_limit",
  ],
] as const) {
  test(`a program that is stopped ${why} may clean up`, async (context) => {
    const { path, connected } = await listen(context);
    const program = `const test = require("node:net").connect(${JSON.stringify(path)}, () => console.log(${JSON.stringify(line)})); process.on("SIGTERM", () => test.end("clean"))`;
    const adapter = createCommand({ argv: [node, "-e", program], idle_timeout_ms: 100 }, environment);
    const failure = failureOf(collect(adapter, turnOf("Hello")));
    let said = "";
    await once(
      (await connected).on("data", (bytes) => (said += bytes)),
      "close",
    );
    assert.equal(said, "clean");
    assert.equal((await failure).code, code);
    await adapter.close?.();
  });
}

test("a program that may not be signalled, as it runs as another user, fails only its own answer", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const denied = Object.assign(new Error("kill EPERM"), { code: "EPERM" });
  const group = context.mock.method(process, "kill", () => {
    throw denied;
  });
  const head = context.mock.method(ChildProcess.prototype, "kill", function (this: ChildProcess) {
    this.emit("error", denied);
    return false;
  });
  const script = `echo '{"type":"error","message":"Broken."}'; sleep 60`;
  const adapter = createCommand({ argv: ["sh", "-c", script] }, environment);
  assert.equal((await failureOf(collect(adapter, turnOf("Hello")))).message, "Broken.");
  context.mock.timers.tick(2_000);
  assert.deepEqual([group.mock.callCount(), head.mock.callCount()], [2, 2]);
  group.mock.restore();
  head.mock.restore();
  await adapter.close?.();
});

test("the time that the reader takes does not count as the program's silence", async () => {
  const script = "echo one; sleep 0.05; yes | head -c 1000000";
  const adapter = createCommand({ argv: ["sh", "-c", script], idle_timeout_ms: 400, output: "text" }, environment);
  let batches = 0;
  let characters = 0;
  for await (const batch of adapter.stream(turnOf(""), new AbortController().signal)) {
    batches += 1;
    characters += textOf(batch).length;
    if (batches === 2) await new Promise((resolve) => setTimeout(resolve, 600));
  }
  assert.ok(characters >= 1_000_000);
});

test("at most max_concurrent programs run, and a slot is free again when one has ended", async () => {
  const adapter = createCommand({ argv: ["sh", "-c", "echo hello; cat"], max_concurrent: 1 }, environment);
  const caller = new AbortController();
  const first = adapter.stream(turnOf("Hello"), caller.signal)[Symbol.asyncIterator]();
  await first.next();
  const failure = await failureOf(collect(adapter, turnOf("Hello")));
  assert.deepEqual([failure.code, failure.retryAfterSeconds], ["overloaded", 1]);
  await first.return?.();
  await adapter.close?.();
  assert.match(textOf(await collect(adapter, turnOf("Hello"))), /^hello/);
});

test("a caller that disconnects ends the program and everything it has started at once", async (context) => {
  const { path, connected } = await listen(context);
  const adapter = createCommand({ argv: stubborn(path) }, environment);
  const caller = new AbortController();
  const answer = adapter.stream(turnOf("Hello"), caller.signal)[Symbol.asyncIterator]();
  await answer.next();
  const closed = once(await connected, "close");
  const next = failureOf(answer.next());
  const began = performance.now();
  caller.abort();
  await closed;
  assert.equal((await next).code, "client_closed");
  assert.ok(performance.now() - began < 1_000, "It was not killed at once.");
});

test("a reader that returns early ends the program too", async (context) => {
  const { path, connected } = await listen(context);
  const adapter = createCommand({ argv: stubborn(path) }, environment);
  const answer = adapter.stream(turnOf("Hello"), new AbortController().signal)[Symbol.asyncIterator]();
  await answer.next();
  const closed = once(await connected, "close");
  await answer.return?.();
  await closed;
});

test("child processes of a program end with it", async (context) => {
  const { path, connected } = await listen(context);
  const inner = `require("node:net").connect(${JSON.stringify(path)}, () => process.send("here"))`;
  const outer = `require("node:child_process")
    .spawn(process.execPath, ["-e", ${JSON.stringify(inner)}], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
    .once("message", () => process.exit(0))`;
  const adapter = createCommand({ argv: [node, "-e", outer] }, environment);
  const answer = collect(adapter, turnOf("Hello"));
  await once(await connected, "close");
  await answer;
});

test("an answer is complete when its program has ended, even if a detached process keeps the output open", async () => {
  const held = `{ detached: true, stdio: ["ignore", "inherit", "inherit"] }`;
  const launch = `require("node:child_process").spawn("sleep", ["60"], ${held})`;
  const script = `const left = ${launch}; left.unref(); console.log("x".repeat(300_000), left.pid)`;
  const adapter = createCommand({ argv: [node, "-e", script], idle_timeout_ms: 10_000 }, environment);
  const [said = "", left] = textOf(await collect(adapter, turnOf("Hello"))).split(" ");
  process.kill(Number(left));
  assert.equal(said.length, 300_000);
});

test("output that came while the gateway was held up is read, however slow its reader is", async (context) => {
  const later = setTimeout;
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const kill = context.mock.method(process, "kill");
  const file = (name: string) => join(folder, name);
  const folder = makeFolder(context);
  const waitFor = (name: string) => `while [ ! -e '${file(name)}' ]; do sleep 0.01; done`;
  const left = `${waitFor("second")}; echo two; touch '${file("said")}'; ${waitFor("third")}; echo three`;
  const held = `{ detached: true, stdio: ["ignore", "inherit", "inherit"] }`;
  const script = `require("node:child_process").spawn("sh", ["-c", ${JSON.stringify(left)}], ${held}).unref(); console.log("one")`;
  const adapter = createCommand({ argv: [node, "-e", script], output: "text" }, environment);
  const answer = adapter.stream(turnOf("Hello"), new AbortController().signal)[Symbol.asyncIterator]();
  await answer.next();
  while (kill.mock.callCount() === 0) await turnOfLoop();
  const second = answer.next();
  await new Promise((resolve) => later(resolve, 1));
  writeFileSync(file("second"), "");
  while (!existsSync(file("said"))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  context.mock.timers.tick(500);
  assert.match(textOf((await second).value ?? []), /two/);
  await turnOfLoop();
  await turnOfLoop();
  writeFileSync(file("third"), "");
  assert.match(textOf((await answer.next()).value ?? []), /three/);
  assert.equal((await answer.next()).done, true);
});

test("a gateway that closes ends its programs", async (context) => {
  const { path, connected } = await listen(context);
  const adapter = createCommand({ argv: stubborn(path) }, environment);
  const answer = adapter.stream(turnOf("Hello"), new AbortController().signal)[Symbol.asyncIterator]();
  await answer.next();
  const closed = once(await connected, "close");
  await adapter.close?.();
  await closed;
  await failureOf(answer.next());
});

test("however many adapters are busy, the process has one listener to its exit: Node warns of more than ten", async () => {
  const listeners = () => process.listenerCount("exit");
  const before = listeners();
  const adapters = [1, 2].map(() => createCommand({ argv: ["sh", "-c", "echo hello; sleep 60"] }, environment));
  const answers = adapters.map((adapter) =>
    adapter.stream(turnOf("Hello"), new AbortController().signal)[Symbol.asyncIterator](),
  );
  for (const answer of answers) await answer.next();
  const busy = listeners();
  for (const adapter of adapters) await adapter.close?.();
  for (const answer of answers) await failureOf(answer.next());
  assert.deepEqual([busy - before, listeners() - before], [1, 0]);
});

test("a gateway that exits leaves no program running", async (context) => {
  const { path, connected } = await listen(context);
  const adapterFile = new URL("./made.ts", import.meta.url).href;
  const gateway = `
    import { createCommand } from ${JSON.stringify(adapterFile)};
    const adapter = createCommand({ argv: ${JSON.stringify(stubborn(path))} }, process.env);
    const turn = { id: "resp_1", model: "m", items: [], settings: { tools: [] }, stream: true };
    const answer = adapter.stream(turn, new AbortController().signal)[Symbol.asyncIterator]();
    await answer.next();
    process.stdin.once("data", () => process.exit());`;
  const child = spawn(node, ["--input-type=module", "-e", gateway], { stdio: ["pipe", "inherit", "inherit"] });
  const closed = once(await connected, "close");
  child.stdin.write("now");
  await once(child, "exit");
  await closed;
});
