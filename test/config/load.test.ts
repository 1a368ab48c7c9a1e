/** How a valid configuration is read. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { hasListener } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { maskSecrets } from "../../src/config/mask.ts";
import { load, longToken, problemsOf, surroundings, withHttp } from "./surroundings.ts";

test("The specification's configuration is complete with bind, port, auth_token and endpoints.", async () => {
  const { config } = await load({
    gateway: {
      http: {
        bind: "127.0.0.1",
        port: 8080,
        auth_token: longToken,
        endpoints: { compat_chat: true, compat_responses: false },
      },
    },
  });
  assert.equal(config.http.port, 8080);
  assert.equal(config.http.authToken, longToken);
  assert.deepEqual(config.http.endpoints, { chat: true, responses: false });
});

test("Either endpoint is enough for a listener.", async () => {
  for (const [endpoints, listens] of [
    [{}, false],
    [{ compat_chat: true }, true],
    [{ compat_responses: true }, true],
  ] as const) {
    assert.equal(hasListener((await load(withHttp({ endpoints }))).config.http), listens);
  }
});

test("A file with only a token gets every default.", async () => {
  const { config, warnings } = await load(withHttp({}));
  assert.deepEqual(config, {
    file: "/etc/portico/portico.json",
    dataDir: "/etc/portico/.portico",
    auth: { token: undefined },
    http: {
      bind: "127.0.0.1",
      port: 8600,
      socketMode: "600",
      trustedProxies: [],
      authToken: longToken,
      endpoints: { chat: false, responses: false },
      console: false,
      tokens: [],
      limits: {
        maxBodyBytes: 20_971_520,
        maxJsonDepth: 64,
        maxMessages: 4096,
        maxTools: 4096,
        maxConcurrentTurns: 1000,
        maxPipelinedRequests: 100,
        maxArrivingBytes: 268_435_456,
        maxHeldBytes: 536_870_912,
        maxQueuedPerThread: 16,
        headersTimeoutMs: 10_000,
        bodyIdleTimeoutMs: 30_000,
        keepAliveTimeoutMs: 130_000,
        heartbeatMs: 10_000,
        maxUnsentBytes: 1_048_576,
        stalledClientTimeoutMs: 60_000,
        rate: undefined,
        maxAuthFailuresPerMinute: 10,
        drainTimeoutMs: 30_000,
      },
      corsOrigins: [],
      exposeReasoning: false,
      webSocket: { enabled: true, maxConnections: 1_000, maxMinutes: 60 },
    },
    adapters: {
      echo: {
        type: "echo",
        model: undefined,
        models: {},
        contextWindow: undefined,
        maxAnswerCharacters: 64 * 1024 * 1024,
        fallback: [],
        retry: { times: 2, baseMs: 200, maxWaitMs: 1_000 },
        breaker: { failures: 5, openMs: 10_000 },
        options: { delay_ms: 0 },
      },
    },
    defaultAdapter: "echo",
    models: {},
    sessions: {
      store: "sqlite:/etc/portico/.portico/portico.db",
      hints: [
        { type: "header", name: "x-session-id" },
        { type: "header", name: "x-openwebui-chat-id" },
        { type: "header", name: "x-conversation-id" },
        { type: "user" },
      ],
      alwaysResends: false,
      ttlMs: 30 * 86_400_000,
      maxTurnsPerThread: 10_000,
      maxBytesPerThread: 64 * 1024 * 1024,
      maxSessionsPerOwner: 100_000,
      pruneIntervalMs: 3_600_000,
      idempotencyMs: 86_400_000,
      eventsMs: 86_400_000,
      maxEventsPerTurn: 100_000,
      maxEventBytesPerTurn: 16 * 1024 * 1024,
      maxBackgroundTurns: 1_000,
      maxReplayBytes: 32 * 1024 * 1024,
      maxUnattendedMs: 3_600_000,
    },
    log: { level: "info" },
  });
  assert.deepEqual(warnings, []);
});

test("Without a file both endpoints and the console are enabled, and the data folder is in the current one.", async () => {
  const { config } = await loadConfig({ folder: "/home/me", generatedToken: longToken }, surroundings());
  assert.deepEqual(config.http.endpoints, { chat: true, responses: true });
  assert.equal(config.http.console, true);
  assert.deepEqual(
    [config.file, config.dataDir, config.auth.token, config.http.bind],
    [undefined, "/home/me/.portico", longToken, "127.0.0.1"],
  );
});

test("Relative paths are resolved from the folder of the config file.", async () => {
  const { config, shown } = await load(
    withHttp(
      { bind: "unix:run/portico.sock" },
      {
        data_dir: "../data",
        sessions: { store: "sqlite:turns.db" },
        adapters: { agent: { type: "command", argv: ["agent"], cwd: "work" } },
      },
    ),
    { adapterOptions },
  );
  assert.equal(config.dataDir, "/etc/data");
  assert.equal(config.http.bind, "unix:/etc/portico/run/portico.sock");
  assert.equal(config.sessions.store, "sqlite:/etc/portico/turns.db");
  assert.equal(config.adapters.agent?.options.cwd, "/etc/portico/work");
  assert.equal(shown(["gateway", "data_dir"], config.dataDir), "/etc/data");
});

test("A string may contain several environment variables, and $${ is a plain ${.", async () => {
  const http = { auth_token: "${A}-${B}-$${A}-tail", cors: { origins: ["https://${A}.example"] } };
  const { config } = await load(withHttp(http), { env: { A: "first", B: "second" } });
  assert.equal(config.http.authToken, "first-second-${A}-tail");
  assert.deepEqual(config.http.corsOrigins, ["https://first.example"]);
});

test("A secret may be in a separate file, whose last newline is ignored.", async () => {
  const files = new Map([
    ["/etc/portico/secrets/token", `${longToken}\n`],
    ["/run/key", "sk-upstream\r\n"],
  ]);
  const { config } = await load(
    withHttp(
      { auth_token: { file: "secrets/${NAME}" } },
      {
        adapters: {
          main: { type: "openai", api_key: { file: "/run/key" }, headers: { "x-team": { file: "/run/key" } } },
        },
      },
    ),
    { env: { NAME: "token" }, readText: (file) => files.get(file) ?? assert.fail(file) },
  );
  assert.equal(config.http.authToken, longToken);
  assert.deepEqual(config.adapters.main?.options, {
    base_url: "https://api.openai.com/v1",
    api_key: "sk-upstream",
    headers: { "x-team": "sk-upstream" },
  });
});

test("Comments and trailing commas are allowed, and // inside a string is text.", async () => {
  const { config } = await load(`\uFEFF// first
    { /* a
         comment */ "gateway": { "http": { "auth_token": "http://0123456789abcdef", "cors": { "origins": ["https://a.example",], }, }, }, } // last`);
  assert.equal(config.http.authToken, "http://0123456789abcdef");
  assert.deepEqual(config.http.corsOrigins, ["https://a.example"]);
});

