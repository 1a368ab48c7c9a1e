/** `portico check`: the file as it is read, what works but is dangerous, and nothing secret. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { makeFolder } from "../harness/house.ts";
import { runProgramIn, writeConfig } from "../harness/program.ts";
import { longToken, withHttp } from "./problems.ts";

/** What `portico check ARGS` says of a file; its values are by their paths. */
async function check(context: TestContext, file: unknown, env: NodeJS.ProcessEnv = {}, folder = makeFolder(context)) {
  writeConfig(folder, typeof file === "string" ? file : JSON.stringify(file));
  return { folder, ...(await run(context, folder, env)) };
}

async function run(context: TestContext, folder: string, env: NodeJS.ProcessEnv = {}, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runProgramIn(context, folder, env, "check", ...args).ended;
  const valueAt = (path: string): unknown =>
    path.split(".").reduce((value, key) => (value as Record<string, unknown> | undefined)?.[key], JSON.parse(stdout));
  return { code, stdout, stderr, valueAt };
}

const defaults: Readonly<Record<string, unknown>> = {
  "http.bind": "127.0.0.1",
  "http.port": 8600,
  "http.endpoints.compat_chat": false,
  "http.endpoints.compat_responses": false,
  "http.console": false,
  "http.expose_reasoning": false,
  "http.limits.max_body_bytes": 20 * 1024 * 1024,
  "http.limits.max_concurrent_turns": 1000,
  "http.limits.heartbeat_ms": 10_000,
  "http.limits.stalled_client_timeout_ms": 60_000,
  "http.limits.drain_timeout_ms": 30_000,
  "sessions.history": "auto",
  "sessions.hints": ["header:X-Session-Id", "header:X-OpenWebUI-Chat-Id", "header:X-Conversation-Id", "user"],
  "sessions.ttl": "30d",
  "sessions.max_turns_per_thread": 10_000,
  "sessions.max_sessions_per_owner": 100_000,
  "sessions.idempotency_ttl": "24h",
  "sessions.max_background_turns": 1000,
  "log.level": "info",
};

test("check prints every setting that the file leaves out, with its default", async (context) => {
  const { code, stderr, folder, valueAt } = await check(context, withHttp({}));
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /warning/);
  const found = Object.keys(defaults).map((key) => [key, valueAt(`gateway.${key}`)]);
  assert.deepEqual(Object.fromEntries(found), defaults);
  assert.equal(valueAt("gateway.data_dir"), join(folder, ".portico"));
  assert.ok(!existsSync(join(folder, ".portico")), "checking creates nothing");
});

test("the defaults of what a session may queue, of WebSockets and of the processes are the documented ones", async (context) => {
  const { valueAt } = await check(context, withHttp({}));
  assert.deepEqual(
    ["http.limits.max_queued_per_thread", "http.websocket", "workers"].map((key) => valueAt(`gateway.${key}`)),
    [32, true, 1],
  );
});

test("the file may have comments and commas before a closing bracket", async (context) => {
  const text = `\uFEFF// The front door
    { /* two
         lines */ "gateway": { "http": { "auth_token": "${longToken}", "cors": { "origins": ["https://a.example",], }, }, }, } // last`;
  const { code, stderr, valueAt } = await check(context, text);
  assert.equal(code, 0, stderr);
  assert.deepEqual(valueAt("gateway.http.cors.origins"), ["https://a.example"], "what is in quotes is no comment");
});

for (const [mistake, text, line] of [
  ["a missing comma", '{\n  "a": 1\n  "b": 2}', 3],
  ["YAML", "gateway:\n  http: {}\n", 1],
  ["a mistake behind a comment of two lines", '/* one\n two */ {\n  // three\n  "gateway": ]\n}', 4],
] as const) {
  test(`a file with ${mistake} is refused with its line`, async (context) => {
    const { code, stdout, stderr, folder } = await check(context, text);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, new RegExp(`not valid JSON.*line ${line}\\b`, "i"));
    assert.ok(stderr.includes(join(folder, "portico.json")));
  });
}

test("an empty file, and one that holds something else than an object, is refused", async (context) => {
  for (const text of ["", "[]"]) {
    const { code, stdout, stderr } = await check(context, text);
    assert.deepEqual([code, stdout], [1, ""], stderr);
  }
});

