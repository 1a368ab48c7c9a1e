/** Which adapter answers when the file names none: the first that the environment offers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { startServer, tellWell } from "../harness/client.ts";
import { makeFolder, openGateway } from "../harness/house.ts";
import { findAddress, runProgramIn } from "../harness/program.ts";
import { answerJson, startUpstream } from "../harness/upstream.ts";
import { problemOf, withHttp } from "./problems.ts";

interface Detected {
  readonly type: string;
  readonly base_url?: string;
}

/** The adapter that turns would go to, and what `portico check` says of it. */
async function detect(context: TestContext, env: NodeJS.ProcessEnv): Promise<readonly [Detected, string]> {
  const { code, stdout, stderr } = await runProgramIn(context, makeFolder(context), env, "check").ended;
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout + stderr, /sk-hush/);
  const { gateway } = JSON.parse(stdout) as {
    readonly gateway: { readonly adapters: Record<string, Detected>; readonly default_adapter: string };
  };
  return [gateway.adapters[gateway.default_adapter]!, stderr];
}

test("OPENAI_API_KEY comes first, and check says why", async (context) => {
  const [adapter, said] = await detect(context, { OPENAI_API_KEY: "sk-hush-a", ANTHROPIC_API_KEY: "sk-hush-b" });
  assert.deepEqual([adapter.type, adapter.base_url], ["openai", "https://api.openai.com/v1"]);
  assert.match(said, /OPENAI_API_KEY/);
});

test("ANTHROPIC_API_KEY comes next, and an empty variable is none", async (context) => {
  const [adapter, said] = await detect(context, { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "sk-hush-b\n" });
  assert.match(adapter.base_url ?? "", /^https:\/\/api\.anthropic\.com/);
  assert.match(said, /ANTHROPIC_API_KEY/);
});

test("with nothing in the environment the echo answers, and check says what was looked for", async (context) => {
  const [adapter, said] = await detect(context, {});
  assert.equal(adapter.type, "echo");
  assert.match(said, /OPENAI_API_KEY.*ANTHROPIC_API_KEY.*Ollama/s);
});

test("what answers at Ollama's address otherwise, or never, is not taken for one, nor waited for", async (context) => {
  const silent = createServer((_request, response) => void response.write('{"models":'));
  await once(silent.listen(0, "127.0.0.1"), "listening");
  context.after(() => (silent.close(), silent.closeAllConnections()));
  const other = await startUpstream(answerJson({ status: "ok" }));
  context.after(() => other.close());
  for (const { port } of [silent.address() as AddressInfo, other]) {
    const [adapter] = await detect(context, { OLLAMA_HOST: `127.0.0.1:${port}` });
    assert.equal(adapter.type, "echo");
  }
});

for (const [name, path] of [
  ["OPENAI", "/v1"],
  ["ANTHROPIC", ""],
] as const) {
  test(`turns go with ${name}_API_KEY to the server that ${name}_BASE_URL names`, async (context) => {
    const server = await startServer(context);
    const env = { [`${name}_API_KEY`]: "sk-mine\n", [`${name}_BASE_URL`]: server.url + path };
    const { address } = await openGateway(context, { gateway: { adapters: {} }, env });
    await tellWell(address, { on: "chat", say: "hi" });
    const [received] = server.received;
    assert.deepEqual([received!.path, received!.headers.authorization], ["/v1/chat/completions", "Bearer sk-mine"]);
  });
}

test("a token that Portico made is never taken for a provider's key", async (context) => {
  const server = await startServer(context);
  const env = { OPENAI_API_KEY: "sk-portico-0123", OPENAI_BASE_URL: `${server.url}/v1` };
  const { address } = await openGateway(context, { gateway: { adapters: {} }, env });
  assert.equal((await tellWell(address, { on: "chat", say: "hi" })).text, "hi", "the echo answers");
  assert.deepEqual(server.received, []);
});

test("a server in the environment must be one that the file may name", async () => {
  const env = { OPENAI_API_KEY: "sk-hush", OPENAI_BASE_URL: "127.0.0.1:1234/v1" };
  assert.match(await problemOf(withHttp({}), env), /^gateway\.adapters\.openai\.base_url: .*OPENAI_BASE_URL[^\n]*$/);
});

test("a local Ollama is used with a model that it has, which the first request names", async (context) => {
  const server = await startServer(context);
  const { script } = server;
  const models = [{ name: "nomic-embed-text:latest" }, { name: "mistral:7b" }];
  server.script = (received, response) =>
    (received.path === "/api/tags" ? answerJson({ models }) : script)(received, response);
  const host = server.url.replace("http://", "");
  const started = runProgramIn(context, makeFolder(context), { OLLAMA_HOST: host }, "start", "--port", "0");
  const said = await started.said("curl ");
  assert.match(said, new RegExp(`^ *adapter .*Ollama.*${host}`, "m"));
  const [, bearer, body] = /Bearer (\S+?)".* -d '([^']+)'/.exec(said) ?? [];
  assert.equal(JSON.parse(body!).model, "mistral:7b");
  await tellWell(findAddress(said), { on: "chat", say: "hi", token: bearer!, more: { model: "mistral:7b" } });
  const { path, json } = server.received.at(-1)!;
  assert.deepEqual([path, (json as { model: string }).model], ["/v1/chat/completions", "mistral:7b"]);
  assert.equal((await started.stop()).code, 0);
});
