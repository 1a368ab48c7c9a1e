import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import { authorization, type BoxOptions, createBox, decide, say, toToken, token } from "../scripted.ts";

interface Case {
  readonly name: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly box?: BoxOptions;
  readonly status: number;
  readonly error: Readonly<Record<string, unknown>>;
  readonly answerHeaders?: Readonly<Record<string, string>>;
}

const json = { "content-type": "application/json" };
const asker = { ...json, authorization };
const unanswered = { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" };
const hello = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
const invalid = "invalid_request_error";

const cases: readonly Case[] = [
  {
    name: "no token",
    headers: json,
    status: 401,
    error: {
      message: "No token was sent. Send the header 'Authorization: Bearer <token>' or 'X-API-Key: <token>'.",
      type: "authentication_error",
      param: null,
      code: "missing_api_key",
    },
    answerHeaders: { "www-authenticate": "Bearer" },
  },
  {
    name: "a header without its token, as from an empty variable",
    headers: { ...json, authorization: "Bearer " },
    status: 401,
    error: {
      message:
        "The header 'Authorization' was sent, but not as 'Bearer <token>'. Check that the token is not empty, and that the word 'Bearer' precedes it.",
      code: "missing_api_key",
    },
    answerHeaders: { "www-authenticate": "Bearer" },
  },
  {
    name: "a wrong token",
    headers: { ...json, authorization: "Bearer nope" },
    status: 401,
    error: { type: "authentication_error", code: "invalid_api_key" },
    answerHeaders: { "www-authenticate": "Bearer" },
  },
  {
    name: "an expired token",
    headers: asker,
    box: { settings: { tokens: [toToken(token, { expiresAt: new Date(0) })] } },
    status: 401,
    error: {
      code: "invalid_api_key",
      message: "The token expired at 1970-01-01T00:00:00.000Z. Ask the operator for a new one.",
    },
  },
  {
    name: "a token that does not open this route",
    headers: asker,
    box: { settings: { tokens: [toToken(token, { opens: new Set(["operator"]) })] } },
    status: 403,
    error: { type: "permission_error", code: "endpoint_not_allowed" },
  },
  {
    name: "a disabled endpoint",
    headers: asker,
    box: { settings: { endpoints: { chat: false, responses: true } } },
    status: 404,
    error: {
      message: 'This endpoint is disabled. The operator can enable it with "gateway.http.endpoints.compat_chat": true.',
      type: invalid,
      code: "endpoint_disabled",
    },
  },
  {
    name: "a disabled responses endpoint",
    path: "/v1/responses",
    headers: asker,
    box: { settings: { endpoints: { chat: true, responses: false } } },
    status: 404,
    error: { code: "endpoint_disabled", message: /compat_responses/ },
  },
  {
    name: "an unknown path",
    path: "/v1/nope?secret=1",
    headers: asker,
    status: 404,
    error: {
      type: invalid,
      code: "unknown_url",
      message: "Unknown request URL: POST /v1/nope. Send turns to POST /v1/chat/completions or POST /v1/responses.",
    },
  },
  {
    name: "a base URL without /v1",
    path: "/chat/completions",
    headers: asker,
    status: 404,
    error: {
      code: "unknown_url",
      message: /Did you mean \/v1\/chat\/completions\? A client's base URL must end with \/v1\./,
    },
  },
  {
    name: "a base URL with /v1 twice",
    path: "/v1/v1/responses",
    headers: asker,
    status: 404,
    error: {
      code: "unknown_url",
      message: /Did you mean \/v1\/responses\? A client's base URL must end with \/v1\./,
    },
  },
  {
    name: "a base URL with /v1 twice, before a response's id",
    method: "GET",
    path: "/v1/v1/responses/resp_1",
    headers: { authorization },
    body: "",
    status: 404,
    error: { code: "unknown_url", message: /Did you mean \/v1\/responses\/resp_1\?/ },
  },
  {
    name: "an endpoint's URL as the base URL",
    path: "/v1/chat/completions/chat/completions",
    headers: asker,
    status: 404,
    error: {
      code: "unknown_url",
      message: /Did you mean \/v1\/chat\/completions\? A client's base URL must end with \/v1\./,
    },
  },
  {
    name: "a proxy's path before /v1",
    path: "/ai/v1/responses",
    headers: asker,
    status: 404,
    error: {
      code: "unknown_url",
      message: /Did you mean \/v1\/responses\? Nothing may come before \/v1; a proxy .* must remove it\./,
    },
  },
  {
    name: "a base URL with an extra slash at its end",
    path: "//v1/chat/completions",
    headers: asker,
    status: 404,
    error: {
      code: "unknown_url",
      message: /Did you mean \/v1\/chat\/completions\? The URL has an extra slash\./,
    },
  },
  {
    name: "a path with an extra slash at its end",
    path: "/v1/chat/completions/",
    headers: asker,
    status: 404,
    error: { code: "unknown_url", message: /Did you mean \/v1\/chat\/completions\?/ },
  },
  {
    name: "a path without an id at its end",
    path: "/v1/responses/",
    headers: asker,
    status: 404,
    error: { code: "unknown_url", message: /Did you mean \/v1\/responses\?/ },
  },
  {
    name: "an unknown path without a token",
    path: "/v1/nope",
    headers: json,
    status: 401,
    error: { code: "missing_api_key" },
  },
  {
    name: "an unknown id, however long,",
    path: `/v1/responses/${"x".repeat(10_000)}`,
    method: "GET",
    headers: { authorization },
    body: "",
    status: 404,
    error: { code: "not_found" },
  },
  {
    name: "a long id without a token",
    path: `/v1/responses/${"x".repeat(10_000)}`,
    method: "GET",
    body: "",
    status: 401,
    error: { code: "missing_api_key" },
  },
  {
    name: "a wrong method",
    method: "DELETE",
    headers: { authorization },
    body: "",
    status: 405,
    error: {
      type: invalid,
      code: "method_not_allowed",
      message: "Method DELETE is not allowed on /v1/chat/completions; use POST.",
    },
    answerHeaders: { allow: "POST" },
  },
  {
    name: "a wrong method on a route without a token",
    path: "/healthz",
    method: "POST",
    headers: json,
    status: 405,
    error: { code: "method_not_allowed" },
    answerHeaders: { allow: "GET" },
  },
  {
    name: "a wrong method on a path whose last word could be an id",
    path: "/v1/responses/compact",
    method: "GET",
    headers: { authorization },
    body: "",
    status: 405,
    error: { code: "method_not_allowed", message: "Method GET is not allowed on /v1/responses/compact; use POST." },
    answerHeaders: { allow: "POST" },
  },
  {
    name: "an uncommon method",
    path: "/openai/v1/responses/resp_1?a=b",
    method: "PROPFIND",
    headers: { authorization, "content-type": "application/xml" },
    body: "<propfind/>",
    status: 405,
    error: {
      type: invalid,
      code: "method_not_allowed",
      message: "Method PROPFIND is not allowed on /v1/responses/:id; use GET or DELETE.",
    },
    answerHeaders: { allow: "GET, DELETE" },
  },
  {
    name: "an uncommon method on a wildcard route, whatever its name contains",
    path: "/v1/models/vendor/model%0A",
    method: "QUERY",
    headers: { authorization },
    body: "",
    status: 405,
    error: { code: "method_not_allowed" },
    answerHeaders: { allow: "GET" },
  },
  {
    name: "an uncommon method on a route without a token",
    path: "/healthz",
    method: "MKCOL",
    body: "",
    status: 405,
    error: { code: "method_not_allowed" },
    answerHeaders: { allow: "GET" },
  },
  {
    name: "an uncommon method without a token",
    method: "PROPFIND",
    body: "",
    status: 401,
    error: { code: "missing_api_key" },
  },
  {
    name: "an uncommon method on an unknown path",
    path: "/v1/nope",
    method: "PROPFIND",
    headers: { authorization },
    body: "",
    status: 404,
    error: { code: "unknown_url" },
  },
  {
    name: "a body whose declared length is too large",
    headers: asker,
    box: { limits: { maxBodyBytes: 16 } },
    status: 413,
    error: {
      type: invalid,
      code: "body_too_large",
      message: /larger than 16 bytes \(gateway\.http\.limits\.max_body_bytes\)/,
    },
  },
  {
    name: "a type that is not JSON",
    headers: { authorization, "content-type": "text/plain" },
    status: 415,
    error: { type: invalid, code: "unsupported_media_type" },
  },
  {
    name: "a charset that is not UTF-8",
    headers: { authorization, "content-type": "application/json; charset=latin1" },
    status: 415,
    error: { code: "unsupported_media_type", message: "The charset 'latin1' is not supported; send JSON in UTF-8." },
  },
  {
    name: "a compressed body",
    headers: { ...asker, "content-encoding": "gzip" },
    status: 415,
    error: {
      code: "unsupported_media_type",
      message: "The encoding 'gzip' is not supported; send the body unencoded.",
    },
  },
  ...[[], [{ role: "user", content: "well?" }]].map((behind) => ({
    name: `a call without an output, with ${behind.length} items after it`,
    path: "/v1/responses",
    headers: asker,
    body: JSON.stringify({ model: "m", input: [{ role: "user", content: "go" }, unanswered, ...behind] }),
    status: 400,
    error: {
      type: invalid,
      code: "tool_call_mismatch",
      param: "input",
      message: "No tool output found for function call call_1.",
    },
  })),
  {
    name: "truncated JSON with a very long string",
    headers: asker,
    body: `{"model":"${"a".repeat(900_000)}`,
    status: 400,
    error: { code: "invalid_json", message: /unexpected end at line 1, column 900011\.$/ },
  },
  {
    name: "truncated JSON",
    headers: asker,
    body: '{"model":\n "m',
    status: 400,
    error: {
      type: invalid,
      code: "invalid_json",
      message: "The request body is not valid JSON: unexpected end at line 2, column 4.",
    },
  },
  {
    name: "JSON with a trailing comma",
    headers: asker,
    body: '{"model":"m",}',
    status: 400,
    error: {
      code: "invalid_json",
      message: 'The request body is not valid JSON: unexpected "}" at line 1, column 14.',
    },
  },
  ...[
    ['{"a":[1,true},', "}", 13],
    ['{"a":{}]', "]", 8],
    ["{1:2}", "1", 2],
    ['{"a":1}}', "}", 8],
    ["null,", ",", 5],
  ].map(([body, found, column]) => ({
    name: `JSON that goes wrong: ${body}`,
    headers: asker,
    body: String(body),
    status: 400,
    error: {
      code: "invalid_json",
      message: `The request body is not valid JSON: unexpected "${found}" at line 1, column ${column}.`,
    },
  })),
  {
    name: "an empty body",
    headers: { ...asker },
    body: " ",
    status: 400,
    error: { code: "invalid_json", message: "The request body is empty; send a JSON object." },
  },
  {
    name: "a body that is not an object",
    headers: asker,
    body: "[]",
    status: 400,
    error: { code: "invalid_type", message: "The request body must be a JSON object, but it is an array." },
  },
  {
    name: "a body that is nested too deeply",
    headers: asker,
    body: `${'{"a":'.repeat(65)}1${"}".repeat(65)}`,
    status: 400,
    error: { code: "json_too_deep", message: /deeper than 64 levels/ },
  },
  {
    name: "a missing field",
    headers: asker,
    body: '{"model":"m"}',
    status: 400,
    error: {
      type: invalid,
      code: "missing_required_parameter",
      param: "messages",
      message: "Missing required parameter: 'messages'.",
    },
  },
  {
    name: "a field of the wrong type",
    path: "/v1/responses",
    headers: asker,
    body: '{"model":"m","input":123}',
    status: 400,
    error: { code: "invalid_type", param: "input" },
  },
  {
    name: "a field out of its range",
    headers: asker,
    body: hello.replace("{", '{"temperature":-1,'),
    status: 400,
    error: {
      param: "temperature",
      code: "decimal_below_min_value",
      message: "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
    },
  },
  {
    name: "a field beyond its range",
    headers: asker,
    body: hello.replace("{", '{"temperature":2.5,'),
    status: 400,
    error: {
      param: "temperature",
      code: "decimal_above_max_value",
      message: "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
    },
  },
  {
    name: "too many messages",
    headers: asker,
    box: { maxItems: 0 },
    status: 400,
    error: { code: "too_many_messages", param: "messages" },
  },
  {
    name: "too many tools",
    headers: asker,
    box: { maxTools: 0 },
    body: hello.replace("{", '{"tools":[{"type":"function","function":{"name":"f"}}],'),
    status: 400,
    error: {
      code: "too_many_tools",
      param: "tools",
      message: "'tools' brings the tools of this request to 1; at most 0 are allowed (gateway.http.limits.max_tools).",
    },
  },
  {
    name: "an unknown response",
    path: "/v1/responses",
    headers: asker,
    body: '{"model":"m","input":"hi","previous_response_id":"resp_no"}',
    status: 400,
    error: { code: "previous_response_not_found", param: "previous_response_id" },
  },
  {
    name: "an unknown model",
    path: "/v1/models/nope",
    method: "GET",
    headers: { authorization },
    status: 404,
    error: { code: "model_not_found", param: "model" },
  },
  {
    name: "more turns than allowed",
    headers: asker,
    box: { limits: { maxConcurrentTurns: 0 } },
    status: 503,
    error: { type: "api_error", code: "overloaded" },
    answerHeaders: { "retry-after": "1" },
  },
];

for (const [code, status] of [
  ["adapter_rate_limit", 429],
  ["overloaded", 503],
] as const) {
  test(`a ${status} has Retry-After: 1 by default, or the time that its cause gives`, async (context) => {
    const waits = [undefined, 30];
    const box = createBox(context, async function* () {
      yield [];
      throw new GatewayError(code, "Not now.", { retryAfterSeconds: waits.shift() });
    });
    const address = await box.listen();
    const ask = () => fetch(`${address}/v1/chat/completions`, { method: "POST", headers: asker, body: hello });
    assert.equal((await ask()).headers.get("retry-after"), "1");
    const answer = await ask();
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [status, "30"]);
  });
}

