/** The gateway as an operator starts and stops it: config files, first runs, npm, signals, sockets. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { request as send, type IncomingMessage, type RequestOptions } from "node:http";
import { connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { makeFolder, token } from "../gateway.ts";
import { begin, type Begun, runHere } from "../cli/screen.ts";
import { runNpm, runProgram, toConfig, writeConfig } from "./program.ts";
import { endpoints, paths, readAnswer, tell, tellWell, toRequest, type Wish } from "./talk.ts";

const specified = `{
  "gateway": {
    "http": {
      "bind": "127.0.0.1",
      "port": 0,
      "auth_token": "${token}",
      "endpoints": {
        "compat_chat": true,
        "compat_responses": true
      }
    }
  }
}
`;

/** Starts a gateway within this process, for what is the same there. */
function startHere(context: TestContext, file: string): Begun {
  const begun = begin(dirname(file), ["start", "--config", file]);
  context.after(() => {
    begun.signal("SIGTERM");
    return begun.ended;
  });
  return begun;
}

/** A gateway within this process does not print its log. */
const quietly = { log: { level: "silent" } };

test("the specification's configuration, and nothing else, answers on both endpoints", async (context) => {
  const folder = makeFolder(context);
  const program = runProgram(context, folder, "start", "--config", writeConfig(folder, specified));
  const address = await program.address();
  for (const on of endpoints) {
    for (const stream of [false, true]) {
      assert.equal((await tellWell(address, { on, say: "Good morning", stream })).text, "Good morning");
    }
    assert.equal((await tell(address, { on, say: "hello", token: "sk-wrong" })).status, 401);
  }
  const { code, stdout } = await program.stop();
  assert.equal(code, 0);
  assert.doesNotMatch(stdout, /warning/);
  assert.ok(!stdout.includes(token));
});

test("npm start passes its arguments on, and Ctrl-C lets a running stream end", async (context) => {
  const folder = makeFolder(context);
  const file = writeConfig(folder, toConfig(slowly));
  const program = runNpm(context, folder, "start", "--", "--config", file);
  const address = await program.address();
  const answer = await beginStream({ on: "chat", say: words, stream: true }, toTarget(address));
  // A terminal sends the signal to the whole group; npm passes it on as well.
  const ended = program.stop("SIGINT");
  await program.said("Draining");
  const result = await answer.rest();
  assert.equal(result.text, words);
  await ended;
});

for (const [off, on] of [
  ["chat", "responses"],
  ["responses", "chat"],
] as const) {
  test(`the ${off} endpoint, when off, answers 404 and names the key, and ${on} answers`, async (context) => {
    const folder = makeFolder(context);
    const switches = { compat_chat: on === "chat", compat_responses: on === "responses" };
    const address = await startHere(context, writeConfig(folder, toConfig(quietly, { endpoints: switches }))).address();
    const refused = await tell(address, { on: off, say: "hello" });
    assert.equal(refused.status, 404);
    assert.equal(refused.error?.["code"], "endpoint_disabled");
    assert.ok(String(refused.error?.["message"]).includes(`gateway.http.endpoints.compat_${off}`));
    assert.equal((await tellWell(address, { on, say: "hello" })).text, "hello");
  });
}

test("with both endpoints off nothing listens, and the process runs until it is stopped", async (context) => {
  const folder = makeFolder(context);
  const port = await findFreePort();
  const off = { port, endpoints: { compat_chat: false, compat_responses: false } };
  const program = runProgram(context, folder, "start", "--config", writeConfig(folder, toConfig({}, off)));
  assert.match(await program.said("  config "), /No endpoint is on, so no listener is open\./);
  assert.equal(await tryConnect(port), "ECONNREFUSED");
  assert.equal(program.child.exitCode, null);
  assert.equal((await program.stop()).code, 0);
});

