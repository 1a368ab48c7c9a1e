/** A running gateway reloads its configuration: no request is refused, and running turns finish. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { makeFolder, token } from "../gateway.ts";
import { beginEvents, chunk, type Script, type ScriptedUpstream, startUpstream, writeEvent } from "../upstream.ts";
import { type Program, runProgram, toConfig as toUsualConfig, writeConfig } from "./program.ts";
import { messagesOf, replyWith, tell, tellWell, toRequest } from "./talk.ts";

const options = { skip: process.platform === "win32" && "there is no such signal", timeout: 60_000 };

/** A config file of a gateway that prints only what an operator reads. */
function toConfig(gateway: Record<string, unknown> = {}, http: Record<string, unknown> = {}): string {
  return toUsualConfig({ ...gateway, log: { level: "silent" } }, http);
}

/** Writes a config file, makes the gateway reload it, and returns what it prints once it continues. */
async function reload(program: Program, folder: string, config: string, sign = "Reloaded:"): Promise<string> {
  writeConfig(folder, config);
  return readOutput(program, "SIGHUP", (text) => text.includes(sign) && text.includes("  config "));
}

/** What the gateway prints after a signal, until it is enough. */
function readOutput(program: Program, signal: NodeJS.Signals, isEnough: (text: string) => boolean): Promise<string> {
  const { stdout } = program.child;
  return new Promise((resolve) => {
    let text = "";
    const listen = (piece: string) => {
      text += piece;
      if (!isEnough(text)) return;
      stdout?.off("data", listen);
      resolve(text);
    };
    stdout?.on("data", listen);
    program.child.kill(signal);
  });
}

/** A model that answers with its name and the question; a turn that says `wait` is held until it is released. */
async function startNamed(context: TestContext, name: string) {
  const held: (() => void)[] = [];
  const answer = replyWith((received) => ({ content: `${name}: ${messagesOf(received).at(-1)?.content}` }));
  const script: Script = (received, response) => {
    if (messagesOf(received).at(-1)?.content !== "wait") return answer(received, response);
    beginEvents(response);
    writeEvent(response, chunk({ role: "assistant", content: `${name}: ` }));
    held.push(() => {
      for (const event of [chunk({ content: "waited" }), chunk({}, "stop"), "[DONE]"]) writeEvent(response, event);
      response.end();
    });
  };
  const upstream = await startUpstream(script);
  context.after(() => upstream.close());
  const adapters = { [name]: { type: "openai", base_url: `${upstream.url}/v1`, api_key: "sk-upstream" } };
  return { upstream, adapters, release: () => held.splice(0).forEach((each) => each()) };
}

/** Resolves when the other side has closed every connection to it. */
function connectionsClosed({ sockets }: ScriptedUpstream): Promise<unknown> {
  const open = sockets.filter((socket) => !socket.readableEnded && !socket.destroyed);
  return Promise.all(open.map((socket) => once(socket, "end")));
}

/** Asks for a stream, and returns the rest of it once its first words are there. */
async function beginStream(address: string, more: Record<string, unknown> = {}): Promise<() => Promise<string>> {
  const wish = toRequest({ on: "chat", say: "wait", stream: true, more });
  const response = await fetch(`${address}/v1/chat/completions`, wish);
  assert.equal(response.status, 200);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const read = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
    }
    return text;
  };
  await read(() => text.includes(": "));
  return () => read(() => false);
}

test(
  "a stream continues to its end with the adapter it started with, and requests after the reload use the new one",
  options,
  async (context) => {
    const folder = makeFolder(context);
    const [old, other] = [await startNamed(context, "old"), await startNamed(context, "other")];
    writeConfig(folder, toConfig({ adapters: old.adapters }));
    const program = runProgram(context, folder, "start");
    const address = await program.address();
    assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "old: hi");
    const rest = await beginStream(address);

    const said = await reload(program, folder, toConfig({ adapters: other.adapters }));
    assert.match(said, /^Reloaded: new requests see the new configuration, running turns finish under the old\.$/m);
    assert.ok(said.includes(`listens on ${address}`), said);
    assert.match(said, /^ {2}adapter {4}other/m);
    assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "other: hi");
    assert.equal((await tellWell(address, { on: "responses", say: "hi", stream: true })).text, "other: hi");
    assert.equal(old.upstream.received.length, 2);
    assert.ok(old.upstream.sockets.some((socket) => !socket.readableEnded));

    const isReleased = connectionsClosed(old.upstream);
    old.release();
    const text = await rest();
    assert.match(text, /"content":"waited"/);
    assert.match(text, /data: \[DONE\]\n\n$/);
    await isReleased;
    assert.ok(
      other.upstream.sockets.some((socket) => !socket.readableEnded),
      "the new adapter keeps its connections",
    );
    assert.equal((await program.stop()).code, 0);
  },
);