for (const row of cases) {
  test(`${row.name} is answered with ${row.status}, in the common error format`, async (context) => {
    const box = createBox(context, [say("hi")], row.box);
    const address = await box.listen();
    const method = row.method ?? "POST";
    const body = method === "GET" || row.body === "" ? {} : { body: row.body ?? hello };
    const response = await fetch(address + (row.path ?? "/v1/chat/completions"), {
      method,
      headers: row.headers ?? {},
      ...body,
    });
    const answer = (await response.json()) as { error: Record<string, unknown> };
    assert.equal(response.status, row.status, JSON.stringify(answer));
    assert.deepEqual(Object.keys(answer), ["error"]);
    assert.deepEqual(Object.keys(answer.error), ["message", "type", "param", "code"]);
    assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
    assert.match(response.headers.get("x-request-id") ?? "", /^req_[0-9a-f]{48}$/);
    assert.equal(response.headers.get("cache-control"), "no-store");
    for (const [key, expected] of Object.entries(row.error)) {
      if (expected instanceof RegExp) assert.match(String(answer.error[key]), expected);
      else assert.equal(answer.error[key], expected);
    }
    for (const [name, expected] of Object.entries(row.answerHeaders ?? {}))
      assert.equal(response.headers.get(name), expected);
  });
}

