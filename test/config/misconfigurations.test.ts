/** Every mistake has its own message: the path, what was found, and what is allowed. */
import assert from "node:assert/strict";
import test from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { nearest } from "../../src/config/nearest.ts";
import { longToken, problemsOf, withHttp } from "./surroundings.ts";

const httpKeys =
  "bind, port, socket_mode, trusted_proxies, auth_token, endpoints, console, tokens, limits, cors, websocket, expose_reasoning";
const gatewayKeys = "auth, data_dir, http, adapters, default_adapter, models, sessions, log";
const addresses = 'an IPv4 or IPv6 address, "0.0.0.0", "::", "localhost", or "unix:" and a path';
const proxies = 'an IPv4 or IPv6 address, a network like "10.1.0.0/16" or "fd00:1::/32", or "unix"';
const redisForm =
  "redis://[user:password@]host[:port][,host[:port]…][/database][?prefix=NAME][&replicas=N], or rediss:// for TLS; percent-encode any characters in a password other than letters and digits";
const noToken =
  "gateway: no token is set, and one is always required; set gateway.http.auth_token, or gateway.auth.token (`portico init` writes one)";

function named(token: object): object {
  return withHttp({ tokens: [{ name: "app", token: `${longToken}-app`, ...token }] });
}

const mistakes: readonly (readonly [mistake: string, file: unknown, ...messages: string[]])[] = [
  ["an empty file", "", "(the file): not valid JSON: line 1, column 1: expected a value, but the file ends here"],
  [
    "a missing comma",
    '{\n  "a": 1\n  "b": 2}',
    "(the file): not valid JSON: line 3, column 3: expected a comma or }, but a string is here",
  ],
  [
    "a missing colon",
    '{"a" 1}',
    "(the file): not valid JSON: line 1, column 6: expected a colon, but something else is here",
  ],
  [
    "a bare word",
    '{"gateway": yes}',
    "(the file): not valid JSON: line 1, column 13: expected a value, but a word without quotation marks is here",
  ],
  [
    "an unclosed string",
    '{\n"gateway": "sk-secret\n}',
    "(the file): not valid JSON: line 2, column 12: this string is not closed",
  ],
  [
    "a wrong escape",
    '{"gateway": "\\q"}',
    "(the file): not valid JSON: line 1, column 13: this string has a character that must be escaped, or an invalid escape",
  ],
  [
    "an unclosed comment",
    "{} /* and so on",
    "(the file): not valid JSON: line 1, column 4: this comment is not closed",
  ],
  [
    "something after the end",
    "{} {}",
    "(the file): not valid JSON: line 1, column 4: expected the end of the file, but there is more here",
  ],
  [
    "a key written twice",
    '{"gateway": {}, "gateway": {}}',
    "(the file): not valid JSON: line 1, column 17: this key is here for the second time",
  ],
  [
    "a key without quotes",
    "{gateway: {}}",
    "(the file): not valid JSON: line 1, column 2: expected a key in double quotes, or }, but a word without quotation marks is here",
  ],
  [
    "YAML",
    "gateway:\n  http: {}\n",
    "(the file): not valid JSON: line 1, column 1: expected a value, but a word without quotation marks is here",
  ],
  [
    "single quotes",
    "{'gateway': {}}",
    '(the file): not valid JSON: line 1, column 2: expected a key in double quotes, or }, but a quotation mark other than " is here',
  ],
  [
    "typographic quotes",
    '{"gateway": “on”}',
    '(the file): not valid JSON: line 1, column 13: expected a value, but a quotation mark other than " is here',
  ],
  [
    "UTF-16",
    Buffer.from('\ufeff{"gateway": {}}', "utf16le").toString("utf8"),
    "(the file): not valid JSON: line 1, column 1: expected a value, but a byte that is not UTF-8 text (save the file as UTF-8) is here",
  ],
  [
    "more brackets than anybody means",
    "[".repeat(101),
    "(the file): not valid JSON: line 1, column 102: nested more than 100 deep",
  ],
  [
    "more objects in each other than anybody means",
    '{"a":'.repeat(101),
    "(the file): not valid JSON: line 1, column 506: nested more than 100 deep",
  ],
  ["null in place of the file", "null", "(the file): found null; allowed: an object"],
  ["a list in place of the file", [], "(the file): found an empty list; allowed: an object"],
  ["a string in place of the gateway", { gateway: "on" }, 'gateway: found the string "on"; allowed: an object'],
  [
    "the general token in place of its object",
    { gateway: { auth: "house-0123456789abcdef" } },
    "gateway.auth: found a string; allowed: an object",
    noToken,
  ],
  [
    "an unknown key at the top",
    { gatway: {} },
    "gatway: unknown key; did you mean 'gateway'? Known here: $schema, gateway",
    noToken,
  ],
  [
    "a key in the wrong place",
    withHttp({}, { auth_token: "house-0123456789abcdef" }),
    `gateway.auth_token: unknown key; did you mean gateway.http.auth_token? Known in gateway: ${gatewayKeys}`,
  ],
  [
    "a key in the wrong place that belongs in either of two others",
    withHttp({ token: "house-0123456789abcdef" }),
    `gateway.http.token: unknown key; did you mean gateway.auth.token or gateway.http.tokens[].token? Known in gateway.http: ${httpKeys}`,
  ],
  [
    "a section that is not in the gateway",
    { ...withHttp({}), sessions: { ttl: "1d" } },
    "sessions: unknown key; did you mean gateway.sessions? Known here: $schema, gateway",
  ],
  [
    "an unknown key that resembles no other",
    withHttp({}, { quux: 1 }),
    `gateway.quux: unknown key; known in gateway: ${gatewayKeys}`,
  ],
  [
    "an unknown key that every object has",
    withHttp({}, { constructor: {} }),
    `gateway.constructor: unknown key; known in gateway: ${gatewayKeys}`,
  ],
  [
    "a misspelt port",
    withHttp({ prot: 1 }),
    `gateway.http.prot: unknown key; did you mean 'port'? Known in gateway.http: ${httpKeys}`,
  ],
  [
    "a key in capital letters",
    withHttp({ PORT: 1 }),
    `gateway.http.PORT: unknown key; did you mean 'port'? Known in gateway.http: ${httpKeys}`,
  ],
  [
    "a misspelt token",
    { gateway: { http: { auth_tokn: "sk-secret" } } },
    `gateway.http.auth_tokn: unknown key; did you mean 'auth_token'? Known in gateway.http: ${httpKeys}`,
    noToken,
  ],
  [
    "a misspelt endpoint",
    withHttp({ endpoints: { compat_chats: true } }),
    "gateway.http.endpoints.compat_chats: unknown key; did you mean 'compat_chat'? Known in gateway.http.endpoints: compat_chat, compat_responses",
  ],
  [
    "the beginning of a key",
    withHttp({ endpoints: { compat_r: true } }),
    "gateway.http.endpoints.compat_r: unknown key; did you mean 'compat_responses'? Known in gateway.http.endpoints: compat_chat, compat_responses",
  ],
  [
    "the beginning of two keys",
    withHttp({ endpoints: { compat: true } }),
    "gateway.http.endpoints.compat: unknown key; known in gateway.http.endpoints: compat_chat, compat_responses",
  ],
  [
    "a port as a string",
    withHttp({ port: "8600" }),
    'gateway.http.port: found the string "8600"; allowed: an integer from 0 to 65535',
  ],
  [
    "a port that is too high",
    withHttp({ port: 65536 }),
    "gateway.http.port: found 65536; allowed: an integer from 0 to 65535",
  ],
  ["a port below zero", withHttp({ port: -1 }), "gateway.http.port: found -1; allowed: an integer from 0 to 65535"],
  [
    "a port with a fraction",
    withHttp({ port: 80.5 }),
    "gateway.http.port: found 80.5; allowed: an integer from 0 to 65535",
  ],
  [
    "a port that is null",
    withHttp({ port: null }),
    "gateway.http.port: found null; allowed: an integer from 0 to 65535",
  ],
  ["a section that is null", withHttp({}, { sessions: null }), "gateway.sessions: found null; allowed: an object"],
  ["a token that is null", withHttp({ auth_token: null }), "gateway.http.auth_token: found null; allowed: a string"],
  [
    "an empty string where none is allowed",
    withHttp({}, { data_dir: "" }),
    'gateway.data_dir: found the string ""; allowed: a string that is not empty',
  ],
  ["a bind that is a number", withHttp({ bind: 127 }), "gateway.http.bind: found 127; allowed: a string"],
  [
    "a hostname",
    withHttp({ bind: "example.com" }),
    `gateway.http.bind: found the string "example.com"; allowed: ${addresses}`,
  ],
  [
    "an address with a port",
    withHttp({ bind: "127.0.0.1:80" }),
    `gateway.http.bind: found the string "127.0.0.1:80"; allowed: ${addresses} (the port belongs in gateway.http.port)`,
  ],
  [
    "an address in brackets",
    withHttp({ bind: "[::1]" }),
    `gateway.http.bind: found the string "[::1]"; allowed: ${addresses} (write it without brackets: "::1")`,
  ],
  [
    "an address out of range",
    withHttp({ bind: "300.0.0.1" }),
    `gateway.http.bind: found the string "300.0.0.1"; allowed: ${addresses}`,
  ],
  [
    "a socket without a path",
    withHttp({ bind: "unix:" }),
    `gateway.http.bind: found the string "unix:"; allowed: ${addresses} (the path is missing)`,
  ],
  [
    "a socket whose path is too long for the system",
    withHttp({ bind: `unix:/${"ä".repeat(53)}b` }),
    `gateway.http.bind: found the string "unix:/${"ä".repeat(53)}b"; allowed: ${addresses} (the path is longer than 107 bytes)`,
  ],
  [
    "proxies without a list",
    withHttp({ trusted_proxies: "10.0.0.1" }),
    'gateway.http.trusted_proxies: found the string "10.0.0.1"; allowed: a list',
  ],
  [
    "proxies by name, with a port, in brackets, by the path of a socket",
    withHttp({ trusted_proxies: ["localhost", "10.0.0.1:80", "[::1]", "unix:/run/nginx.sock"] }),
    `gateway.http.trusted_proxies[0]: found the string "localhost"; allowed: ${proxies}`,
    `gateway.http.trusted_proxies[1]: found the string "10.0.0.1:80"; allowed: ${proxies}`,
    `gateway.http.trusted_proxies[2]: found the string "[::1]"; allowed: ${proxies}`,
    `gateway.http.trusted_proxies[3]: found the string "unix:/run/nginx.sock"; allowed: ${proxies}`,
  ],
  [
    "networks that do not exist",
    withHttp({ trusted_proxies: ["10.0.0.0/33", "10.0.0.0/255.0.0.0", "::1/129", "10.0.0.0/", "10.0.0/8"] }),
    `gateway.http.trusted_proxies[0]: found the string "10.0.0.0/33"; allowed: ${proxies} (after the slash, a number from 0 to 32)`,
    `gateway.http.trusted_proxies[1]: found the string "10.0.0.0/255.0.0.0"; allowed: ${proxies} (after the slash, a number from 0 to 32)`,
    `gateway.http.trusted_proxies[2]: found the string "::1/129"; allowed: ${proxies} (after the slash, a number from 0 to 128)`,
    `gateway.http.trusted_proxies[3]: found the string "10.0.0.0/"; allowed: ${proxies} (after the slash, a number from 0 to 32)`,
    `gateway.http.trusted_proxies[4]: found the string "10.0.0/8"; allowed: ${proxies}`,
  ],
  [
    "an endpoint that is a string",
    withHttp({ endpoints: { compat_chat: "yes" } }),
    'gateway.http.endpoints.compat_chat: found the string "yes"; allowed: true or false',
  ],
  [
    "endpoints as a list",
    withHttp({ endpoints: ["compat_chat"] }),
    "gateway.http.endpoints: found a list; allowed: an object",
  ],
  ["no token at all", { gateway: {} }, noToken],
  [
    "an empty token",
    withHttp({ auth_token: "" }),
    "gateway.http.auth_token: found an empty string; allowed: a long random token (`portico token make` makes one)",
  ],
  [
    "two empty tokens",
    { gateway: { auth: { token: "" }, http: { auth_token: "" } } },
    "gateway.auth.token: found an empty string; allowed: a long random token (`portico token make` makes one)",
    "gateway.http.auth_token: found an empty string; allowed: a long random token (`portico token make` makes one)",
  ],
  [
    "a token that is a number",
    withHttp({ auth_token: 1234567890123456 }),
    "gateway.http.auth_token: found a number; allowed: a string",
  ],
  [
    "a token with a space",
    withHttp({ auth_token: "two words and more of them" }),
    "gateway.http.auth_token: contains a space or a character that no header can carry; allowed: visible ASCII characters",
  ],
  [
    "one value for two tokens",
    { gateway: { auth: { token: longToken }, http: { auth_token: longToken } } },
    "gateway.http.auth_token: the same token as gateway.auth.token; every token needs its own value",
  ],
  [
    "a token without a name",
    withHttp({ tokens: [{ token: `${longToken}-app` }] }),
    "gateway.http.tokens[0].name: missing; required: a string that is not empty",
  ],
  [
    "a token named default",
    named({ name: "default" }),
    "gateway.http.tokens[0].name: 'default' is the owner of the tokens without a name; choose another name",
  ],
  [
    "a token and a digest",
    named({ sha256: "a".repeat(64) }),
    "gateway.http.tokens[0]: has both 'token' and 'sha256'; allowed: one of them",
  ],
  [
    "a token in place of its object",
    withHttp({ tokens: ["house-0123456789abcdef"] }),
    "gateway.http.tokens[0]: found a string; allowed: an object",
  ],
  [
    "neither token nor digest",
    withHttp({ tokens: [{ name: "app" }] }),
    "gateway.http.tokens[0]: has neither 'token' nor 'sha256'; required: one of them",
  ],
  [
    "a digest that is too short",
    withHttp({ tokens: [{ name: "app", sha256: "abc" }] }),
    'gateway.http.tokens[0].sha256: found the string "abc"; allowed: 64 hexadecimal digits',
  ],
  [
    "a token that may use no model",
    named({ models: [] }),
    "gateway.http.tokens[0].models: found an empty list; allowed: a list that is not empty",
  ],
  [
    "a model with an asterisk inside",
    named({ models: ["gpt-*", "gpt-*-mini"] }),
    'gateway.http.tokens[0].models[1]: found the string "gpt-*-mini"; allowed: a model\'s name, or a prefix like "gpt-*"',
  ],
  [
    "the digest of another token",
    withHttp({
      tokens: [
        { name: "app", sha256: "28c57df29a3ae7217a0a6f4a3d7b7a6d0ef7cf6a6d3e7b9a7b5b0fbd0d8e9b1c" },
        { name: "b", sha256: "28C57DF29A3AE7217A0A6F4A3D7B7A6D0EF7CF6A6D3E7B9A7B5B0FBD0D8E9B1C" },
      ],
    }),
    "gateway.http.tokens[1].sha256: the same token as gateway.http.tokens[0].sha256; every token needs its own value",
  ],
  [
    "an expiry without a time",
    named({ expires_at: "2030-01-31" }),
    'gateway.http.tokens[0].expires_at: found the string "2030-01-31"; allowed: a date and time like "2030-01-31T00:00:00Z"',
  ],
  [
    "an expiry in words",
    named({ expires_at: "tomorrow" }),
    'gateway.http.tokens[0].expires_at: found the string "tomorrow"; allowed: a date and time like "2030-01-31T00:00:00Z"',
  ],
  [
    "an expiry in a month that does not exist",
    named({ expires_at: "2030-13-31T00:00:00Z" }),
    'gateway.http.tokens[0].expires_at: found the string "2030-13-31T00:00:00Z"; allowed: a date and time that exists',
  ],
  [
    "a day that does not exist",
    named({ expires_at: "2030-02-30T00:00:00Z" }),
    'gateway.http.tokens[0].expires_at: found the string "2030-02-30T00:00:00Z"; allowed: a date and time that exists',
  ],
  [
    "an hour that does not exist",
    named({ expires_at: "2030-01-31T25:00:00Z" }),
    'gateway.http.tokens[0].expires_at: found the string "2030-01-31T25:00:00Z"; allowed: a date and time that exists',
  ],
  [
    "an endpoint that no token can have",
    named({ endpoints: ["compat_chat", "chat"] }),
    'gateway.http.tokens[0].endpoints[1]: found the string "chat"; allowed: "compat_chat", "compat_responses", "metrics"',
  ],
  [
    "a limit that no token can have",
    named({ limits: { max_body_bytes: 1 } }),
    "gateway.http.tokens[0].limits.max_body_bytes: unknown key; did you mean gateway.http.limits.max_body_bytes? Known in gateway.http.tokens[0].limits: requests_per_minute, burst, max_concurrent_turns",
  ],
  [
    "a token's burst without a rate",
    named({ limits: { burst: 5 } }),
    "gateway.http.tokens[0].limits.burst: has no effect without 'requests_per_minute' beside it",
  ],
  [
    "tokens that are not a list",
    withHttp({ tokens: { app: "x" } }),
    "gateway.http.tokens: found an object; allowed: a list",
  ],
  [
    "a burst without a rate",
    withHttp({ limits: { burst: 5 } }),
    "gateway.http.limits.burst: has no effect without 'requests_per_minute' beside it",
  ],
  [
    "a limit of zero",
    withHttp({ limits: { max_messages: 0 } }),
    "gateway.http.limits.max_messages: found 0; allowed: an integer from 1 to 2147483647",
  ],
  [
    "a timer that is too long",
    withHttp({ limits: { heartbeat_ms: 1e12 } }),
    "gateway.http.limits.heartbeat_ms: found 1000000000000; allowed: an integer from 1 to 2147483647",
  ],
  [
    "a thread of megabytes that is given in bytes",
    { gateway: { auth: { token: longToken }, sessions: { max_bytes_per_thread: 64 } } },
    "gateway.sessions.max_bytes_per_thread: found 64; allowed: an integer from 65536 to 2147483647",
  ],
  [
    "a star for every origin",
    withHttp({ cors: { origins: ["*"] } }),
    'gateway.http.cors.origins[0]: found the string "*"; allowed: an exact origin like "https://app.example.com", without a path',
  ],
  [
    "an origin with a path",
    withHttp({ cors: { origins: ["https://a.example/x"] } }),
    'gateway.http.cors.origins[0]: found the string "https://a.example/x"; allowed: an exact origin like "https://app.example.com", without a path',
  ],
  [
    "origins without a host, or of another scheme",
    withHttp({ cors: { origins: ["https://", "ftp://a.example"] } }),
    'gateway.http.cors.origins[0]: found the string "https://"; allowed: an exact origin like "https://app.example.com", without a path',
    'gateway.http.cors.origins[1]: found the string "ftp://a.example"; allowed: an exact origin like "https://app.example.com", without a path',
  ],
  [
    "an adapter that is a string",
    withHttp({}, { adapters: { main: "openai" } }),
    "gateway.adapters.main: found the string \"openai\"; allowed: an object with a 'type'",
  ],
  [
    "null in place of an adapter",
    withHttp({}, { adapters: { main: null } }),
    "gateway.adapters.main: found null; allowed: an object with a 'type'",
  ],
  [
    "an adapter without a type",
    withHttp({}, { adapters: { main: {} } }),
    'gateway.adapters.main.type: missing; required: "echo", "openai"',
  ],
  [
    "an unknown type of adapter",
    withHttp({}, { adapters: { main: { type: "opnai" } } }),
    'gateway.adapters.main.type: found the string "opnai"; allowed: "echo", "openai"; did you mean \'openai\'?',
  ],
  [
    "a type of adapter that every object knows",
    withHttp({}, { adapters: { main: { type: "constructor" } } }),
    'gateway.adapters.main.type: found the string "constructor"; allowed: "echo", "openai"; a server such as Ollama, vLLM or OpenRouter is reached with "openai" and its \'base_url\'',
  ],
  [
    "a number in place of the type of an adapter",
    withHttp({}, { adapters: { main: { type: 1 } } }),
    'gateway.adapters.main.type: found 1; allowed: "echo", "openai"; a server such as Ollama, vLLM or OpenRouter is reached with "openai" and its \'base_url\'',
  ],
  [
    "the name of a server as the type of its adapter",
    withHttp({}, { adapters: { main: { type: "ollama" } } }),
    'gateway.adapters.main.type: found the string "ollama"; allowed: "echo", "openai"; a server such as Ollama, vLLM or OpenRouter is reached with "openai" and its \'base_url\'',
  ],
  [
    "an option that belongs to another type",
    withHttp({}, { adapters: { main: { type: "echo", base_url: "x" } } }),
    "gateway.adapters.main.base_url: unknown key; known in gateway.adapters.main: type, model, models, context_window, max_answer_characters, fallback, retry, breaker, delay_ms",
  ],
  [
    "an option that is known elsewhere, but not to adapters",
    withHttp({}, { adapters: { main: { type: "echo", bind: "x" } } }),
    "gateway.adapters.main.bind: unknown key; known in gateway.adapters.main: type, model, models, context_window, max_answer_characters, fallback, retry, breaker, delay_ms",
  ],
  [
    "an option below its only limit",
    withHttp({}, { adapters: { main: { type: "echo", delay_ms: -1 } } }),
    "gateway.adapters.main.delay_ms: found -1; allowed: an integer of at least 0",
  ],
  [
    "an option of a wrong type",
    withHttp({}, { adapters: { main: { type: "openai", proxy: 3 } } }),
    "gateway.adapters.main.proxy: found 3; allowed: a string or false",
  ],
  [
    "an option that is null",
    withHttp({}, { adapters: { main: { type: "echo", model: null } } }),
    "gateway.adapters.main.model: found null; allowed: a string that is not empty",
  ],
  [
    "a key that is not a string",
    withHttp({}, { adapters: { main: { type: "openai", api_key: ["sk-secret"] } } }),
    "gateway.adapters.main.api_key: found a list; allowed: a string",
  ],
  [
    "a model map of numbers",
    withHttp({}, { adapters: { "my model": { type: "echo", models: { a: 1 } } } }),
    'gateway.adapters["my model"].models.a: found 1; allowed: a string that is not empty',
  ],
  [
    "a number and a file for models whose names look like secrets",
    withHttp({}, { adapters: { main: { type: "echo", models: { "key-a": 1, "key-b": { file: "a" } } } } }),
    "gateway.adapters.main.models.key-a: found 1; allowed: a string that is not empty",
    "gateway.adapters.main.models.key-b: found an object; allowed: a string that is not empty",
  ],
  [
    "null in place of the adapters",
    withHttp({}, { adapters: null }),
    "gateway.adapters: found null; allowed: an object",
  ],
  ["null in place of the models", withHttp({}, { models: null }), "gateway.models: found null; allowed: an object"],
  [
    "a number in place of the default adapter",
    withHttp({}, { adapters: { main: { type: "echo" } }, default_adapter: 1 }),
    "gateway.default_adapter: found 1; allowed: a string",
  ],
  [
    "a default adapter that does not exist",
    withHttp({}, { adapters: { main: { type: "echo" } }, default_adapter: "other" }),
    'gateway.default_adapter: found the string "other"; allowed: main',
  ],
  [
    "a default adapter without adapters",
    withHttp({}, { default_adapter: "main" }),
    'gateway.default_adapter: found the string "main"; allowed: nothing, because gateway.adapters has none',
  ],
  [
    "several adapters without a default",
    withHttp({}, { adapters: { a: { type: "echo" }, b: { type: "echo" } } }),
    "gateway.default_adapter: missing; required with several adapters: a, b",
  ],
  [
    "a model for an adapter that does not exist",
    withHttp({}, { adapters: { main: { type: "echo" } }, models: { "gpt-*": "openai" } }),
    'gateway.models["gpt-*"]: found the string "openai"; allowed: main',
  ],
  [
    "a fallback to an adapter that does not exist",
    withHttp({}, { adapters: { a: { type: "echo", fallback: ["c"] }, b: { type: "echo" } }, default_adapter: "a" }),
    'gateway.adapters.a.fallback[0]: found the string "c"; allowed: b',
  ],
  [
    "an adapter that falls back on itself",
    withHttp({}, { adapters: { a: { type: "echo", fallback: ["a"] } } }),
    'gateway.adapters.a.fallback[0]: found the string "a"; allowed: nothing, because there is no other adapter',
  ],
  [
    "a time without its unit",
    withHttp({}, { sessions: { ttl: "30" } }),
    'gateway.sessions.ttl: found the string "30"; allowed: a time like "90s", "15m", "24h" or "30d", or "never"',
  ],
  [
    "an unknown store",
    withHttp({}, { sessions: { store: "mysql://me:secret@host" } }),
    'gateway.sessions.store: found the string "mysql://***@host"; allowed: "memory:", "sqlite:" and a file, or "redis://" and a server',
  ],
  [
    "a Redis with a named database",
    withHttp({}, { sessions: { store: "redis://me:secret@host/turns" } }),
    `gateway.sessions.store: found the string "redis://***@host/turns"; allowed: ${redisForm}`,
  ],
  [
    "a Redis cluster with an unnamed node",
    withHttp({}, { sessions: { store: "redis://me:secret@one:7000,,two:7001?replicas=1" } }),
    `gateway.sessions.store: found the string "redis://***@one:7000,,two:7001?replicas=1"; allowed: ${redisForm}`,
  ],
  [
    "a Redis without a host",
    withHttp({}, { sessions: { store: "redis:///0" } }),
    `gateway.sessions.store: found the string "redis:///0"; allowed: ${redisForm}`,
  ],
  [
    "a Redis with a fragment",
    withHttp({}, { sessions: { store: "redis://host/1#2" } }),
    `gateway.sessions.store: found the string "redis://host/1#2"; allowed: ${redisForm}`,
  ],
  [
    "a Redis with an invalid number of replicas",
    withHttp({}, { sessions: { store: "redis://host?replicas=all" } }),
    `gateway.sessions.store: found the string "redis://host?replicas=all"; allowed: ${redisForm}`,
  ],
  [
    "a Redis with a password that is not escaped",
    withHttp({}, { sessions: { store: "rediss://me:se/cr#et@host" } }),
    `gateway.sessions.store: found the string "rediss://***@host"; allowed: ${redisForm}`,
  ],
  [
    "a Redis with a bare percent sign in its password",
    withHttp({}, { sessions: { store: "redis://me:50%@host" } }),
    `gateway.sessions.store: found the string "redis://***@host"; allowed: ${redisForm}`,
  ],
  [
    "an unknown hint",
    withHttp({}, { sessions: { hints: ["cookie"] } }),
    'gateway.sessions.hints[0]: found the string "cookie"; allowed: "user" or "header:" and the name of a header',
  ],
  [
    "an unknown log level",
    withHttp({}, { log: { level: "loud" } }),
    'gateway.log.level: found the string "loud"; allowed: "silent", "error", "info"',
  ],
  [
    "a variable that is not set",
    withHttp({ auth_token: "${NO_SUCH}" }),
    "gateway.http.auth_token: refers to the environment variable NO_SUCH, which is not set; set it in the gateway's environment",
  ],
  [
    "a variable that is not set, with a name that every object knows",
    withHttp({}, { data_dir: "${constructor}" }),
    "gateway.data_dir: refers to the environment variable constructor, which is not set; set it in the gateway's environment",
  ],
  [
    "a variable without a name",
    withHttp({}, { data_dir: "${}" }),
    "gateway.data_dir: is not a valid reference to the environment; write ${NAME}, or $${ for ${ itself",
  ],
  [
    "a variable with a default, as shells have it",
    withHttp({}, { data_dir: "${PORT:-data}" }),
    "gateway.data_dir: is not a valid reference to the environment; write ${NAME}, or $${ for ${ itself",
  ],
  [
    "a variable whose bracket is not closed",
    withHttp({}, { data_dir: "${PORT" }),
    "gateway.data_dir: is not a valid reference to the environment; write ${NAME}, or $${ for ${ itself",
  ],
  [
    "a type from a variable that is not set",
    withHttp({}, { adapters: { main: { type: "${NO_SUCH}" } } }),
    "gateway.adapters.main.type: refers to the environment variable NO_SUCH, which is not set; set it in the gateway's environment",
  ],
  [
    "an adapter from a variable that is not set",
    withHttp({}, { adapters: { main: "${NO_SUCH}" } }),
    "gateway.adapters.main: refers to the environment variable NO_SUCH, which is not set; set it in the gateway's environment",
  ],
  [
    "an adapter, and names of others, from a variable",
    withHttp(
      {},
      {
        adapters: { main: "${PORT}", other: { type: "echo", fallback: ["${PORT}"] } },
        default_adapter: "${PORT}",
        models: { fast: "${PORT}" },
      },
    ),
    "gateway.adapters.main: found the string \"${PORT}\"; allowed: an object with a 'type'",
    'gateway.default_adapter: found the string "${PORT}"; allowed: main, other',
    'gateway.models.fast: found the string "${PORT}"; allowed: main, other',
    'gateway.adapters.other.fallback[0]: found the string "${PORT}"; allowed: main',
  ],
  [
    "an unknown type from a variable",
    withHttp({}, { adapters: { main: { type: "${PORT}" } } }),
    'gateway.adapters.main.type: found the string "${PORT}"; allowed: "echo", "openai"; a server such as Ollama, vLLM or OpenRouter is reached with "openai" and its \'base_url\'',
  ],
  [
    "a port from the environment",
    withHttp({ port: "${PORT}" }),
    'gateway.http.port: found the string "${PORT}"; allowed: an integer from 0 to 65535',
  ],
  [
    "a secret file that does not exist",
    withHttp({ auth_token: { file: "gone" } }),
    "gateway.http.auth_token: refers to the file /etc/portico/gone, which cannot be read (ENOENT); create it, or let the gateway's user read it",
  ],
  [
    "a secret file named by a variable that is not set",
    withHttp({ auth_token: { file: "${NO_SUCH}/token" } }),
    "gateway.http.auth_token.file: refers to the environment variable NO_SUCH, which is not set; set it in the gateway's environment",
  ],
  [
    "a secret file without a path",
    withHttp({ auth_token: { file: 3 } }),
    "gateway.http.auth_token.file: found 3; allowed: the path of a file",
  ],
  [
    "a secret file with an empty path",
    withHttp({ auth_token: { file: "" } }),
    'gateway.http.auth_token.file: found the string ""; allowed: the path of a file',
  ],
  [
    "a secret file with more keys",
    withHttp({ auth_token: { file: "a", mode: 1 } }),
    "gateway.http.auth_token.mode: unknown key; a reference to a file has only the key 'file'",
  ],
  [
    "a file reference for a value that is not a secret",
    withHttp({ bind: { file: "a" } }),
    "gateway.http.bind: found an object; allowed: a string",
  ],
];