test("A syntax error after a multi-line comment is reported with the correct line and column.", async () => {
  const [problem] = await problemsOf('/* one\n two */ {\n  // three\n  "gateway": ]\n}');
  assert.match(problem!.message, /line 4, column 14/);
});

test("A named token is stored as its digest, opens every endpoint by default, and may have its own limits.", async () => {
  const sha256 = "AB".repeat(32);
  const { config } = await load(
    withHttp({
      tokens: [
        { name: "one", token: "abc-0123456789abcdef", limits: { requests_per_minute: 60, max_concurrent_turns: 5 } },
        {
          name: "two",
          sha256,
          endpoints: ["compat_chat"],
          models: ["small", "gpt-*"],
          expires_at: "2030-01-31T00:00:00Z",
          history: "resent",
          limits: { requests_per_minute: 60, burst: 5 },
        },
      ],
    }),
  );
  assert.deepEqual(config.http.tokens, [
    {
      owner: "one",
      sha256: Buffer.from("1c5028c71b493a5f2394cd33fd471edbc3411c95f7fd6e561dfa4770c33a32df", "hex"),
      opens: new Set(["chat", "responses"]),
      models: undefined,
      expiresAt: undefined,
      alwaysResends: undefined,
      rate: { requestsPerMinute: 60, burst: 60 },
      maxConcurrentTurns: 5,
    },
    {
      owner: "two",
      sha256: Buffer.alloc(32, 0xab),
      opens: new Set(["chat"]),
      models: ["small", "gpt-*"],
      expiresAt: new Date("2030-01-31T00:00:00Z"),
      alwaysResends: true,
      rate: { requestsPerMinute: 60, burst: 5 },
      maxConcurrentTurns: undefined,
    },
  ]);
});