test("a token that a reload removes is refused at once, and one that it adds is accepted", options, async (context) => {
  const folder = makeFolder(context);
  const name = (owner: string) => ({ name: owner, token: `sk-of-${owner}-0123456789` });
  const statusWith = async (address: string, bearer: string) =>
    (await tell(address, { on: "chat", say: "hi", token: bearer })).status;
  const statusOf = (address: string, owner: string) => statusWith(address, name(owner).token);
  writeConfig(folder, toConfig({}, { tokens: [name("anna"), name("bert")] }));
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  assert.deepEqual([await statusOf(address, "anna"), await statusOf(address, "carl")], [200, 401]);
  assert.equal(await statusWith(address, token), 200);
  await reload(program, folder, toConfig({}, { auth_token: `${token}-new`, tokens: [name("bert"), name("carl")] }));
  const statuses = [await statusOf(address, "anna"), await statusOf(address, "bert"), await statusOf(address, "carl")];
  assert.deepEqual(statuses, [401, 200, 200]);
  assert.deepEqual([await statusWith(address, token), await statusWith(address, `${token}-new`)], [401, 200]);
  assert.equal((await program.stop()).code, 0);
});

test("no request is refused or fails while a busy gateway is reloaded again and again", options, async (context) => {
  const folder = makeFolder(context);
  const [old, other] = [await startNamed(context, "old"), await startNamed(context, "other")];
  writeConfig(folder, toConfig({ adapters: old.adapters }));
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  const keptAlive = new Agent({ keepAlive: true });
  context.after(() => keptAlive.destroy());
  const reloads = 6;
  const total = 200;
  const answers: string[] = [];
  let asked = 0;
  let isReloaded = false;
  const isEnough = () => asked >= total && isReloaded;

  /** Every other one over a new connection, so that the listener is used again and again. */
  function ask(number: number): Promise<string> {
    const { body, ...rest } = toRequest({
      on: "chat",
      say: "hi",
      stream: number % 4 < 2,
      more: { user: `u${number % 7}` },
    });
    return new Promise((resolve, reject) => {
      const asking = request(
        `${address}/v1/chat/completions`,
        { ...rest, agent: number % 2 === 0 && keptAlive },
        (answer) => {
          let text = `${answer.statusCode} `;
          answer.setEncoding("utf8").on("data", (piece: string) => (text += piece));
          answer.on("end", () => resolve(text)).on("error", reject);
        },
      );
      asking.on("error", reject).end(body);
    });
  }
  async function askOn(): Promise<void> {
    while (!isEnough()) answers.push(await ask(asked++));
  }
  const asking = Promise.all(Array.from({ length: 8 }, askOn));
  for (let index = 0; index < reloads; index++) {
    const { adapters, upstream } = index % 2 === 0 ? other : old;
    await reload(program, folder, toConfig({ adapters }));
    const before = upstream.received.length;
    while (upstream.received.length === before) await new Promise((resolve) => setImmediate(resolve));
  }
  isReloaded = true;
  await asking;
  assert.ok(answers.length >= total);
  const isAnswered = (text: string) => /^200 .*"finish_reason":"stop"/s.test(text) && !text.includes('"error"');
  assert.deepEqual(
    answers.filter((text) => !isAnswered(text)),
    [],
  );
  assert.ok(other.upstream.received.length > 0 && old.upstream.received.length > 0);
  assert.equal(
    other.upstream.received.length + old.upstream.received.length,
    answers.length,
    "each turn was asked once",
  );
  assert.equal((await program.stop()).code, 0);
});

