/** Azure-style paths, and targets with a host, reach the same routes, with the same checks. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as sendRequest } from "node:http";
import { text as readText } from "node:stream/consumers";
import { test } from "node:test";
import { WebSocket } from "ws";
import { createFindRoute } from "../../src/http/router.ts";
import { type BoxOptions, createBox, say, toToken, token } from "../scripted.ts";

const deployed = "/openai/deployments/fast/chat/completions?api-version=2024-10-21";
const headers = { "api-key": token, "content-type": "application/json" };
const hello = { messages: [{ role: "user", content: "hi" }] };

interface Case {
  readonly name: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly box?: BoxOptions;
  readonly status: number;
  /** What the answer contains. */
  readonly says: RegExp;
}

const cases: readonly Case[] = [
  { name: "a deployment names the model of a body without one", path: deployed, status: 200, says: /"model":"fast"/ },
  {
    name: "a deployment overrides the model of the body",
    path: deployed,
    body: { ...hello, model: "other" },
    status: 200,
    says: /"model":"fast"/,
  },
  {
    name: "a deployment's name is decoded",
    path: "/openai/deployments/team%2Ffast%20one/chat/completions",
    status: 200,
    says: /"model":"team\/fast one"/,
  },
  {
    name: "a name that cannot be decoded is a malformed URL",
    path: "/openai/deployments/%ff/chat/completions",
    status: 400,
    says: /"code":"malformed_http"/,
  },
  {
    name: "without a deployment the body must name the model",
    path: "/openai/chat/completions?api-version=2024-10-21",
    status: 400,
    says: /Missing required parameter: 'model'/,
  },
  {
    name: "a body that is not an object is refused",
    path: deployed,
    body: [],
    status: 400,
    says: /must be a JSON object/,
  },
  {
    name: "the newer path has no deployment",
    path: "/openai/v1/chat/completions",
    body: { ...hello, model: "m" },
    status: 200,
    says: /"model":"m"/,
  },
  {
    name: "responses are created at the older path",
    path: "/openai/responses?api-version=preview",
    body: { model: "m", input: "hi" },
    status: 200,
    says: /"object":"response"/,
  },
  {
    name: "responses are created at the newer path",
    path: "/openai/v1/responses",
    body: { model: "m", input: "hi" },
    status: 200,
    says: /"object":"response"/,
  },
  { name: "the models are listed", path: "/openai/v1/models", method: "GET", status: 200, says: /"id":"scripted"/ },
  { name: "a token is needed", path: deployed, headers: {}, status: 401, says: /"code":"missing_api_key"/ },
  {
    name: "a token without access to the endpoint is refused",
    path: deployed,
    box: { settings: { tokens: [toToken(token, { opens: new Set(["responses"]) })] } },
    status: 403,
    says: /"code":"endpoint_not_allowed"/,
  },
  {
    name: "a disabled endpoint is refused",
    path: deployed,
    box: { settings: { endpoints: { chat: false, responses: true } } },
    status: 404,
    says: /"code":"endpoint_disabled"/,
  },
  {
    name: "the limits apply",
    path: deployed,
    box: { limits: { maxBodyBytes: 8 } },
    status: 413,
    says: /"code":"body_too_large"/,
  },
  { name: "another method is refused", path: deployed, method: "GET", status: 405, says: /; use POST\./ },
  {
    name: "an unknown path is reported as the caller wrote it",
    path: "/openai/deployments/fast/embeddings?api-version=1",
    status: 404,
    says: /Unknown request URL: POST \/openai\/deployments\/fast\/embeddings\. Send turns to/,
  },
  {
    name: "a deployment has no responses",
    path: "/openai/deployments/fast/responses",
    status: 404,
    says: /"code":"unknown_url"/,
  },
  {
    name: "no other route can be reached this way",
    path: "/openai/metrics",
    method: "GET",
    status: 404,
    says: /"code":"unknown_url"/,
  },
  {
    name: "an endpoint that ends with /v1 is corrected in the error",
    path: `/v1${deployed}`,
    status: 404,
    says: /Did you mean \/openai\/deployments\/fast\/chat\/completions\? An Azure-style client's endpoint must have no path\./,
  },
  {
    name: "a base URL without /openai is corrected in the error",
    path: "/deployments/fast/chat/completions",
    status: 404,
    says: /Did you mean \/openai\/deployments\/fast\/chat\/completions\?/,
  },
];

for (const row of cases) {
  test(`azure-style paths: ${row.name}`, async (context) => {
    const address = await createBox(context, [say("hello")], row.box).listen();
    const method = row.method ?? "POST";
    const response = await fetch(address + row.path, {
      method,
      headers: row.headers === undefined ? headers : { ...row.headers, "content-type": "application/json" },
      ...(method === "POST" && { body: JSON.stringify(row.body ?? hello) }),
    });
    assert.match(await response.text(), row.says);
    assert.equal(response.status, row.status);
    if (row.status === 405) assert.equal(response.headers.get("allow"), "POST");
  });
}