/** Sends bytes over a bare socket, and returns all that comes back until it closes. */
async function exchange(context: TestContext, address: string, bytes: string | Buffer, end = false): Promise<string> {
  const { port } = new URL(address);
  const socket = connect(Number(port), "127.0.0.1");
  context.after(() => socket.destroy());
  let received = "";
  socket.on("data", (chunk) => (received += chunk));
  socket.write(bytes);
  if (end) socket.end();
  await once(socket, "close");
  return received;
}

test("a wrong token is refused before the body is read", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const head =
    "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\nauthorization: Bearer no\r\n\r\n";
  const answer = await exchange(context, address, head);
  assert.match(answer, /^HTTP\/1\.1 401 /);
  assert.match(answer, /"code":"invalid_api_key"/);
});

test("Expect: 100-continue is answered with 100 only if the request is not refused by its head", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const head = (path: string, length: number, rest = "") =>
    `POST ${path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-type: application/json\r\n` +
    `content-length: ${length}\r\nconnection: close\r\n${rest}\r\n`;
  const chat = "/v1/chat/completions";
  const signed = `authorization: ${authorization}\r\n`;
  for (const [asked, status] of [
    [head(chat, 50_000_000), 401],
    [head(chat, 50_000_000, signed), 413],
    [head("/v1/nope", 10, signed), 404],
    [head(chat, 10, `${signed}content-encoding: gzip\r\n`), 415],
  ] as const) {
    assert.match(await exchange(context, address, asked), new RegExp(`^HTTP/1\\.1 ${status} `));
  }
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  socket.write(head(chat, hello.length, signed));
  const [asked] = (await once(socket, "data")) as [Buffer];
  assert.equal(String(asked), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.write(hello);
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.match(String(answer), /^HTTP\/1\.1 200 /);
});

