/** Every mistake in the settings is told with its path, what was found, and what is allowed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { longToken, problemsOf, withHttp } from "./problems.ts";

const echo = { main: { type: "echo" } };

function named(token: object): object {
  return withHttp({ tokens: [{ name: "app", token: `${longToken}-app`, ...token }] });
}

function adapter(main: object): object {
  return withHttp({}, { adapters: { main } });
}

type Row = readonly [mistake: string, settings: unknown, path: string, ...said: readonly RegExp[]];

const unknown: readonly Row[] = [
  ["a misspelt port", withHttp({ prot: 1 }), "gateway.http.prot", /\bport\b/],
  ["a key in capital letters", withHttp({ PORT: 1 }), "gateway.http.PORT", /\bport\b/],
  ["a misspelt endpoint", withHttp({ endpoints: { compat_chats: true } }), "gateway.http.endpoints.compat_chats"],
  ["a key that resembles no other", withHttp({}, { quux: 1 }), "gateway.quux", /\bsessions\b/, /\badapters\b/],
  ["a key that every object has", withHttp({}, { constructor: {} }), "gateway.constructor"],
  ["a key at the top", { ...withHttp({}), gatway: {} }, "gatway", /\bgateway\b/],
  [
    "a misspelt option of an adapter",
    adapter({ type: "echo", dealy_ms: 1 }),
    "gateway.adapters.main.dealy_ms",
    /delay_ms/,
  ],
  ["an option of another type of adapter", adapter({ type: "echo", argv: ["a"] }), "gateway.adapters.main.argv"],
  ["a misspelt key of a token", named({ expires: "2030-01-31T00:00:00Z" }), "gateway.http.tokens[0].expires"],
];

const wrong: readonly Row[] = [
  ["a port as text", withHttp({ port: "8600" }), "gateway.http.port", /"8600"/, /integer/, /65535/],
  ["a port that is too high", withHttp({ port: 65_536 }), "gateway.http.port", /65536/, /65535/],
  ["a port below zero", withHttp({ port: -1 }), "gateway.http.port", /-1/],
  ["a port with a fraction", withHttp({ port: 80.5 }), "gateway.http.port", /80\.5/, /integer/],
  ["a port that is null", withHttp({ port: null }), "gateway.http.port", /null/],
  ["a bind that is a number", withHttp({ bind: 127 }), "gateway.http.bind", /127/, /string/],
  [
    "an endpoint as text",
    withHttp({ endpoints: { compat_chat: "yes" } }),
    "gateway.http.endpoints.compat_chat",
    /"yes"/,
    /true/,
  ],
  ["endpoints as a list", withHttp({ endpoints: ["compat_chat"] }), "gateway.http.endpoints", /list/, /object/],
  ["a section that is null", withHttp({}, { sessions: null }), "gateway.sessions", /null/, /object/],
  ["a token that is null", withHttp({ auth_token: null }), "gateway.http.auth_token", /null/, /string/],
  ["a gateway as text", { gateway: "on" }, "gateway", /"on"/, /object/],
  ["an empty folder", withHttp({}, { data_dir: "" }), "gateway.data_dir", /empty/],
  ["a limit of nothing", withHttp({ limits: { max_body_bytes: 0 } }), "gateway.http.limits.max_body_bytes", /\b0\b/],
  ["a time without its unit", withHttp({}, { sessions: { ttl: "30" } }), "gateway.sessions.ttl", /"30"/, /30d/],
  ["an unknown log level", withHttp({}, { log: { level: "loud" } }), "gateway.log.level", /"loud"/, /error/, /info/],
  [
    "an unknown hint",
    withHttp({}, { sessions: { hints: ["cookie"] } }),
    "gateway.sessions.hints[0]",
    /"cookie"/,
    /user/,
    /header/,
  ],
  [
    "an unknown history",
    withHttp({}, { sessions: { history: "all" } }),
    "gateway.sessions.history",
    /"all"/,
    /auto/,
    /resent/,
  ],
  ["an unknown socket mode", withHttp({ socket_mode: "777" }), "gateway.http.socket_mode", /"777"/, /660/],
];

const addresses: readonly Row[] = [
  ["a hostname", withHttp({ bind: "example.com" }), "gateway.http.bind", /"example\.com"/, /IPv4/, /IPv6/, /unix:/],
  ["an address with a port", withHttp({ bind: "127.0.0.1:80" }), "gateway.http.bind", /"127\.0\.0\.1:80"/],
  ["an address in brackets", withHttp({ bind: "[::1]" }), "gateway.http.bind", /"\[::1\]"/],
  ["an address out of range", withHttp({ bind: "300.0.0.1" }), "gateway.http.bind", /"300\.0\.0\.1"/],
  ["a socket without a path", withHttp({ bind: "unix:" }), "gateway.http.bind", /path/],
  ["a socket with too long a path", withHttp({ bind: `unix:/${"ä".repeat(54)}` }), "gateway.http.bind", /path/],
  ["proxies without a list", withHttp({ trusted_proxies: "10.0.0.1" }), "gateway.http.trusted_proxies", /list/],
  [
    "a proxy by its name",
    withHttp({ trusted_proxies: ["nginx"] }),
    "gateway.http.trusted_proxies[0]",
    /"nginx"/,
    /network/,
  ],
  [
    "a network that does not exist",
    withHttp({ trusted_proxies: ["::1", "10.0.0.0/33"] }),
    "gateway.http.trusted_proxies[1]",
    /10\.0\.0\.0\/33/,
  ],
  [
    "an origin with a path",
    withHttp({ cors: { origins: ["https://a.example/"] } }),
    "gateway.http.cors.origins[0]",
    /origin/,
  ],
  [
    "an upstream without a scheme",
    adapter({ type: "openai", base_url: "api.example.com/v1" }),
    "gateway.adapters.main.base_url",
    /https:/,
  ],
  [
    "a base URL with the endpoint's path",
    adapter({ type: "openai", base_url: "https://h/v1/chat/completions" }),
    "gateway.adapters.main.base_url",
    /\/chat\/completions/,
  ],
];

const tokens: readonly Row[] = [
  ["an empty token", withHttp({ auth_token: "" }), "gateway.http.auth_token", /empty/, /token/],
  [
    "a token that is a number",
    withHttp({ auth_token: 1234567890123456 }),
    "gateway.http.auth_token",
    /number/,
    /string/,
  ],
  ["a token with a space", withHttp({ auth_token: "two words and more of them" }), "gateway.http.auth_token", /header/],
  ["a token with a line end", withHttp({ auth_token: `${longToken}\n` }), "gateway.http.auth_token", /line/],
  [
    "one value for two tokens",
    withHttp({}, { auth: { token: longToken } }),
    "gateway.http.auth_token",
    /gateway\.auth\.token/,
  ],
  [
    "a token without a name",
    withHttp({ tokens: [{ token: `${longToken}-app` }] }),
    "gateway.http.tokens[0].name",
    /missing|required/,
  ],
  ["a token named default", named({ name: "default" }), "gateway.http.tokens[0].name", /default/],
  ["a token and a digest", named({ sha256: "a".repeat(64) }), "gateway.http.tokens[0]", /token/, /sha256/],
  ["neither token nor digest", withHttp({ tokens: [{ name: "app" }] }), "gateway.http.tokens[0]", /token/, /sha256/],
  [
    "a digest that is too short",
    withHttp({ tokens: [{ name: "app", sha256: "abc" }] }),
    "gateway.http.tokens[0].sha256",
    /"abc"/,
    /64/,
  ],
  ["a token that may use no model", named({ models: [] }), "gateway.http.tokens[0].models", /empty/],
  [
    "a model with an asterisk inside",
    named({ models: ["gpt-*", "gpt-*-mini"] }),
    "gateway.http.tokens[0].models[1]",
    /"gpt-\*-mini"/,
  ],
  ["an expiry in words", named({ expires_at: "tomorrow" }), "gateway.http.tokens[0].expires_at", /"tomorrow"/, /T\d\d/],
  [
    "a day that does not exist",
    named({ expires_at: "2030-02-30T00:00:00Z" }),
    "gateway.http.tokens[0].expires_at",
    /2030-02-30/,
  ],
  [
    "an unknown endpoint",
    named({ endpoints: ["chat"] }),
    "gateway.http.tokens[0].endpoints[0]",
    /"chat"/,
    /compat_chat/,
  ],
];

const adapters: readonly Row[] = [
  [
    "an adapter without a type",
    adapter({ model: "m" }),
    "gateway.adapters.main.type",
    /echo/,
    /openai/,
    /command/,
    /module/,
    /ai-sdk/,
  ],
  ["an unknown type", adapter({ type: "ollama" }), "gateway.adapters.main.type", /"ollama"/, /openai/],
  ["an adapter as text", withHttp({}, { adapters: { main: "echo" } }), "gateway.adapters.main", /"echo"/, /object/],
  ["a program without arguments", adapter({ type: "command", argv: [] }), "gateway.adapters.main.argv", /empty/],
  [
    "a key that is a list",
    adapter({ type: "openai", api_key: ["sk-a"] }),
    "gateway.adapters.main.api_key",
    /list/,
    /string/,
  ],
  ["a key with a line end", adapter({ type: "openai", api_key: "sk-a\n" }), "gateway.adapters.main.api_key", /line/],
  [
    "a default adapter that does not exist",
    withHttp({}, { adapters: echo, default_adapter: "other" }),
    "gateway.default_adapter",
    /"other"/,
    /main/,
  ],
  [
    "several adapters without a default",
    withHttp({}, { adapters: { a: echo.main, b: echo.main } }),
    "gateway.default_adapter",
    /\ba\b/,
    /\bb\b/,
  ],
  [
    "a model for an adapter that does not exist",
    withHttp({}, { adapters: echo, models: { fast: "openai" } }),
    "gateway.models.fast",
    /"openai"/,
    /main/,
  ],
  [
    "a fallback that does not exist",
    adapter({ type: "echo", fallback: ["c"] }),
    "gateway.adapters.main.fallback[0]",
    /"c"/,
  ],
  [
    "an adapter that falls back on itself",
    adapter({ type: "echo", fallback: ["main"] }),
    "gateway.adapters.main.fallback[0]",
    /"main"/,
  ],
];

for (const [mistake, settings, path, ...said] of [...unknown, ...wrong, ...addresses, ...tokens, ...adapters]) {
  test(`${mistake} is told with its path, and what is allowed`, async () => {
    const problems = await problemsOf(settings);
    assert.deepEqual(
      problems.map((problem) => problem.path).filter((each) => each === path || each !== "gateway"),
      [path],
    );
    for (const each of said) assert.match(problems[0]!.message, each);
  });
}

test("the nearest known key is named for one that is misspelt, and none where nothing is near", async () => {
  const misspelt = await problemsOf(withHttp({ auth_tokn: "a", prot: 1, sokcet_mode: "600", quux: 1 }));
  const meant = misspelt.map(({ message }) => /did you mean\W+(\w+)/i.exec(message)?.[1]);
  assert.deepEqual(meant, ["auth_token", "port", "socket_mode", undefined]);
});

test("settings without any token are refused, and say which key to set", async () => {
  for (const settings of [{ gateway: {} }, { gateway: { http: { endpoints: { compat_chat: true } } } }]) {
    const [problem, ...others] = await problemsOf(settings);
    assert.deepEqual(others, []);
    assert.match(`${problem!.path}: ${problem!.message}`, /token.*gateway\.http\.auth_token/);
  }
});

for (const [which, settings] of [
  ["the general one", { gateway: { auth: { token: longToken } } }],
  ["the clients' one", { gateway: { http: { auth_token: longToken } } }],
  ["a named one", { gateway: { http: { tokens: [{ name: "app", token: longToken }] } } }],
  ["a digest", { gateway: { http: { tokens: [{ name: "app", sha256: "ab".repeat(32) }] } } }],
] as const) {
  test(`one token is enough: ${which}`, async () => {
    assert.deepEqual(await problemsOf(settings), []);
  });
}

test("an old and a new token of one name are valid side by side", async () => {
  const both = ["old", "new"].map((which) => ({ name: "app", token: `${longToken}-${which}` }));
  assert.deepEqual(await problemsOf(withHttp({ tokens: both })), []);
});

test("all problems are told at once", async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x${index}`, index]));
  const http = { ...many, port: "no", bind: "nowhere", auth_token: "${GONE}" };
  const problems = await problemsOf({ gateway: { http, adapters: { a: { type: "?" } } } });
  assert.deepEqual(
    problems.map(({ path }) => path).toSorted(),
    [
      ...Object.keys(many).map((key) => `gateway.http.${key}`),
      "gateway.adapters.a.type",
      "gateway.http.auth_token",
      "gateway.http.bind",
      "gateway.http.port",
    ].toSorted(),
  );
});