for (const [mistake, file, ...expected] of mistakes) {
  test(`A configuration with ${mistake} is refused with its own message.`, async () => {
    const problems = await problemsOf(file, { env: { PORT: "8600" } });
    assert.deepEqual(
      problems.map(({ path, message }) => `${path}: ${message}`),
      expected,
    );
  });
}

test("Of several words that a misspelt one resembles, it names the nearest.", () => {
  const known = ["max_event_bytes_per_turn", "max_events_per_turn", "max_turns_per_thread"];
  for (const words of [known, known.toReversed()]) assert.equal(nearest("max_event_per_turn", words), known[1]);
});

test("A word that was probably meant is few letters added, dropped, changed or swapped away.", () => {
  const known = ["bind", "port", "socket_mode"];
  for (const [word, meant] of [
    ["bnd", "bind"],
    ["biind", "bind"],
    ["bond", "bind"],
    ["prot", "port"],
    ["pot", "port"],
    ["sokcet_mdoe", "socket_mode"],
    ["socketmod", "socket_mode"],
    ["po", "port"],
    ["rt", undefined],
    ["opt", undefined],
    ["trop", undefined],
    ["rocket_load", undefined],
  ] as const) {
    assert.equal(nearest(word, known), meant, word);
  }
});

test("A long text is reported by its beginning.", async () => {
  const [problem] = await problemsOf(withHttp({ bind: "x".repeat(81) }));
  assert.equal(problem?.message.split(";")[0], `found the string "${"x".repeat(77)}..."`);
});