test("a body may come in many chunks, unencoded; names of transfer and content codings are case-insensitive", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: ${authorization}\r\nconnection: close\r\n`;
  const codings = "transfer-encoding: Chunked\r\ncontent-encoding: Identity\r\n\r\n";
  const body = `${[...hello].map((letter) => `1\r\n${letter}\r\n`).join("")}0\r\n\r\n`;
  assert.match(await exchange(context, address, head + codings + body), /^HTTP\/1\.1 200 /);
  const encoded = "transfer-encoding: gzip, chunked\r\n\r\n";
  const refused = await exchange(context, address, head + encoded + body);
  assert.match(refused, /^HTTP\/1\.1 415 [^]*The encoding 'gzip, chunked' is not supported/);
});

test("the type of a body may be in capitals, and that of a request without one does not count", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const ask = async (path: string, method: string, type: string, body?: string) => {
    const headers = { authorization, "content-type": type };
    return (await fetch(`${address}${path}`, { method, headers, ...(body !== undefined && { body }) })).status;
  };
  assert.equal(await ask("/v1/chat/completions", "POST", "Application/JSON ; Charset=UTF-8", hello), 200);
  for (const type of ["x-application/json", 'application/json; Charset = "latin1"']) {
    assert.equal(await ask("/v1/chat/completions", "POST", type, hello), 415);
  }
  for (const method of ["GET", "HEAD"]) assert.equal(await ask("/v1/models", method, "text/plain"), 200);
});

test("a POST without a length and without chunking is answered with 411", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: ${authorization}\r\nconnection: close\r\n\r\n`;
  const answer = await exchange(context, address, head);
  assert.match(answer, /^HTTP\/1\.1 411 /);
  assert.match(answer, /"code":"length_required"/);
});

