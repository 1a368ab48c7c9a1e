/** What `portico check` shows of a configuration that holds secrets of every kind. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { hideSecrets } from "../../src/config/hide.ts";
import { maskSecrets } from "../../src/config/mask.ts";
import { portico } from "../cli/screen.ts";
import { makeFolder } from "../gateway.ts";
import { load, longToken, withHttp } from "./house.ts";

test("What came through a reference is shown as it is written, and never as what it stands for.", async () => {
  const adapters = {
    main: {
      type: "openai",
      base_url: "https://${HOST}/v1?api-version=1&code=${CODE}&sig=hush",
      api_key: "${KEY}",
      headers: { authorization: "Bearer ${KEY}", "x-other": "hush$${KEY}" },
    },
    agent: { type: "command", argv: ["agent", "--key", "${KEY}", "-H", "Authorization: Bearer ${KEY}", "${WORDS}"] },
  };
  const { effective, shown } = await load(withHttp({ auth_token: "${TOKEN}" }, { adapters, default_adapter: "main" }), {
    adapterOptions,
    env: { HOST: "hush.example", CODE: "hush", KEY: "hush-key", WORDS: "hush hush", TOKEN: longToken },
  });
  const masked = JSON.stringify(maskSecrets(effective, shown));
  assert.doesNotMatch(masked, /hush/);
  assert.ok(!masked.includes(longToken));
  const { gateway } = JSON.parse(masked);
  assert.equal(gateway.http.auth_token, "${TOKEN}");
  assert.equal(gateway.adapters.main.base_url, "https://${HOST}/v1?api-version=1&code=${CODE}&sig=***");
  assert.equal(gateway.adapters.main.api_key, "${KEY}");
  assert.deepEqual(gateway.adapters.main.headers, { authorization: "***${KEY}", "x-other": "***" });
  assert.deepEqual(gateway.adapters.agent.argv, [
    "agent",
    "--key",
    "${KEY}",
    "-H",
    "Authorization: ***${KEY}",
    "${WORDS}",
  ]);
});

test("`portico check` names the file of a secret, and not the secret.", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "key"), "hush");
  const adapters = { main: { type: "openai", api_key: { file: "key" } } };
  const settings = { gateway: { http: { auth_token: longToken }, adapters } };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
  const { code, printed } = await portico(folder, "check");
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(printed).gateway.adapters.main.api_key, { file: "key" });
  assert.doesNotMatch(printed, /hush/);
});

test("Of an adapter's own options what is shown has a name of a place or of a choice.", () => {
  const options = {
    connectionString: "hush",
    auth: { bearer: "hush", type: "oauth" },
    pat: "hush",
    whatever: ["hush"],
    baseURL: "https://models.example/v1?code=hush",
    region: "eu",
    apiVersion: "2026-01-01",
    resourceNames: ["one"],
    accountKeyName: "hush",
    retries: 3,
  };
  const adapters = { sdk: { type: "ai-sdk", options }, own: { type: "module", path: "./own.ts", options } };
  const shown = {
    connectionString: "***",
    auth: { bearer: "***", type: "oauth" },
    pat: "***",
    whatever: ["***"],
    baseURL: "https://models.example/v1?code=***",
    region: "eu",
    apiVersion: "2026-01-01",
    resourceNames: ["one"],
    accountKeyName: "***",
    retries: 3,
  };
  assert.deepEqual(maskSecrets({ gateway: { adapters } }), {
    gateway: {
      adapters: { sdk: { type: "ai-sdk", options: shown }, own: { type: "module", path: "./own.ts", options: shown } },
    },
  });
});

test("Secrets are found in URLs, arguments, headers and connection strings, and other words stay.", () => {
  for (const [text, shown] of [
    ["https://h/v1?api-version=2&sig=hush&code=hush#x", "https://h/v1?api-version=2&sig=***&code=***#x"],
    ["https://me:hush@h/v1", "https://***@h/v1"],
    ["redis://u:hush@h:6379/0?prefix=a&replicas=1", "redis://***@h:6379/0?prefix=a&replicas=1"],
    ["--password=hush; hush", "--password=***"],
    ["PASSWORD=hush", "PASSWORD=***"],
    ["Authorization: Bearer hush", "Authorization: ***"],
    ["X-Api-Key:hush", "X-Api-Key:***"],
    ["AccountName=a;AccountKey=hush;x=1", "AccountName=a;AccountKey=***;x=1"],
    ["curl -H 'Authorization: Bearer hush' https://h", "curl -H 'Authorization: ***' https://h"],
    ['run with {"api_key": "hush"}', 'run with {"api_key": "***"}'],
    ["env A=b TOKEN=hush run", "env A=b TOKEN=*** run"],
    ["say bearer hush now", "say bearer *** now"],
    ["curl sk-hush0123456789 https://h", "curl *** https://h"],
    ["http://secret-service:8080/v1", "http://secret-service:8080/v1"],
    ["unix:/run/key.sock:/v1", "unix:/run/key.sock:/v1"],
    ["--max-turns=3", "--max-turns=3"],
    ["What is this? a=b", "What is this? a=b"],
  ] as const) {
    assert.equal(hideSecrets(text), shown);
  }
});