test("A named token is enough.", async () => {
  assert.deepEqual(await problemsOf({ gateway: { http: { tokens: [{ name: "app", token: longToken }] } } }), []);
});

test("A circuit breaker that opens after no failures is none.", async () => {
  const { config } = await load(withHttp({}, { adapters: { main: { type: "echo", breaker: { failures: 0 } } } }));
  assert.equal(config.adapters.main?.breaker, undefined);
});

test("The only adapter is the default one.", async () => {
  const { config, reason, exampleModel } = await load(
    withHttp({}, { adapters: { mine: { type: "echo", model: "parrot" } } }),
  );
  assert.equal(config.defaultAdapter, "mine");
  assert.equal(config.adapters.mine?.model, "parrot");
  assert.equal(reason, "type echo, configured");
  assert.equal(exampleModel, "parrot");
});

test("Names that the operator chooses, and an adapter's own options, are not converted.", async () => {
  const adapters = { local_one: { type: "echo", models: { my_parrot: "green_parrot" }, delay_ms: 5 } };
  const { config } = await load(withHttp({}, { adapters, models: { "gpt_4_*": "local_one" } }));
  assert.deepEqual(Object.keys(config.adapters), ["local_one"]);
  assert.deepEqual(config.adapters.local_one?.models, { my_parrot: "green_parrot" });
  assert.deepEqual(config.adapters.local_one?.options, { delay_ms: 5 });
  assert.deepEqual(config.models, { "gpt_4_*": "local_one" });
});

for (const bind of [
  "127.0.0.1",
  "0.0.0.0",
  "::",
  "::1",
  "fe80::1",
  "192.168.1.2",
  "localhost",
  "unix:/run/portico.sock",
  `unix:/${"x".repeat(106)}`,
]) {
  test(`The gateway may be bound to ${bind}.`, async () => {
    assert.deepEqual(await problemsOf(withHttp({ bind })), []);
  });
}

test("Overrides take precedence over the file and are checked by the same rules.", async () => {
  const { config } = await load(withHttp({ port: 1 }), { overrides: { bind: "::1", port: 0 } });
  assert.deepEqual([config.http.bind, config.http.port], ["::1", 0]);
  const { config: bare } = await load({ gateway: { auth: { token: longToken } } }, { overrides: { port: 65_535 } });
  assert.equal(bare.http.port, 65_535);
  const problems = await problemsOf(withHttp({}), { overrides: { port: "many" } });
  assert.deepEqual(
    problems.map(({ path }) => path),
    ["gateway.http.port"],
  );
});