test("A program's arguments must not be empty, and what is written in place of its variables is not shown.", async () => {
  const main = { type: "command", argv: [], set_env: "hush" };
  const problems = await problemsOf(withHttp({}, { adapters: { main } }), { adapterOptions });
  assert.deepEqual(
    problems.map(({ path, message }) => `${path}: ${message}`),
    [
      "gateway.adapters.main.argv: found an empty list; allowed: a list that is not empty",
      "gateway.adapters.main.set_env: found a string; allowed: an object",
    ],
  );
});

test("An empty secret file is reported with its full path.", async () => {
  for (const text of ["", " \n"]) {
    assert.deepEqual(await problemsOf(withHttp({ auth_token: { file: "secret" } }), { readText: () => text }), [
      {
        path: "gateway.http.auth_token",
        message: "refers to the file /etc/portico/secret, which is empty; write the secret into it",
      },
    ]);
  }
});

test("All problems of a file are reported at once.", async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x${index}`, index]));
  const problems = await problemsOf({
    gateway: { http: { ...many, port: "no", bind: "nowhere", auth_token: "${GONE}" }, adapters: { a: { type: "?" } } },
  });
  assert.equal(problems.length, 24);
});

test("No message contains a secret.", async () => {
  const secret = "sk-very-secret";
  const problems = await problemsOf(
    {
      gateway: {
        auth: { token: [secret] },
        http: { auth_token: { value: secret }, tokenn: secret, port: "${SECRET}" },
        adapters: { a: { type: "openai", headers: { "x-key": 5 }, api_key: 7, base_url: { url: secret } } },
      },
    },
    { env: { SECRET: secret } },
  );
  assert.ok(problems.length >= 6);
  assert.ok(!JSON.stringify(problems).includes(secret));
});
