/** Where a request goes by its path, method and type, and how it is told that there is nothing. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { call, endpoints, paths, readAll, tell } from "../harness/client.ts";
import { authorization, openGateway, shareGateway, token } from "../harness/house.ts";
import { chat, hello } from "./raw.ts";

const open = shareGateway();

const unknown = ["POST", 404, "unknown_url"] as const;
const wrongMethod = [405, "method_not_allowed"] as const;

for (const [name, path, method, status, code, says, allow] of [
  ["an unknown path", "/v1/nope?secret=1", ...unknown, /POST \/v1\/nope\b(?!\?)/],
  ["a base URL without /v1", "/chat/completions", ...unknown, /base URL ends with \/v1\b.*\/v1\/chat\/completions/],
  ["a base URL with /v1 twice", "/v1/v1/responses", ...unknown],
  ["an endpoint's URL as the base URL", `${chat}/chat/completions`, ...unknown],
  ["an extra slash at the end", `${chat}/`, ...unknown],
  ["an extra slash in front", `/${chat}`, ...unknown],
  ["a path in other capitals", "/V1/Chat/Completions", ...unknown],
  ["an id that nobody has", "/v1/responses/resp_nope", "GET", 404, "not_found"],
  ["a very long id", `/v1/responses/${"x".repeat(10_000)}`, "GET", 404, "not_found"],
  ["a wrong method", chat, "DELETE", ...wrongMethod, /DELETE.*POST/, ["POST"]],
  ["a wrong method on a path with an id", "/v1/responses/resp_1", "PUT", ...wrongMethod, /PUT/, ["DELETE", "GET"]],
  ["a wrong method where an id could stand", "/v1/responses/compact", "GET", ...wrongMethod, /POST/, ["POST"]],
  ["an uncommon method", "/v1/models/vendor/model", "PROPFIND", ...wrongMethod, /GET/, ["GET"]],
  ["a wrong method on a route without a token", "/healthz", "POST", ...wrongMethod, /GET/, ["GET"]],
  ["a URL that cannot be decoded", "/v1/models/%ff", "GET", 400, "malformed_http"],
] as const) {
  test(`${name} is answered with ${status}, in the one shape of errors`, async () => {
    const { address } = await open();
    const { status: found, headers, body } = await call(address, method, path, method === "POST" ? hello : undefined);
    assert.equal(found, status);
    assert.deepEqual(Object.keys(body), ["error"]);
    assert.deepEqual(Object.keys(body.error).toSorted(), ["code", "message", "param", "type"]);
    assert.deepEqual([body.error.type, body.error.code], ["invalid_request_error", code]);
    assert.match(body.error.message, says ?? /./);
    assert.ok(headers.get("x-request-id"));
    const allowed = headers
      .get("allow")
      ?.split(/, */)
      .filter((each) => each !== "HEAD");
    assert.deepEqual(allowed?.toSorted(), allow);
  });
}

for (const [what, headers, says] of [
  ["of a type that is not JSON", { "content-type": "text/plain" }, /JSON/],
  ["of a type that only contains JSON's", { "content-type": "x-application/json" }, /JSON/],
  ["in a charset that is not UTF-8", { "content-type": 'application/json; Charset = "latin1"' }, /latin1.*UTF-8/],
  ["that is compressed", { "content-encoding": "gzip" }, /gzip/],
] as const) {
  test(`a body ${what} is a 415`, async () => {
    const { address } = await open();
    const { status, body } = await call(address, "POST", chat, hello, { headers });
    assert.deepEqual([status, body.error.code], [415, "unsupported_media_type"]);
    assert.match(body.error.message, says);
  });
}

for (const on of endpoints) {
  test(`${on}: while it is off a valid token is told which key enables it, and the other endpoint answers`, async (context) => {
    const other = on === "chat" ? "responses" : "chat";
    const { address } = await openGateway(context, { http: { endpoints: { [`compat_${other}`]: true } } });
    const off = await tell(address, { on, say: "hi" });
    assert.deepEqual([off.status, off.error?.["code"]], [404, "endpoint_disabled"]);
    assert.match(String(off.error?.["message"]), new RegExp(`gateway\\.http\\.endpoints\\.compat_${on}`));
    assert.equal((await tell(address, { on, say: "hi", token: "sk-wrong" })).status, 401);
    assert.equal((await tell(address, { on: other, say: "hi" })).status, 200);
    assert.equal((await call(address, "GET", "/v1/models")).status, 200);
    if (on === "chat") return;
    for (const [method, path] of [
      ["GET", "/v1/responses/resp_1"],
      ["POST", "/v1/responses/compact"],
      ["POST", "/v1/responses/input_tokens"],
      ["GET", "/v1/conversations/conv_1"],
    ] as const) {
      const { status, body } = await call(address, method, path, method === "POST" ? {} : undefined);
      assert.deepEqual([status, body.error.code], [404, "endpoint_disabled"], path);
    }
  });
}