test("Risky settings cause warnings.", async () => {
  const file = withHttp(
    {
      bind: "0.0.0.0",
      auth_token: "short",
      endpoints: { compat_chat: true },
      tokens: [
        {
          name: "app",
          token: `${longToken}-app`,
          endpoints: ["compat_chat", "compat_responses"],
          expires_at: "2020-01-01T00:00:00Z",
        },
      ],
    },
    { sessions: { store: "memory:" } },
  );
  const { warnings } = await load(file, {}, 0o100644);
  assert.deepEqual(
    warnings.map(({ path, message }) => `${path}: ${message}`),
    [
      "gateway.http.bind: 0.0.0.0 can be reached from other machines over plain HTTP; put a proxy with TLS in front of it, or bind it to 127.0.0.1",
      "gateway.http.auth_token: shorter than 16 characters, so it can be guessed; use a long random token (`portico token make` makes one)",
      "gateway.http.tokens[0].endpoints[1]: 'compat_responses' is off; set gateway.http.endpoints.compat_responses to enable it",
      "gateway.http.tokens[0].expires_at: has passed, so this token no longer works",
      "gateway.sessions.store: sessions are stored in memory and lost when the gateway stops",
      "gateway.http.auth_token: is in a file that other users may read (mode 644); chmod 600 it, or refer to ${NAME} or a file",
    ],
  );
});

test("An adapter that no model leads to causes a warning.", async () => {
  const adapters = {
    main: { type: "echo", fallback: ["spare"] },
    spare: { type: "echo" },
    chosen: { type: "echo" },
    one: { type: "echo", model: "one" },
    many: { type: "echo", models: { small: "s" } },
    forgotten: { type: "echo" },
  };
  const file = withHttp({}, { adapters, default_adapter: "main", models: { "gpt-*": "chosen" } });
  const { warnings } = await load(file);
  assert.deepEqual(warnings, [
    {
      path: "gateway.adapters.forgotten",
      message:
        "no model leads to it, so it is never asked; name models for it in gateway.models, or its own 'model' or 'models'",
    },
  ]);
});

test("A token of 16 characters causes no warning, and a shorter one does.", async () => {
  const warnOf = async (auth_token: string) => (await load(withHttp({ auth_token }))).warnings.map(({ path }) => path);
  assert.deepEqual(await warnOf("x".repeat(16)), []);
  assert.deepEqual(await warnOf("x".repeat(15)), ["gateway.http.auth_token"]);
});

test("An address at which nothing listens causes no warning.", async () => {
  assert.deepEqual((await load(withHttp({ bind: "0.0.0.0" }))).warnings, []);
});

test("A store may be in Redis, and its password is treated as a secret.", async () => {
  const urls = [
    "redis://h",
    "rediss://me:a%2Fb@[::1]:6380/15?prefix=a.b-c",
    "redis://:${REDIS_PASSWORD}@h:1/0",
    "redis://:${REDIS_PASSWORD}@one:7000,two,[::1]:7002?replicas=1&prefix=a",
  ];
  const hash = { auth_token: "${TOKEN}" };
  for (const url of urls) {
    const env = { REDIS_PASSWORD: "x", TOKEN: longToken };
    const { config, warnings } = await load(withHttp(hash, { sessions: { store: url } }), { env }, 0o644);
    assert.equal(config.sessions.store, url.replace("${REDIS_PASSWORD}", "x"));
    const isPlain = url.includes("a%2Fb");
    assert.deepEqual(
      warnings.map(({ path }) => path),
      isPlain ? ["gateway.sessions.store"] : [],
    );
  }
});

test("Only an address that other machines can reach causes a warning.", async () => {
  const warningsOf = async (bind: string) => {
    const { warnings } = await load(withHttp({ bind, endpoints: { compat_chat: true } }));
    return warnings.map(({ path }) => path);
  };
  for (const bind of [
    "127.0.0.1",
    "127.1.2.3",
    "::1",
    "::ffff:127.0.0.1",
    "::FFFF:127.0.0.1",
    "localhost",
    "unix:/run/portico.sock",
  ])
    assert.deepEqual(await warningsOf(bind), [], bind);
  for (const bind of ["0.0.0.0", "::", "10.0.0.127", "10.127.0.1"])
    assert.deepEqual(await warningsOf(bind), ["gateway.http.bind"]);
});

test("A token that has not expired yet, or that only reads the metrics, causes no warning.", async () => {
  const tokens = [
    { name: "app", token: `${longToken}-app`, expires_at: "2026-01-01T00:00:01Z" },
    { name: "reader", token: `${longToken}-reader`, endpoints: ["metrics"] },
  ];
  assert.deepEqual((await load(withHttp({ tokens }))).warnings, []);
});

