/** Which adapter answers when none is configured. */
import assert from "node:assert/strict";
import test from "node:test";
import { detectAdapter } from "../../src/config/detect.ts";

const never = async (): Promise<unknown> => assert.fail("nothing may be probed");
const nobody = async (): Promise<unknown> => undefined;

/** What Ollama says of its models. */
function toTags(...models: readonly { readonly name: string; readonly [key: string]: unknown }[]): object {
  return { models: models.map((model) => ({ model: model.name, size: 1, details: { family: "llama" }, ...model })) };
}

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
  const probe = async (url: string): Promise<unknown> => {
    probed.push(url);
    return toTags({ name: "mistral:7b" });
  };
  const found = await detectAdapter({ env: {}, probe });
  assert.deepEqual(probed, ["http://127.0.0.1:11434/api/tags"]);
  assert.deepEqual(found.adapter, { type: "openai", base_url: "http://127.0.0.1:11434/v1" });
  assert.equal(
    found.reason,
    "Ollama answers at http://127.0.0.1:11434; requests name one of its models, such as mistral:7b",
  );
});

for (const [sentence, tags, model] of [
  [
    "the usual one if it is there",
    toTags({ name: "mistral:7b" }, { name: "llama3.2:1b" }, { name: "llama3.2:latest" }),
    "llama3.2",
  ],
  [
    "the first in its list, which is the newest, if the usual one is not there",
    toTags({ name: "qwen3:latest" }, { name: "llama3.2:1b" }),
    "qwen3",
  ],
  [
    "none that only measures texts",
    toTags(
      { name: "qwen3-embedding:0.6b", details: { family: "qwen3" } },
      { name: "all-minilm:latest" },
      { name: "nomic:latest", details: { family: "nomic-bert" } },
      { name: "hf.co/someone/model:Q4_K_M" },
    ),
    "hf.co/someone/model:Q4_K_M",
  ],
  [
    "one that says itself that it can talk",
    toTags({ name: "measure", capabilities: ["embedding"] }, { name: "talk", capabilities: ["completion", "tools"] }),
    "talk",
  ],
  ["none whose name a shell would read", toTags({ name: "a'; rm -rf '" }, { name: "mistral" }), "mistral"],
] as const) {
  test(`Of Ollama's models a first request names ${sentence}.`, async () => {
    const found = await detectAdapter({ env: {}, probe: async () => tags });
    assert.equal(found.exampleModel, model);
  });
}

for (const tags of [{ models: [] }, { models: null }, toTags({ name: "nomic-embed-text:latest" })]) {
  test(`An Ollama that has no model to talk to is passed by: ${JSON.stringify(tags)}.`, async () => {
    const found = await detectAdapter({ env: {}, probe: async () => tags });
    assert.deepEqual([found.name, found.exampleModel], ["echo", "echo"]);
    assert.match(
      found.reason,
      /, and the Ollama at http:\/\/127\.0\.0\.1:11434 has no model to talk to \(`ollama pull llama3\.2` gets one\)$/,
    );
  });
}

test("What answers in other words is no Ollama.", async () => {
  for (const answer of [{}, [], "ok", { models: "many" }]) {
    const found = await detectAdapter({ env: {}, probe: async () => answer });
    assert.equal(found.name, "echo");
    assert.match(found.reason, /no Ollama answers$/);
  }
});

for (const [host, url] of [
  ["box:1234", "http://box:1234"],
  ["0.0.0.0", "http://127.0.0.1:11434"],
  ["https://ollama.example/base/", "https://ollama.example/base"],
] as const) {
  test(`OLLAMA_HOST=${host} is looked for at ${url}.`, async () => {
    const found = await detectAdapter({
      env: { OLLAMA_HOST: host },
      probe: async (asked) => (asked === `${url}/api/tags` ? toTags({ name: "llama3.2" }) : undefined),
    });
    assert.equal(found.adapter.base_url, `${url}/v1`);
  });
}

test("With nothing in the environment the embedded echo answers, and the reason says what was looked for.", async () => {
  const found = await detectAdapter({ env: {}, probe: nobody });
  assert.deepEqual(found.adapter, { type: "echo" });
  assert.match(found.reason, /OPENAI_API_KEY.*ANTHROPIC_API_KEY.*Ollama/);
});

test("Portico's own token is never taken for a provider's key.", async () => {
  const found = await detectAdapter({ env: { OPENAI_API_KEY: "sk-portico-0123" }, probe: nobody });
  assert.equal(found.name, "echo");
});