test("HEAD is answered like GET, without a body", async () => {
  const { address } = await open();
  for (const path of ["/v1/models", "/healthz"]) {
    const [got, headed] = [
      await call(address, "GET", path),
      await fetch(address + path, { method: "HEAD", headers: { authorization } }),
    ];
    assert.equal(headed.status, 200, path);
    assert.equal(headed.headers.get("content-length"), got.headers.get("content-length"));
    assert.equal(await headed.text(), "");
  }
});

for (const type of ["Application/JSON", "application/json ; Charset=UTF-8", 'application/json;charset="utf-8"']) {
  test(`the type ${type} is JSON`, async () => {
    const { address } = await open();
    const response = await fetch(address + chat, {
      method: "POST",
      headers: { authorization, "content-type": type },
      body: hello,
    });
    assert.equal(response.status, 200, await response.text());
  });
}

test("the type of a request without a body does not count", async () => {
  const { address } = await open();
  for (const method of ["GET", "HEAD"]) {
    const headers = { authorization, "content-type": "text/plain" };
    assert.equal((await fetch(`${address}/v1/models`, { method, headers })).status, 200);
  }
});

const messages = [{ role: "user", content: "hi" }];
const deployed = "/openai/deployments/fast/chat/completions";
for (const [what, path, body, status, model] of [
  ["a deployment names the model", `${deployed}?api-version=1`, { messages }, 200, "fast"],
  ["a deployment wins over the body's model", deployed, { messages, model: "other" }, 200, "fast"],
  ["a deployment's name is decoded", deployed.replace("fast", "a%2Fb%20c"), { messages }, 200, "a/b c"],
  ["the newer path of chat", "/openai/v1/chat/completions", { messages, model: "m" }, 200, "m"],
  ["the older path of responses", "/openai/responses?api-version=preview", { input: "hi", model: "m" }, 200, "m"],
  ["the newer path of responses", "/openai/v1/responses", { input: "hi", model: "m" }, 200, "m"],
  ["without a deployment a model is required", "/openai/chat/completions", { messages }, 400, undefined],
  ["a deployment has no responses", "/openai/deployments/fast/responses", { input: "hi" }, 404, undefined],
  ["another path is unknown", "/openai/deployments/fast/embeddings", { input: "hi" }, 404, undefined],
] as const) {
  test(`azure-style paths: ${what}`, async () => {
    const { address } = await open();
    const headers = { "api-key": token, "content-type": "application/json" };
    const response = await fetch(address + path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as { readonly model?: string };
    assert.deepEqual([response.status, answer.model], [status, model], JSON.stringify(answer));
  });
}

/** Sends a request with exactly this target. */
async function sendTo(address: string, target: string, method = "POST"): Promise<{ status: number; text: string }> {
  const headers = { authorization, "content-type": "application/json" };
  const outgoing = send(address, { path: target, method, headers }).end(method === "POST" ? hello : undefined);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: Number(incoming.statusCode), text: await readAll(incoming) };
}

for (const target of [
  `http://x${chat}`,
  `HTTPS://me:pass@x:1${chat}?a=http://b/c`,
  `${chat}#fragment`,
  "/v1/%63hat/completions",
  `${paths.chat}?api-version=1`,
]) {
  test(`the target ${target} is routed by its path`, async () => {
    const { address } = await open();
    const { status, text } = await sendTo(address, target);
    assert.equal(status, 200, text);
  });
}

test("an unknown absolute target is told by its path, without its user and password", async () => {
  const { address, logged } = await open();
  const { status, text } = await sendTo(address, "http://me:pass@x/v1/nowhere?secret=1", "GET");
  assert.equal(status, 404);
  assert.match(text, /GET \/v1\/nowhere\b/);
  for (const told of [text, JSON.stringify(logged.at(-1))]) assert.doesNotMatch(told, /me:pass|secret/);
});