test("A time is in seconds, minutes, hours or days; never is no time at all.", async () => {
  for (const [ttl, ms] of [
    ["90s", 90_000],
    ["15m", 900_000],
    ["24h", 86_400_000],
    ["30d", 2_592_000_000],
    ["never", undefined],
  ] as const) {
    const { config } = await load(withHttp({}, { sessions: { ttl } }));
    assert.equal(config.sessions.ttlMs, ms);
  }
});

test("A console without a listener, or with little to show, causes a warning.", async () => {
  const endpoints = { compat_chat: true };
  const warningsOf = async (http: object, gateway = {}) =>
    (await load(withHttp({ console: true, ...http }, gateway))).warnings.map(
      ({ path, message }) => `${path}: ${message}`,
    );
  assert.deepEqual(await warningsOf({}), [
    "gateway.http.console: no endpoint is on, so there is no listener through which to reach the console",
  ]);
  assert.deepEqual(await warningsOf({ endpoints }), [
    "gateway.http.console: no token opens the operator routes, so the console shows only Try it; set gateway.auth.token to see the overview and the sessions",
  ]);
  assert.deepEqual(await warningsOf({ endpoints }, { auth: { token: `${longToken}-general` } }), []);
});

test("A socket mode without a unix socket causes a warning.", async () => {
  const warn = async (http: object) =>
    (await load(withHttp({ socket_mode: "660", ...http }))).warnings.map(({ path, message }) => `${path}: ${message}`);
  assert.deepEqual(await warn({}), [
    "gateway.http.socket_mode: has no effect unless gateway.http.bind is a unix socket",
  ]);
  assert.deepEqual(await warn({ bind: "unix:/run/portico/door.sock" }), []);
});

test("Trusting everybody as a proxy causes a warning, and so does a list that does not fit the listener.", async () => {
  const warn = async (...[bind, ...proxies]: readonly string[]) =>
    (await load(withHttp({ bind, trusted_proxies: proxies }))).warnings.map(
      ({ path, message }) => `${path}: ${message}`,
    );
  const socket = "unix:/run/portico/door.sock";
  assert.deepEqual(await warn("127.0.0.1", "127.0.0.1", "10.1.0.0/16", "10.0.0.0/10", "::1", "fd00:1::/32"), []);
  assert.deepEqual(await warn(socket, "unix", "10.1.0.0/16"), []);
  assert.deepEqual(await warn(socket), []);
  const everybody = "trusts everybody, so callers can choose their address; name only your proxies";
  assert.deepEqual(await warn("127.0.0.1", "::1", "0.0.0.0/0", "::/0"), [
    `gateway.http.trusted_proxies[1]: ${everybody}`,
    `gateway.http.trusted_proxies[2]: ${everybody}`,
  ]);
  assert.deepEqual(await warn("127.0.0.1", "unix"), [
    'gateway.http.trusted_proxies: "unix" has no effect unless gateway.http.bind is a unix socket',
  ]);
  assert.deepEqual(await warn(socket, "127.0.0.1"), [
    'gateway.http.trusted_proxies: has no effect without "unix", because gateway.http.bind is a unix socket',
  ]);
});

test("A file that only refers to its secrets may be readable by others.", async () => {
  const { warnings } = await load(withHttp({ auth_token: "${TOKEN}" }), { env: { TOKEN: longToken } }, 0o644);
  assert.deepEqual(warnings, []);
});

