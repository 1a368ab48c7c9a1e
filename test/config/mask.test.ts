/** What `portico check` shows of a configuration with secrets of every kind. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { hideSecrets } from "../../src/config/hide.ts";
import { maskSecrets } from "../../src/config/mask.ts";
import { portico } from "../cli/screen.ts";
import { makeFolder } from "../gateway.ts";
import { load, longToken, withHttp } from "./surroundings.ts";

test("A reference is shown as it is written, never as its value.", async () => {
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

test("Of an adapter's own options only those are shown whose names denote places or choices.", () => {
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

test("Secrets are found in URLs, arguments, headers and connection strings, and other text is kept.", () => {
  for (const [text, shown] of [
    ["https://h/v1?api-version=2&sig=hush&code=hush#x", "https://h/v1?api-version=2&sig=***&code=***#x"],
    ["https://me:hush@h/v1", "https://***@h/v1"],
    ["https://h/v1?Region=eu", "https://h/v1?Region=eu"],
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
    ["say Bearer hush now", "say Bearer *** now"],
    ["the token is gone, and no api-key is set", "the token is gone, and no api-key is set"],
    ["--api-key hush --model a", "--api-key *** --model a"],
    ["curl -H proxy-authorization: basic hush", "curl -H proxy-authorization: ***"],
    ["X_AUTH=hush", "X_AUTH=***"],
    ["author=ann", "author=ann"],
    ["tokens=hush", "tokens=***"],
    ["p password='hush hush", "p password='***"],
    ["p token=[hush", "p token=***"],
    ["curl sk-hush0123456789 https://h", "curl *** https://h"],
    ["http://secret-service:8080/v1", "http://secret-service:8080/v1"],
    ["unix:/run/key.sock:/v1", "unix:/run/key.sock:/v1"],
    ["--max-turns=3", "--max-turns=3"],
    ["What is this? a=b", "What is this? a=b"],
    ["prog --api-key hush --api-key 'hush hush' go", "prog --api-key *** --api-key '***' go"],
    ["prog --no-password --token hush", "prog --no-password *** ***"],
    ["prog --authtoken hush --accesskey=hush --auth hush", "prog --authtoken *** --accesskey=*** --auth ***"],
    ["--secretkey=hush", "--secretkey=***"],
    ["curl -H 'x-api-key:hush' https://h", "curl -H 'x-api-key:***' https://h"],
    ["curl -H 'Authorization: ApiKey hush' https://h", "curl -H 'Authorization: ***' https://h"],
    ['curl -H "Cookie: a=hush; b=hush" https://h', 'curl -H "Cookie: ***" https://h'],
    ["Cookie: session=hush", "Cookie: ***"],
    ["curl -u joe:hush https://h", "curl -u joe:*** https://h"],
    ["curl -u joe --user-agent joe:1 https://h", "curl -u joe --user-agent joe:1 https://h"],
    ["--user=joe:hush", "--user=joe:***"],
    ['run A=1 PASSWORD="hush \\" hush" KEY=hush,hush go', 'run A=1 PASSWORD="***" KEY=*** go'],
    ['{"a":{"token":["hush","hush"],"b":1}}', '{"a":{"token":***,"b":1}}'],
    ['{"secrets":{"a":{"b":"hush"},"c":"hush"}}', '{"secrets":***'],
    ['{\\"password\\":\\"hush\\",\\"a\\":1}', '{\\"password\\":\\"***\\",\\"a\\":1}'],
    ["p -Dspring.password=hush", "p -Dspring.password=***"],
    ["p https://h/#access_token=hush", "p https://h/#access_token=***"],
    ["p AKIAHUSH000000000000 x", "p *** x"],
    ["xoxb-1234567890-hushhushhush", "***"],
    ["glpat-hush1234567890123456", "***"],
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hush", "***"],
    ["sk_live_hush1234567890", "***"],
    ["redis://:hush?x=hush@h:6379", "redis://***@h:6379"],
    ["https://u:${PW}@h/?key=${K}", "https://***${PW}@h/?key=${K}"],
    ["--max-tokens=100", "--max-tokens=100"],
    ["p --max-tokens 100 maxOutputTokens=5", "p --max-tokens 100 maxOutputTokens=5"],
    ["sqlite:/home/a=b/key=1/portico.db", "sqlite:/home/a=b/key=1/portico.db"],
    ["sqlite:a.db password=hush", "sqlite:a.db password=***"],
    ["env password=hush sqlite:a.db", "env password=*** sqlite:a.db"],
    ["curl http://key:8080/v1 arn:aws:secret:eu", "curl http://key:8080/v1 arn:aws:secret:eu"],
    ["https://h/openai?deployment=a&other=b", "https://h/openai?deployment=a&other=***"],
    ["a=a=a=key=hush", "a=a=a=key=***"],
  ] as const) {
    assert.equal(hideSecrets(text), shown);
  }
});

test("The argument after an option is hidden if the option names a secret or a user.", () => {
  for (const [before, text, shown] of [
    ["--api-key", "hush hush", "***"],
    ["--auth", "hush", "***"],
    ["--auth ", "hush", "***"],
    ["--cookie", "a=hush", "***"],
    ["-u", "joe:hush", "joe:***"],
    ["-u ", "joe:hush", "joe:***"],
    ["--proxy-user", "joe:${PASSWORD}", "joe:${PASSWORD}"],
    ["--max-tokens", "100", "100"],
    ["--model", "small", "small"],
  ] as const) {
    assert.deepEqual(maskSecrets(["p", before, text]), ["p", before, shown]);
  }
});

test("Choices and names of models are shown, whatever they look like.", () => {
  const models = { "token-model": "small", large: "sk-2-large-model" };
  const main = { type: "openai", max_tokens_field: "max_tokens", model: "sk-2-large-model", models };
  const tokens = [{ name: "app", models: ["sk-2-large-model", "sk-2-*"] }];
  const settings = { gateway: { http: { tokens }, adapters: { main, keys: main } } };
  assert.deepEqual(maskSecrets(settings), settings);
});

test("Hiding secrets takes linear time.", () => {
  const pieces = [
    "a",
    " ",
    "=",
    ":",
    "'",
    '"',
    "\\",
    "://",
    "?",
    "&",
    "-",
    ".",
    "@",
    "${",
    "a=",
    "key=",
    "key='",
    "'key=",
  ];
  const more = [
    "key=[",
    "key: ",
    "--key ",
    '\\"key=',
    "sk-",
    "eyJ.",
    "bearer ",
    "a\\",
    "https://a",
    "A",
    "-u a:",
    "max_tokens=",
  ];
  for (const piece of [...pieces, ...more]) {
    const text = piece.repeat(50_000 / piece.length);
    const before = process.threadCpuUsage();
    for (const around of [text, `a${text}`, `x key${text}`, `${text}key`]) hideSecrets(around);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok((user + system) / 1000 < 500, `${JSON.stringify(piece)} took ${(user + system) / 1000} ms`);
  }
});