test(
  "a turn that started before the reload makes the next one of its session wait, which then sees it",
  options,
  async (context) => {
    const folder = makeFolder(context);
    const [old, other] = [await startNamed(context, "old"), await startNamed(context, "other")];
    const limits = { limits: { heartbeat_ms: 100 } };
    writeConfig(folder, toConfig({ adapters: old.adapters }, limits));
    const program = runProgram(context, folder, "start");
    const address = await program.address();
    const rest = await beginStream(address, { user: "anna" });
    await reload(program, folder, toConfig({ adapters: other.adapters }, limits));

    const wish = { on: "chat", say: "and then?", stream: true, more: { user: "anna" } } as const;
    // The head comes with the first heartbeat: it waits.
    const second = await fetch(`${address}/v1/chat/completions`, toRequest(wish));
    assert.deepEqual([second.status, other.upstream.received.length], [200, 0]);
    old.release();
    assert.match(await rest(), /\[DONE\]/);
    const text = await second.text();
    assert.match(text, /^: heartbeat\n\n/);
    assert.match(text, /\[DONE\]/);
    const [received] = other.upstream.received;
    assert.deepEqual(
      messagesOf(received!).map(({ role, content }) => `${role}: ${content}`),
      ["user: wait", "assistant: old: waited", "user: and then?"],
    );
    assert.equal((await program.stop()).code, 0);
  },
);

test("an invalid configuration changes nothing, not even for running requests", options, async (context) => {
  const folder = makeFolder(context);
  const old = await startNamed(context, "old");
  chmodSync(writeConfig(folder, toUsualConfig({ adapters: old.adapters })), 0o644);
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  const rest = await beginStream(address);
  writeConfig(folder, toConfig({ adapters: old.adapters }, { auth_token: `${token}-new`, prot: 1 }));
  const said = await readOutput(program, "SIGHUP", (text) => text.includes("its old configuration."));
  assert.match(said, /gateway\.http\.prot: unknown key.*\nThe gateway continues with its old configuration\.$/m);
  assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "old: hi");
  assert.equal((await tell(address, { on: "chat", say: "hi", token: `${token}-new` })).status, 401);
  rmSync(join(folder, "portico.json"));
  const gone = await readOutput(
    program,
    "SIGHUP",
    (text) => text.includes("its old configuration.") || text.includes("  config "),
  );
  assert.match(gone, /cannot be read \(ENOENT\).*\nThe gateway continues with its old configuration\.$/m);
  assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "old: hi");
  old.release();
  assert.match(await rest(), /"content":"waited".*\[DONE\]\n\n$/s);
  const { code, stdout, stderr } = await program.stop();
  assert.equal(code, 0);
  assert.match(stdout, /^ {2}warning {4}gateway\.http\.auth_token: is in a file that other users may read/m);
  // Standard error has the log and nothing else, so that its readers can parse every line.
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { level: number; msg: string });
  const failures = lines.filter(({ level }) => level === 50).map(({ msg }) => msg);
  assert.equal(failures.length, 2);
  for (const each of failures) assert.match(each, /^The gateway continues with its old configuration\. The config/);
});

test(
  "a new port is opened when the running turns have ended, and no listener is open without an endpoint",
  options,
  async (context) => {
    const folder = makeFolder(context);
    const old = await startNamed(context, "old");
    writeConfig(folder, toConfig({ adapters: old.adapters }));
    const program = runProgram(context, folder, "start");
    const address = await program.address();
    const rest = await beginStream(address);

    // Closing it makes the port free.
    const { port, close } = await startUpstream();
    await close();
    const moving = reload(program, folder, toConfig({ adapters: old.adapters }, { port }), "Portico ");
    await program.said(
      "Reloading: gateway.http.port changed, which needs a restart; running turns have 30 s to finish.",
    );
    old.release();
    assert.match(await rest(), /"content":"waited".*\[DONE\]\n\n$/s);
    assert.ok((await moving).includes(`listens on http://127.0.0.1:${port}`));
    await assert.rejects(tell(address, { on: "chat", say: "hi" }));
    assert.equal((await tellWell(`http://127.0.0.1:${port}`, { on: "chat", say: "hi" })).text, "old: hi");

    const off = await reload(
      program,
      folder,
      toConfig({ adapters: old.adapters }, { port, endpoints: {} }),
      "Portico ",
    );
    assert.match(
      off,
      /^Reloading: gateway\.http\.endpoints changed, .*\n.* No endpoint is on, so no listener is open\.$/m,
    );
    const on = await reload(program, folder, toConfig({ adapters: old.adapters }, { port }), "Portico ");
    assert.ok(on.includes(`listens on http://127.0.0.1:${port}`));
    assert.equal((await program.stop()).code, 0);
  },
);