test("the log and the metrics have one route, whichever path a request used", async (context) => {
  const operator = "sk-operator-0123456789";
  const tokens = [toToken(token), toToken(operator, { opens: new Set(["operator"]) })];
  const box = createBox(context, [say("hello")], { settings: { tokens } });
  const address = await box.listen();
  const body = JSON.stringify({ ...hello, model: "m" });
  for (const path of ["/v1/chat/completions", "/openai/v1/chat/completions", deployed]) {
    await (await fetch(address + path, { method: "POST", headers, body })).text();
  }
  await (await fetch(`${address}/openai/nope?secret=1`, { headers })).text();
  const metrics = await fetch(`${address}/metrics`, { headers: { "api-key": operator } });
  assert.match(await metrics.text(), /^portico_requests_total\{path="\/v1\/chat\/completions",status="200"\} 3$/m);
  const paths = box.logged.map(({ fields }) => "path" in fields && fields.path);
  assert.deepEqual(paths.slice(0, 4), [...Array<string>(3).fill("/v1/chat/completions"), "/openai/nope"]);
});

/** Sends a request with exactly this target. */
async function sendTo(address: string, target: string, method: string, body = "") {
  const outgoing = sendRequest(address, { path: target, method, headers }).end(body);
  const [incoming] = await once(outgoing, "response");
  return { status: Number(incoming.statusCode), text: await readText(incoming) };
}

test("a target with a host or a fragment is routed and logged by its path", async (context) => {
  const box = createBox(context, [say("hello")]);
  const address = await box.listen();
  const body = JSON.stringify({ ...hello, model: "m" });
  for (const target of ["http://x/v1/chat/completions", "HTTPS://me:pass@x:1/v1/chat/completions?a=http://b/c"]) {
    assert.equal((await sendTo(address, target, "POST", body)).status, 200, target);
  }
  for (const target of [`http://x${deployed}`, deployed.replace("?", "#")]) {
    assert.match((await sendTo(address, target, "POST", body)).text, /"model":"fast"/, target);
  }
  assert.match((await sendTo(address, "http://x/v1/responses", "PUT")).text, /not allowed on \/v1\/responses/);
  assert.match((await sendTo(address, "http://me:pass@x/v1/nope", "GET")).text, /URL: GET \/v1\/nope\./);
  assert.match((await sendTo(address, "http://x?secret=1", "GET")).text, /URL: GET \/\./);
  const paths = box.logged.map(({ fields }) => "path" in fields && fields.path);
  const chat = "/v1/chat/completions";
  assert.deepEqual(paths, [chat, chat, chat, chat, "/v1/responses", "/v1/nope", "/"]);
});

test("a percent-encoded letter of a path is decoded", async (context) => {
  const address = await createBox(context, [say("hello")]).listen();
  const body = JSON.stringify({ ...hello, model: "m" });
  assert.equal((await sendTo(address, "/v1/%63hat/completions", "POST", body)).status, 200);
  assert.match((await sendTo(address, "/v1/%63hat/completions", "PUT")).text, /not allowed on \/v1\/chat\/completions/);
});

test("a parameter is what stands in its place, decoded once; it is neither empty nor longer than its segment", () => {
  const paths = ["/v1/things", "/v1/things/fixed", "/v1/things/:id", "/v1/things/:id/parts/:part", "/files/*"];
  const find = createFindRoute(paths.map((path) => ({ path, methods: {}, endpoints: [] })));
  const cases: readonly (readonly [target: string, path?: string, params?: object])[] = [
    ["/v1/things", "/v1/things", {}],
    ["/v1/%74hings/fix%65d", "/v1/things/fixed", {}],
    ["/v1/things/a%2Fb%2525", "/v1/things/:id", { id: "a/b%25" }],
    ["/v1/things/fixed/parts/%0A", "/v1/things/:id/parts/:part", { id: "fixed", part: "\n" }],
    ["/files/", "/files/*", { rest: "" }],
    ["/files/a%20b/c%2Fd/", "/files/*", { rest: "a b/c/d/" }],
    ["/v1/things/%ff", "/v1/things/:id", {}],
    ["/v1/things/"],
    ["/v1/things%2Ffixed"],
    ["/v1/things/a/parts"],
    ["/v1/things/a/parts/b/c"],
    ["/files"],
    ["/V1/things"],
    ["*"],
  ];
  for (const [target, path, params] of cases) {
    const found = find(target);
    assert.deepEqual([found?.route.path, found?.params], [path, params], target);
  }
});

test("an idempotency key that was used for one deployment conflicts with another", async (context) => {
  const box = createBox(context, [say("hello")]);
  const address = await box.listen();
  const post = async (deployment: string) => {
    const response = await fetch(`${address}/openai/deployments/${deployment}/chat/completions`, {
      method: "POST",
      headers: { ...headers, "idempotency-key": "k" },
      body: JSON.stringify(hello),
    });
    await response.text();
    return [response.status, response.headers.get("x-portico-replayed")];
  };
  assert.deepEqual(await post("fast"), [200, null]);
  assert.deepEqual(await post("fast"), [200, "true"]);
  assert.deepEqual(await post("slow"), [409, null]);
  assert.equal(box.adapter.turns.length, 1);
});

test("WebSocket connections are accepted at the newer path too, and however the path is encoded", async (context) => {
  const address = await createBox(context, [say("hello")]).listen();
  for (const path of ["/openai/v1/responses?api-version=preview", "/v1/%72esponses"]) {
    const socket = new WebSocket(`${address.replace("http", "ws")}${path}`, { headers: { "api-key": token } });
    context.after(() => socket.terminate());
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "response.create", model: "m", input: "hi" }));
    const [first] = await once(socket, "message");
    assert.equal(JSON.parse(String(first)).type, "response.created");
  }
});