test("a POST to a route that needs no body may come without a length", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  for (const [path, status] of [
    ["/v1/conversations", 200],
    ["/v1/responses/resp_1/cancel", 404],
  ] as const) {
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nconnection: close\r\n\r\n`;
    assert.match(await exchange(context, address, head), new RegExp(`^HTTP/1\\.1 ${status} `));
  }
});

test("input that is not HTTP is answered in the common error format", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const answer = await exchange(context, address, "NONSENSE\r\n\r\n");
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.match(answer, /x-request-id: req_[0-9a-f]{48}\r\n/);
  assert.match(
    answer,
    /\{"error":\{"message":"This is not a well-formed HTTP request\.","type":"invalid_request_error","param":null,"code":"malformed_http"\}\}$/,
  );
});

test("input that is not HTTP ends an answer that has begun, but is not answered inside it", async (context) => {
  async function* endless(_turn: unknown, signal: AbortSignal) {
    yield say("hi");
    await once(signal, "abort");
  }
  const address = await createBox(context, endless).listen();
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  context.after(() => socket.destroy());
  const body = JSON.stringify({ ...JSON.parse(hello), stream: true });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: ${authorization}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  socket.once("data", () => socket.write("NONSENSE\r\n\r\n"));
  const answer = await text(socket);
  assert.match(answer, /^HTTP\/1\.1 200 [^]*"content":"hi"/);
  assert.doesNotMatch(answer, /malformed_http/);
});

test("a CONNECT request is told that the gateway is not a proxy", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const answer = await exchange(
    context,
    address,
    "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
  );
  assert.match(
    answer,
    /^HTTP\/1\.1 400 [^]*x-request-id: req_[^]*"message":"The gateway is not a proxy, [^]*"code":"malformed_http"/,
  );
});

test("headers that are too large are answered with 431", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const answer = await exchange(
    context,
    address,
    `GET /healthz HTTP/1.1\r\nhost: x\r\nx-long: ${"a".repeat(20_000)}\r\n\r\n`,
  );
  assert.match(answer, /^HTTP\/1\.1 431 /);
  assert.match(answer, /"code":"headers_too_large"/);
});

test("headers that do not arrive are answered with 408", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { headersTimeoutMs: 50 } }).listen();
  const answer = await exchange(context, address, "GET /healthz HTTP/1.1\r\nhost: x\r\n");
  assert.match(answer, /^HTTP\/1\.1 408 /);
  assert.match(answer, /"code":"request_timeout"/);
});

test("a body that stops arriving is answered with 408", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { bodyIdleTimeoutMs: 50 } }).listen();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\nauthorization: ${authorization}\r\n\r\n{"model"`;
  const answer = await exchange(context, address, head);
  assert.match(answer, /^HTTP\/1\.1 408 /);
  assert.match(answer, /body_idle_timeout_ms/);
});

