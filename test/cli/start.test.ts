/** `portico start`: what it takes, what it says, and when it refuses. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { call, endpoints, tell, tellWell } from "../harness/client.ts";
import { findFreePort, makeFolder, openGateway, token } from "../harness/house.ts";
import { findAddress, type Program, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { createFileScope, isOpen } from "./shared.ts";

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

test("the specification's configuration, and nothing else, answers on both endpoints", async (context) => {
  const folder = makeFolder(context);
  const file = writeConfig(folder, specified);
  const program = runProgram(context, folder, "start", "--config", file);
  const address = await program.address();
  for (const on of endpoints) {
    for (const stream of [false, true]) {
      assert.equal((await tellWell(address, { on, say: "Good morning", stream })).text, "Good morning");
    }
    assert.equal((await tell(address, { on, say: "hello", token: "sk-wrong" })).status, 401);
  }
  const { code, stdout, stderr } = await program.stop();
  assert.equal(code, 0);
  for (const each of ["/v1/chat/completions", "/v1/responses", "echo", file, join(folder, ".portico")]) {
    assert.ok(stdout.includes(each), `it says nothing of ${each}: ${stdout}`);
  }
  assert.doesNotMatch(stdout, /warning/);
  assert.ok(!(stdout + stderr).includes(token), "a configured token is never printed");
  for (const line of stderr.trim().split("\n")) assert.ok(JSON.parse(line), "standard error has the log alone");
});

const scope = createFileScope();
const empty = makeFolder(scope);
let first: Promise<readonly [Program, string]> | undefined;

/** The first run in an empty folder, and what it has said. */
function runFirst(): Promise<readonly [Program, string]> {
  const start = async () => {
    const program = runProgram(scope, empty, "start", "--port", "0");
    return [program, await program.said("curl ")] as const;
  };
  return (first ??= start());
}

/** The files of the data folder that hold a token and nothing else. */
function readTokens(): readonly (readonly [token: string, file: string])[] {
  const folder = join(empty, ".portico");
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).size < 200 && readFileSync(file, "utf8").startsWith("sk-portico-"))
    .map((file) => [readFileSync(file, "utf8").trim(), file] as const);
}

test("the first run without a file switches both endpoints on, and shows a curl line that works as it is", async () => {
  const [, said] = await runFirst();
  assert.match(said, /echo/);
  const line = /curl (?<url>\S+) -H "(?<one>[^"]+)" -H "(?<two>[^"]+)" -d '(?<body>[^']+)'/.exec(said)?.groups;
  assert.ok(line, said);
  const headers = [line["one"]!, line["two"]!].map((header) => header.split(": ") as [string, string]);
  const response = await fetch(line["url"]!, { method: "POST", headers, body: line["body"]! });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /"content":"Hello!"/);
  assert.equal(findAddress(said), new URL(line["url"]!).origin);
  const shown = line["one"]!.replace(/^Authorization: Bearer /, "");
  const [, file] = readTokens().find(([made]) => made === shown) ?? [];
  assert.equal(statSync(file!).mode & 0o777, 0o600);
  assert.equal(statSync(join(empty, ".portico")).mode & 0o777, 0o700);
  assert.equal((await tellWell(findAddress(said), { on: "responses", say: "hi", token: shown })).text, "hi");
});

test("the first run makes a token for the operator as well, and shows it in the fragment of a link to the console", async () => {
  const [, said] = await runFirst();
  const address = findAddress(said);
  const tokens = readTokens();
  assert.equal(tokens.length, 2, "two tokens are kept");
  for (const [, file] of tokens) assert.equal(statSync(file).mode & 0o777, 0o600);
  const [, link = "", fragment = ""] = /(http:\S+\/console\S*?)#(\S+)/.exec(said) ?? [];
  assert.equal((await fetch(link)).status, 200);
  const [operator] = tokens.find(([made]) => fragment.includes(made)) ?? [];
  assert.ok(operator !== undefined, said);
  const [client] = tokens.find(([made]) => made !== operator)!;
  assert.ok(said.includes(`Bearer ${client}"`), "clients get the other one");
  assert.equal((await call(address, "GET", "/metrics", undefined, { token: operator })).status, 200);
  assert.equal((await tell(address, { on: "chat", say: "hi", token: operator })).status, 200);
  assert.notEqual((await call(address, "GET", "/metrics", undefined, { token: client })).status, 200);
});