test("Secrets in a readable file are recognised by name, form, or position in a URL or among arguments.", async () => {
  const placeOf = async (adapter: object) => {
    const file = withHttp({ auth_token: "${TOKEN}" }, { adapters: { main: adapter } });
    const beside = { adapterOptions, env: { TOKEN: longToken }, readText: () => "hush" };
    const { warnings } = await load(file, beside, 0o644);
    return warnings.map(({ path }) => path.replace("gateway.adapters.main.", "")).join();
  };
  const models = { "token-model": "sk-2-large-model" };
  for (const [adapter, place] of [
    [{ type: "openai", base_url: "https://h/openai?deployment=a&other=b", max_tokens_field: "max_tokens", models }, ""],
    [{ type: "echo", context_window: 1_000 }, ""],
    [{ type: "openai", base_url: "https://h/openai?sig=hush" }, "base_url"],
    [{ type: "openai", proxy: "http://me:hush@h" }, "proxy"],
    [{ type: "openai", api_key: { file: "/run/keys/sk-main-2026" } }, ""],
    [{ type: "command", argv: ["p", "--api-key", "hush"] }, "argv[2]"],
    [{ type: "command", argv: ["p", "--api-key", "${TOKEN}", "--max-tokens", "100"] }, ""],
    [{ type: "command", argv: ["sh", "-c", "p --api-key hush"] }, "argv[2]"],
    [{ type: "command", argv: ["p", "glpat-hush1234567890123456"] }, "argv[1]"],
  ] as const) {
    assert.equal(await placeOf(adapter), place);
  }
});

test("The effective configuration shows no secret.", async () => {
  const adapters = {
    main: { type: "openai", api_key: "sk-up", headers: { "x-a": "sk-header" }, base_url: "https://me:sk-pass@host/v1" },
  };
  const { effective } = await load(
    withHttp(
      { tokens: [{ name: "app", token: `${longToken}-app` }] },
      { auth: { token: `${longToken}-general` }, adapters },
    ),
  );
  const text = JSON.stringify(maskSecrets(effective));
  assert.doesNotMatch(text, /sk-/);
  assert.match(text, /"auth_token":"\*\*\*"/);
  assert.match(text, /https:\/\/\*\*\*@host\/v1/);
});

test("Secrets in an adapter's options are hidden, whatever their names, lists and arguments look like.", () => {
  const options = {
    apikey: "sk-1",
    "API-KEY": "sk-2",
    accessKeyId: "sk-3",
    passphrase: "sk-4",
    tokens: ["sk-5"],
    clientSecret: { value: "sk-6" },
    googleCredentials: { private: ["sk-7"], project: "sk-12" },
    baseURL: "https://me:sk@8@host/v1?key=sk-9&alt=sse",
    budgetTokens: 1024,
    region: "eu",
  };
  const argv = ["agent", "--token=sk-10", "--api-key", "sk-11", "--model", "small"];
  const agent = { type: "command", argv, set_env: { MODE: "sk-13" } };
  const adapters = { sdk: { type: "ai-sdk", options }, agent };
  const tokens = [{ name: "app", sha256: "ab" }];
  const masked = maskSecrets({ gateway: { http: { tokens }, adapters } });
  assert.doesNotMatch(JSON.stringify(masked), /sk-\d|sk@/);
  assert.deepEqual(masked, {
    gateway: {
      http: { tokens },
      adapters: {
        sdk: {
          type: "ai-sdk",
          options: {
            apikey: "***",
            "API-KEY": "***",
            accessKeyId: "***",
            passphrase: "***",
            tokens: ["***"],
            clientSecret: { value: "***" },
            googleCredentials: { private: ["***"], project: "***" },
            baseURL: "https://***@host/v1?key=***&alt=sse",
            budgetTokens: 1024,
            region: "eu",
          },
        },
        agent: {
          type: "command",
          argv: ["agent", "--token=***", "--api-key", "***", "--model", "small"],
          set_env: { MODE: "***" },
        },
      },
    },
  });
});

test("The example in docs/configuration.md is a valid configuration.", async () => {
  const page = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
  const [, example] = /```json\n([\s\S]*?)```/.exec(page) ?? [];
  const { config, warnings } = await load(example, {
    env: { PORTICO_TOKEN: longToken },
    readText: () => "sk-upstream\n",
  });
  assert.equal(config.adapters.main?.options.api_key, "sk-upstream");
  assert.deepEqual(warnings, []);
});