test("a client that sends its whole body before it reads still gets the refusal", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const length = 30 * 1024 * 1024;
  for (const [path, signed, status] of [
    ["/v1/chat/completions", `authorization: ${authorization}\r\n`, 413],
    ["/v1/chat/completions", "", 401],
    ["/v1/nope", `authorization: ${authorization}\r\n`, 404],
  ] as const) {
    const socket = connect(Number(new URL(address).port), "127.0.0.1");
    context.after(() => socket.destroy());
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${signed}content-length: ${length}\r\n\r\n`,
    );
    const piece = Buffer.alloc(1024 * 1024, " ");
    for (let sent = 0; sent < length; sent += piece.length) {
      await new Promise<void>((resolve, reject) => {
        socket.write(piece, (error) => (error ? reject(error) : resolve()));
      });
    }
    assert.match(await text(socket), new RegExp(`^HTTP/1\\.1 ${status} [^]*"code":`));
  }
});

test("a body may be exactly as large as allowed, with or without a declared length", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { maxBodyBytes: hello.length } }).listen();
  for (const body of [hello, new Blob([hello]).stream()]) {
    const init = { method: "POST", headers: asker, body, duplex: "half" } as const;
    const response = await fetch(`${address}/v1/chat/completions`, init);
    assert.equal(response.status, 200, await response.text());
  }
});

test("a chunked body that becomes too large is answered with 413 before its end", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { maxBodyBytes: 64 } }).listen();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nauthorization: ${authorization}\r\n\r\n`;
  const answer = await exchange(context, address, `${head}80\r\n${" ".repeat(128)}\r\n`);
  assert.match(answer, /^HTTP\/1\.1 413 /);
  assert.match(answer, /"code":"body_too_large"/);
});