test("the file is the one that --config names, else PORTICO_CONFIG, else portico.json, and its problems name it", async (context) => {
  const { folder, valueAt } = await check(context, withHttp({ port: 1 }));
  assert.equal(valueAt("gateway.http.port"), 1);
  mkdirSync(join(folder, "other"));
  for (const [index, name] of ["second.json", "other/third.json"].entries()) {
    writeFileSync(join(folder, name), JSON.stringify(withHttp({ port: index + 2 })), { mode: 0o600 });
  }
  const env = { PORTICO_CONFIG: "second.json" };
  assert.equal((await run(context, folder, env)).valueAt("gateway.http.port"), 2);
  const third = await run(context, folder, env, "--config", "other/third.json");
  assert.equal(third.valueAt("gateway.http.port"), 3);
  assert.equal(third.valueAt("gateway.data_dir"), join(folder, "other/.portico"), "relative to the file");
  const missing = await run(context, folder, {}, "--config", "gone.json");
  assert.deepEqual([missing.code, missing.stdout], [1, ""]);
  assert.match(missing.stderr, /gone\.json.*ENOENT/);
});

test("a link to a file that is gone is no request to run without one", async (context) => {
  const folder = makeFolder(context);
  symlinkSync("gone.json", join(folder, "portico.json"));
  const { code, stderr } = await run(context, folder);
  assert.equal(code, 1);
  assert.match(stderr, /portico\.json.*ENOENT/);
});

test("every problem is printed, a line each", async (context) => {
  const { code, stdout, stderr } = await check(context, withHttp({ prot: 1, bind: "nowhere", auth_token: "${GONE}" }));
  assert.deepEqual([code, stdout], [1, ""]);
  for (const each of [
    /^ *gateway\.http\.prot: .*port/m,
    /^ *gateway\.http\.bind: .*"nowhere"/m,
    /^ *gateway\.http\.auth_token: .*GONE/m,
  ]) {
    assert.match(stderr, each);
  }
});

test("an adapter that cannot be made is a problem: a module and a package that are not there", async (context) => {
  const adapters = {
    mine: { type: "module", path: "gone.mjs" },
    sdk: { type: "ai-sdk", package: "no-such-package" },
    fine: { type: "echo" },
  };
  const { code, stderr } = await check(context, withHttp({}, { adapters, default_adapter: "fine" }));
  assert.equal(code, 1);
  for (const each of [/adapters\.mine: .*gone\.mjs/, /adapters\.sdk: .*no-such-package/]) {
    assert.match(stderr, each);
  }
  assert.doesNotMatch(stderr, /adapters\.fine/);
});

test("dangerous settings are warned of by their keys, and do not prevent the start", async (context) => {
  const http = {
    bind: "0.0.0.0",
    auth_token: "short",
    endpoints: { compat_chat: true },
    trusted_proxies: ["0.0.0.0/0"],
  };
  const { code, stderr } = await check(context, { gateway: { http } });
  assert.equal(code, 0, stderr);
  for (const each of [/http\.bind: .*0\.0\.0\.0/, /http\.auth_token: /, /http\.trusted_proxies\[0\]: /]) {
    assert.match(stderr, new RegExp(`^warning.*${each.source}`, "m"));
  }
});

test("a file with a secret that others may read is warned of, one that only refers to its secrets is not", async (context) => {
  const { folder } = await check(context, withHttp({}));
  chmodSync(join(folder, "portico.json"), 0o644);
  assert.match((await run(context, folder)).stderr, /^warning.*gateway\.http\.auth_token: /m);
  writeFileSync(join(folder, "portico.json"), JSON.stringify(withHttp({ auth_token: "${TOKEN}" })));
  assert.doesNotMatch((await run(context, folder, { TOKEN: longToken })).stderr, /warning/);
});

test("secrets are masked, and a reference is shown as it is written", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "key"), "hush-from-a-file\n");
  const adapters = {
    main: {
      type: "openai",
      api_key: "hush-key",
      base_url: "https://${HOST}/v1",
      headers: { "x-team": "hush-header", authorization: "Bearer ${KEY}" },
      proxy: "http://me:hush-proxy@proxy:3128",
    },
    other: { type: "openai", api_key: { file: "key" }, model: "gpt-${KEY}" },
    agent: { type: "command", argv: ["cat", "${KEY}"], set_env: { MODE: "hush-set", PLAIN: "${KEY}" } },
  };
  const http = {
    tokens: [
      { name: "app", token: "hush-named-0123456789" },
      { name: "sum", sha256: "ab".repeat(32) },
    ],
  };
  const auth = { token: "hush-general-0123456789" };
  const file = withHttp(http, { auth, adapters, default_adapter: "main" });
  const { code, stdout, stderr, valueAt } = await check(
    context,
    file,
    { HOST: "hush.example", KEY: "hush-env" },
    folder,
  );
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout + stderr, /hush|sk-test/);
  assert.equal(valueAt("gateway.adapters.main.base_url"), "https://${HOST}/v1");
  assert.equal(valueAt("gateway.adapters.other.model"), "gpt-${KEY}");
  assert.equal(valueAt("gateway.adapters.agent.argv.1"), "${KEY}");
  assert.deepEqual(valueAt("gateway.adapters.other.api_key"), { file: "key" });
  assert.equal(typeof valueAt("gateway.http.auth_token"), "string", "it is there, but masked");
});