test("the first run in an empty folder creates a token and shows a working curl line, and the next run keeps the token", async (context) => {
  const folder = makeFolder(context);
  const first = runProgram(context, folder, "start", "--port", "0");
  const text = await first.said("curl ");
  assert.match(text, /^Portico \d+\.\d+\.\d+ listens on http:\/\/127\.0\.0\.1:\d+$/m);
  assert.match(text, /^ {2}endpoints {2}\/v1\/chat\/completions, \/v1\/responses$/m);
  assert.match(text, /^ {2}adapter {4}echo: built in/m);
  const line = /curl (?<url>\S+) -H "(?<one>[^"]+)" -H "(?<two>[^"]+)" -d '(?<body>[^']+)'/.exec(text)?.groups;
  assert.ok(line, text);
  const headers = [line["one"]!, line["two"]!].map((header): [string, string] => {
    const [name = "", value = ""] = header.split(": ");
    return [name, value];
  });
  const response = await fetch(line["url"]!, { method: "POST", headers, body: line["body"]! });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /"content":"Hello!"/);
  const file = join(folder, ".portico/token");
  const made = readFileSync(file, "utf8").trim();
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(line["one"], `Authorization: Bearer ${made}`);
  const firstEnded = await first.stop();
  assert.equal(firstEnded.code, 0);
  assert.match(firstEnded.stdout, /^Draining/m);

  const second = runProgram(context, folder, "start", "--port", "0");
  const address = await second.address();
  assert.equal((await tellWell(address, { on: "responses", say: "again", token: made })).text, "again");
  const { code, stdout, stderr } = await second.stop("SIGINT");
  assert.equal(code, 0);
  assert.ok(!stdout.includes(made) && !stderr.includes(made), "the token is shown once");
  assert.ok(stdout.includes(file), "later runs say where it is");
});

const words = "one two three four five six seven eight nine ten eleven twelve";
const slowly = { adapters: { echo: { type: "echo", delay_ms: 100 } } };

test("SIGTERM lets running streams end completely, refuses new connections meanwhile, and exits with 0", async (context) => {
  const folder = makeFolder(context);
  const program = runProgram(context, folder, "start", "--config", writeConfig(folder, toConfig(slowly)));
  const address = await program.address();
  const answers = await Promise.all(
    endpoints.map((on) => beginStream({ on, say: words, stream: true }, toTarget(address))),
  );
  const ended = program.stop("SIGTERM");
  await program.said("Draining");
  assert.equal(await untilRefused(Number(new URL(address).port)), "ECONNREFUSED");
  assert.ok(!answers.some((answer) => answer.isOver()), "the streams still run");
  for (const answer of answers) {
    const result = await answer.rest();
    assert.equal(result.text, words);
    assert.equal(result.error, undefined);
  }
  assert.equal((await ended).code, 0);
});

test("a signal that arrives twice at once, as under npm, does not cut a stream; a later one does", async (context) => {
  const folder = makeFolder(context);
  const program = runProgram(context, folder, "start", "--config", writeConfig(folder, toConfig(slowly)));
  const address = await program.address();
  const answer = await beginStream({ on: "chat", say: `${words} thirteen ${words}`, stream: true }, toTarget(address));
  const ended = program.stop("SIGINT");
  await program.said("Draining");
  program.child.kill("SIGINT");
  // So many words take longer than that moment.
  await answer.until("thirteen ");
  assert.equal(program.child.exitCode, null);
  program.child.kill("SIGINT");
  assert.equal((await ended).code, 130);
  await assert.rejects(answer.rest(), { code: "ECONNRESET" });
});

test("a second gateway on a busy port exits with 1 and one sentence, and the first continues", async (context) => {
  const folder = makeFolder(context);
  const file = writeConfig(folder, toConfig());
  const first = runProgram(context, folder, "start", "--config", file);
  const address = await first.address();
  await tellWell(address, { on: "chat", say: "one", more: { user: "someone" } });
  const { port } = new URL(address);
  const elsewhere = writeConfig(makeFolder(context), toConfig());
  const second = await runHere(folder, ["start", "--config", elsewhere, "--port", port]);
  assert.equal(second.code, 1);
  assert.equal(second.stdout, "");
  assert.match(second.stderr, new RegExp(`^gateway\\.http\\.port: port ${port} of 127\\.0\\.0\\.1 is in use .*\\.\n$`));
  const result = await tellWell(address, { on: "chat", say: "two", more: { user: "someone" } });
  assert.equal(result.headers.get("x-portico-history"), "continued");
  assert.equal((await first.stop()).code, 0);
});