test("bytes that are not UTF-8 are refused", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const body = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]);
  const response = await fetch(`${address}/v1/chat/completions`, { method: "POST", headers: asker, body });
  assert.equal(response.status, 400);
  assert.equal(
    ((await response.json()) as { error: { message: string } }).error.message,
    "The request body is not valid UTF-8.",
  );
});

test("an internal error is hidden from the caller and logged", async (context) => {
  const box = createBox(context, () => {
    throw new Error("the secret cause");
  });
  const address = await box.listen();
  const response = await fetch(`${address}/v1/chat/completions`, { method: "POST", headers: asker, body: hello });
  const text = await response.text();
  assert.equal(response.status, 500);
  assert.match(text, /"type":"server_error","param":null,"code":"internal_error"/);
  assert.doesNotMatch(text, /secret/);
  assert.match(
    JSON.stringify(box.logged.map((line) => [line.level, String((line.fields as { err?: Error }).err)])),
    /the secret cause/,
  );
});

test("a refused body leaves the connection usable for the next request", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const request = (body: string, rest = "") =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nauthorization: ${authorization}\r\n${rest}\r\n${body}`;
  const answer = await exchange(context, address, request("{") + request(hello, "connection: close\r\n"));
  assert.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 400", "HTTP/1.1 200"]);
});

test("JSON that is truncated after many megabytes is refused without searching all of it", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { maxBodyBytes: 16 * 1024 * 1024 } }).listen();
  const body = `{"model":"${"a".repeat(9_000_000)}`;
  const response = await fetch(`${address}/v1/chat/completions`, { method: "POST", headers: asker, body });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /not valid JSON: somewhere after the first 1048576 characters/);
});

test("a byte order mark before the body is tolerated", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: asker,
    body: `\uFEFF${hello}`,
  });
  assert.equal(response.status, 200);
});

test("an error without a body to read leaves the connection open", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const get = (path: string, rest = "") =>
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n${rest}\r\n`;
  const answer = await exchange(context, address, get("/v1/nope") + get("/v1/models", "connection: close\r\n"));
  assert.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 404", "HTTP/1.1 200"]);
});

test("an answer says how long its connection is kept, which can be changed", async (context) => {
  const box = createBox(context, []);
  const address = await box.listen();
  const told = async () => (await fetch(`${address}/healthz`)).headers.get("keep-alive");
  assert.equal(await told(), "timeout=130");
  box.change(decide({}, { keepAliveTimeoutMs: 620_000 }));
  assert.equal(await told(), "timeout=620");
});

test("a request without Host, in HTTP/1.0 too, or with an unknown Expect, gets an ordinary answer", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const bare = await exchange(context, address, "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n");
  assert.match(bare, /^HTTP\/1\.1 400 [^]*"code":"malformed_http"/);
  const old = await exchange(context, address, "GET /healthz HTTP/1.0\r\n\r\n");
  assert.match(old, /^HTTP\/1\.1 200 [^]*"status":"ok"/);
  const strange = await exchange(
    context,
    address,
    "GET /healthz HTTP/1.1\r\nhost: x\r\nexpect: bananas\r\nconnection: close\r\n\r\n",
  );
  assert.match(strange, /^HTTP\/1\.1 200 [^]*"status":"ok"/);
});

test("the log has only the beginning of a long unknown path, which anybody may send", async (context) => {
  const box = createBox(context, [say("hi")]);
  const address = await box.listen();
  await exchange(context, address, `GET /${"a".repeat(15_000)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  assert.deepEqual(
    box.logged.map(({ fields }) => "path" in fields && fields.path),
    [`/${"a".repeat(199)}`],
  );
});

