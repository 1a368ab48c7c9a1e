/** Which adapter answers when none is configured. */
import assert from "node:assert/strict";
import test from "node:test";
import { detectAdapter } from "../../src/config/detect.ts";

const never = async (): Promise<boolean> => assert.fail("nothing may be probed");

test("OPENAI_API_KEY comes first.", async () => {
  const found = await detectAdapter({ env: { OPENAI_API_KEY: "sk-a", ANTHROPIC_API_KEY: "sk-b" }, probe: never });
  assert.equal(found.name, "openai");
  assert.deepEqual(found.adapter, { type: "openai", base_url: "https://api.openai.com/v1", api_key: "sk-a" });
  assert.equal(found.reason, "OPENAI_API_KEY is set, so turns go to https://api.openai.com/v1");
});

test("ANTHROPIC_API_KEY comes next, and an empty variable counts as none.", async () => {
  const found = await detectAdapter({ env: { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "sk-b" }, probe: never });
  assert.equal(found.name, "anthropic");
  assert.deepEqual(found.adapter, { type: "openai", base_url: "https://api.anthropic.com/v1", api_key: "sk-b" });
});

test("A local Ollama comes after the keys.", async () => {
  const probed: string[] = [];
  const probe = async (url: string): Promise<boolean> => probed.push(url) > 0;
  const found = await detectAdapter({ env: {}, probe });
  assert.deepEqual(probed, ["http://127.0.0.1:11434/api/version"]);
  assert.deepEqual(found.adapter, { type: "openai", base_url: "http://127.0.0.1:11434/v1" });
});

for (const [host, url] of [
  ["box:1234", "http://box:1234"],
  ["0.0.0.0", "http://127.0.0.1:11434"],
  ["https://ollama.example/base/", "https://ollama.example/base"],
] as const) {
  test(`OLLAMA_HOST=${host} is looked for at ${url}.`, async () => {
    const found = await detectAdapter({
      env: { OLLAMA_HOST: host },
      probe: async (asked) => asked === `${url}/api/version`,
    });
    assert.equal(found.adapter.base_url, `${url}/v1`);
  });
}

test("With nothing in the environment the embedded echo answers, and the reason says what was looked for.", async () => {
  const found = await detectAdapter({ env: {}, probe: async () => false });
  assert.deepEqual(found.adapter, { type: "echo" });
  assert.match(found.reason, /OPENAI_API_KEY.*ANTHROPIC_API_KEY.*Ollama/);
});

test("Portico's own token is never taken for a provider's key.", async () => {
  const found = await detectAdapter({ env: { OPENAI_API_KEY: "sk-portico-0123" }, probe: async () => false });
  assert.equal(found.name, "echo");
});