test("the next run keeps the tokens, and does not show the clients' one again", async () => {
  const [program, said] = await runFirst();
  const [, shown = ""] = /Bearer (\S+)"/.exec(said) ?? [];
  const before = readTokens();
  assert.equal((await program.stop()).code, 0);
  const second = runProgram(scope, empty, "start", "--port", "0");
  const address = await second.address();
  assert.equal((await tellWell(address, { on: "chat", say: "again", token: shown })).text, "again");
  const { code, stdout, stderr } = await second.stop("SIGINT");
  assert.equal(code, 0);
  assert.ok(!(stdout + stderr).includes(shown));
  assert.deepEqual(readTokens(), before);
  const [, file] = before.find(([made]) => made === shown)!;
  assert.ok(stdout.includes(file), "it says where the token is");
});

test("a config file without a token does not start, and says what to set", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, `{ "gateway": { "http": { "endpoints": { "compat_chat": true } } } }`);
  const { code, stdout, stderr } = await runProgram(context, folder, "start").ended;
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /gateway\.http\.auth_token/);
  assert.ok(!existsSync(join(folder, ".portico")));
});

test("--bind and --port override the file, and are judged like it", async (context) => {
  const folder = makeFolder(context);
  const port = await findFreePort();
  writeConfig(folder, toConfig({ http: { bind: "unix:portico.sock" } }));
  const program = runProgram(context, folder, "start", "--bind", "127.0.0.1", "--port", String(port));
  assert.equal(await program.address(), `http://127.0.0.1:${port}`);
  assert.equal((await tellWell(`http://127.0.0.1:${port}`, { on: "chat", say: "hi" })).text, "hi");
  const wrong = await runProgram(context, folder, "start", "--bind", "nowhere", "--port", "lots").ended;
  assert.notEqual(wrong.code, 0);
  assert.equal(wrong.stdout, "");
  for (const each of [/--bind.*"nowhere"/, /--port.*"lots"/]) assert.match(wrong.stderr, each);
});

test("with both endpoints off nothing listens, and the process runs until it is stopped", async (context) => {
  const folder = makeFolder(context);
  const port = await findFreePort();
  writeConfig(folder, toConfig({ http: { port, endpoints: {} } }));
  const program = runProgram(context, folder, "start");
  const said = await program.said("  config ");
  assert.doesNotMatch(said, /listens on/);
  assert.equal(await isOpen(port), false);
  assert.equal((await program.stop()).code, 0);
});

test("a port in use is told in a sentence with its key, and leaves no token that was never shown", async (context) => {
  const folder = makeFolder(context);
  const server = createServer().listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { code, stdout, stderr } = await runProgram(context, folder, "start", "--port", String(port)).ended;
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, new RegExp(`^gateway\\.http\\.bind.*port: .*${port}.*--port.*\n$`));
  const left = existsSync(join(folder, ".portico")) ? readdirSync(join(folder, ".portico")) : [];
  assert.ok(!left.some((name) => name.includes("token")), left.join());
});

test("a second gateway on the same file is refused in a sentence, and the first one goes on", async (context) => {
  const first = await openGateway(context);
  await tellWell(first.address, { on: "chat", say: "one", more: { user: "ann" } });
  writeConfig(first.folder, toConfig());
  const { code, stdout, stderr } = await runProgram(context, first.folder, "start").ended;
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /in use/);
  assert.equal(stderr.trim().split("\n").length, 1);
  const heard = await tellWell(first.address, { on: "chat", say: "two", more: { user: "ann" } });
  assert.equal(heard.headers.get("x-portico-history"), "continued");
});