test("what is refused before it is a request has its line in the log too", async (context) => {
  const box = createBox(context, [say("hi")], { limits: { headersTimeoutMs: 50 } });
  const address = await box.listen();
  const refused = [
    { sent: "NONSENSE\r\n\r\n", status: 400, code: "malformed_http" },
    { sent: "CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n\r\n", status: 400, code: "malformed_http" },
    { sent: `GET / HTTP/1.1\r\nx-long: ${"a".repeat(20_000)}\r\n\r\n`, status: 431, code: "headers_too_large" },
    { sent: "GET / HTTP/1.1\r\n", status: 408, code: "request_timeout" },
  ];
  const answers = await Promise.all(refused.map(({ sent }) => exchange(context, address, sent)));
  assert.equal(await exchange(context, address, ""), "");
  const lines = answers.map((answer, index) => ({
    requestId: /x-request-id: (.*)\r/.exec(answer)?.[1],
    status: refused[index]?.status,
    address: "127.0.0.1",
    code: refused[index]?.code,
  }));
  // In any order, and neither a line nor an answer for the connection that was never used.
  assert.deepEqual(new Set(box.logged.map(({ fields }) => fields)), new Set(lines));
});

test("a malformed URL is refused and logged like any request", async (context) => {
  const box = createBox(context, [say("hi")]);
  const address = await box.listen();
  const malformed = [
    { path: "/%zz", route: "/%zz" },
    { path: "/v1/models/%ff?x=1", route: "/v1/models/*" },
    { path: "/openai/deployments/%ff/chat/completions", route: "/v1/chat/completions" },
  ];
  for (const { path } of malformed) {
    const answer = await exchange(context, address, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    assert.match(
      answer,
      /^HTTP\/1\.1 400 [^]*x-request-id: req_[^]*cache-control: no-store[^]*"code":"malformed_http"/,
    );
  }
  assert.deepEqual(
    box.logged.map(({ fields }) => ("code" in fields && "path" in fields ? [fields.code, fields.path] : fields)),
    malformed.map(({ route }) => ["malformed_http", route]),
  );
});

test("a message with too many calls is refused with their number", async (context) => {
  const address = await createBox(context, [say("hi")], { limits: { maxBodyBytes: 64 * 1024 * 1024 } }).listen();
  const calls = Array.from({ length: 160_000 }, (_, id) => ({ id: `c${id}`, function: { name: "f" } }));
  const body = JSON.stringify({ model: "m", messages: [{ role: "assistant", content: null, tool_calls: calls }] });
  const response = await fetch(`${address}/v1/chat/completions`, { method: "POST", headers: asker, body });
  assert.match(await response.text(), /comes to 160000 messages, calls and outputs; at most 4096 are allowed/);
  assert.equal(response.status, 400);
});

test("an error does not repeat megabytes of the caller's input", async (context) => {
  const address = await createBox(context, []).listen();
  const long = "x".repeat(1_000_000);
  for (const [path, body] of [
    ["chat/completions", { model: "m", messages: [{ role: long, content: "hi" }] }],
    ["conversations", { metadata: { [long]: 1 } }],
    ["responses", { model: "m", input: "hi", previous_response_id: long }],
  ] as const) {
    const answer = await fetch(`${address}/v1/${path}`, { method: "POST", headers: asker, body: JSON.stringify(body) });
    assert.equal(answer.status, 400);
    assert.ok((await answer.text()).length < 10_000);
  }
});

test("a response of any route is cut off when its client does not read it", async (context) => {
  const box = createBox(context, [], { limits: { stalledClientTimeoutMs: 100, maxBodyBytes: 20_000_000 } });
  const address = await box.listen();
  const items = [{ type: "message", role: "user", content: "x".repeat(16_000_000) }];
  const wanted = { method: "POST", headers: asker, body: JSON.stringify({ items }) };
  const { id } = (await (await fetch(`${address}/v1/conversations`, wanted)).json()) as { id: string };
  const socket = connect(Number(new URL(address).port), "127.0.0.1").pause();
  context.after(() => socket.destroy());
  socket.write(`GET /v1/conversations/${id}/items HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`);
  const isCut = ({ fields }: (typeof box.logged)[number]) => "status" in fields && fields.status === 499;
  while (!box.logged.some(isCut)) await new Promise(setImmediate);
});