test("a second gateway on the same store exits with 1 and one sentence, and the first one's background turns continue", async (context) => {
  const folder = makeFolder(context);
  const file = writeConfig(folder, toConfig({ adapters: { slow: { type: "echo", delay_ms: 200 } } }));
  const first = runProgram(context, folder, "start", "--config", file);
  const address = await first.address();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ model: "m", input: "one two three four five six", background: true });
  const promised = await fetch(`${address}/v1/responses`, { method: "POST", headers, body });
  const { id } = (await promised.json()) as { id: string };
  const second = await runHere(folder, ["start", "--config", file]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /is in use by another gateway\. Stop that one, or name another file/);
  const told = await (await fetch(`${address}/v1/responses/${id}?stream=true`, { headers })).text();
  assert.match(told, /event: response\.completed\n/);
  assert.equal((await first.stop()).code, 0);
});

test("a gateway listens on a unix socket; a file left by a killed one is replaced, one in use is not", async (context) => {
  const folder = makeFolder(context);
  const socketPath = join(folder, "portico.sock");
  const file = writeConfig(folder, toConfig({ sessions: { store: "memory:" } }, { bind: `unix:${socketPath}` }));
  const start = () => runProgram(context, folder, "start", "--config", file);
  const check = async (on: Wish["on"]) => {
    const answer = await beginStream({ on, say: "over a socket", stream: true }, { socketPath });
    assert.equal((await answer.rest()).text, "over a socket");
  };

  const first = start();
  assert.equal(await first.address(), `unix:${socketPath}`);
  await check("chat");
  assert.equal(statSync(socketPath).mode & 0o777, 0o600);
  await first.stop("SIGKILL");
  assert.ok(statSync(socketPath).isSocket());

  const second = start();
  await second.address();
  await check("responses");
  const third = await runHere(folder, ["start", "--config", file]);
  assert.equal(third.code, 1);
  assert.match(third.stderr, /^gateway\.http\.bind: cannot listen on the socket \S+ \(EADDRINUSE\)/m);
  await check("chat");
  assert.equal((await second.stop()).code, 0);
  assert.throws(() => statSync(socketPath), { code: "ENOENT" });

  writeFileSync(socketPath, "precious");
  assert.equal((await runHere(folder, ["start", "--config", file])).code, 1);
  assert.equal(readFileSync(socketPath, "utf8"), "precious");
});

test("the operator sets who may connect to a unix socket", async (context) => {
  const folder = makeFolder(context);
  const socketPath = join(folder, "portico.sock");
  const http = { bind: `unix:${socketPath}`, socket_mode: "660" };
  await startHere(context, writeConfig(folder, toConfig({ sessions: { store: "memory:" } }, http))).address();
  assert.equal(statSync(socketPath).mode & 0o777, 0o660);
});

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === "::1"));

test("a gateway listens on IPv6", { skip: !hasIpv6 && "this machine has no ::1" }, async (context) => {
  const folder = makeFolder(context);
  const address = await startHere(context, writeConfig(folder, toConfig(quietly, { bind: "::1" }))).address();
  assert.match(address, /^http:\/\/\[::1\]:\d+$/);
  for (const on of endpoints) assert.equal((await tellWell(address, { on, say: "hello" })).text, "hello");
});

function toTarget(address: string): RequestOptions {
  const { hostname, port } = new URL(address);
  return { hostname, port };
}

/** Asks for a stream; resolves with its first bytes, and reads the rest on demand. */
async function beginStream(wish: Wish, target: RequestOptions) {
  const { method, headers, body } = toRequest(wish);
  const request = send({ ...target, path: paths[wish.on], method, headers, agent: false }).end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let raw = "";
  response.setEncoding("utf8").on("data", (piece: string) => (raw += piece));
  const ended = once(response, "end");
  ended.catch(() => {});
  await once(response, "data");
  return {
    isOver: () => response.complete,
    async until(text: string): Promise<void> {
      while (!raw.includes(text)) await once(response, "data");
    },
    async rest() {
      await ended;
      return readAnswer(wish, response.statusCode ?? 0, new Headers(), raw);
    },
  };
}

/** Tries to connect: the error's code, or undefined when it was accepted. */
async function tryConnect(port: number): Promise<string | undefined> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return undefined;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code;
  } finally {
    socket.destroy();
  }
}

/** The listener closes a moment after the gateway announces that it drains. */
async function untilRefused(port: number): Promise<string> {
  for (;;) {
    const code = await tryConnect(port);
    // The system resets a connection that it had not handed over when the listener closed; the next one is conclusive.
    if (code !== undefined && code !== "ECONNRESET") return code;
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
