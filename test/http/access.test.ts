/** Who is let in: how a token is presented, what a refusal looks like, and what the two unnamed tokens open. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, endpoints, paths, tell, tellWell } from "../harness/client.ts";
import { openGateway, operatorToken, shareGateway, token } from "../harness/house.ts";
import { chat, dial, exchange, head } from "./raw.ts";

/** Each test fails from an address of its own. */
const open = shareGateway({ http: { trusted_proxies: ["127.0.0.1"] } });
let callers = 0;
const from = () => ({ "x-forwarded-for": `192.0.2.${++callers}` });

for (const [way, headers] of [
  ["Authorization: Bearer", { authorization: `Bearer ${token}` }],
  ["the scheme in capitals", { authorization: `BEARER ${token}` }],
  ["the scheme in any case, with more blanks", { authorization: `bEARER   ${token}` }],
  ["X-API-Key", { "x-api-key": token }],
  ["api-key, as Azure-style clients send it", { "api-key": token }],
  ["api-key beside an empty X-API-Key", { "x-api-key": "", "api-key": token }],
  ["X-API-Key beside an Authorization of another scheme", { authorization: "Basic abc", "x-api-key": token }],
] as const) {
  test(`a token is accepted as ${way}`, async () => {
    const { address } = await open();
    assert.equal((await fetch(`${address}/v1/models`, { headers })).status, 200);
  });
}

for (const [what, headers, code] of [
  ["no token", {}, "missing_api_key"],
  ["a header without its token, as from an empty variable", { authorization: "Bearer " }, "missing_api_key"],
  ["an empty X-API-Key", { "x-api-key": "" }, "missing_api_key"],
  ["another scheme", { authorization: `Basic ${token}` }, "missing_api_key"],
  ["a token without a scheme", { authorization: token }, "missing_api_key"],
  ["more words behind the token", { authorization: `Bearer ${token} more` }, "missing_api_key"],
  ["a wrong token", { authorization: "Bearer sk-wrong" }, "invalid_api_key"],
  ["the beginning of a token", { authorization: `Bearer ${token.slice(0, -1)}` }, "invalid_api_key"],
  ["a token with something behind it", { "x-api-key": `${token}0` }, "invalid_api_key"],
  ["a token in other capitals", { "api-key": token.toUpperCase() }, "invalid_api_key"],
] as const) {
  test(`${what} is a 401 that asks for a Bearer token`, async () => {
    const { address, model } = await open();
    const asked = model.turns.length;
    const response = await fetch(address + chat, { method: "POST", headers: { ...from(), ...headers }, body: "{}" });
    const { error } = (await response.json()) as { readonly error: Readonly<Record<string, unknown>> };
    assert.equal(response.status, 401);
    assert.match(response.headers.get("www-authenticate") ?? "", /^Bearer/);
    assert.deepEqual([error["type"], error["code"], error["param"]], ["authentication_error", code, null]);
    assert.equal(model.turns.length, asked);
  });
}

test("a token in the URL is not accepted", async () => {
  const { address } = await open();
  const { status } = await fetch(`${address}/v1/models?api_key=${token}&token=${token}&key=${token}`, {
    headers: from(),
  });
  assert.equal(status, 401);
});

test("a caller without a token does not learn which paths there are", async () => {
  const { address } = await open();
  const headers = from();
  for (const [method, path] of [
    ["POST", "/v1/nope"],
    ["PROPFIND", chat],
    ["GET", `/v1/responses/${"x".repeat(5_000)}`],
    ["GET", "/metrics"],
  ] as const) {
    assert.equal((await fetch(address + path, { method, headers })).status, 401, path);
  }
});

test("a wrong token is refused before the body is read", async (context) => {
  const { address } = await open();
  const refused = head(chat, { ...from(), "content-length": 1_000_000, authorization: "Bearer sk-wrong" });
  const heard = await exchange(context, address, refused);
  assert.match(heard, /^HTTP\/1\.1 401 [^]*"code":"invalid_api_key"/);
});

test("a connection that has not shown a good token is closed after its answer", async (context) => {
  const { address } = await open();
  const line = await dial(context, address);
  line.socket.write(head("/v1/models", { ...from(), authorization: undefined }, "GET"));
  assert.match(await line.until(/\r\n\r\n/), /^HTTP\/1\.1 401 [^]*connection: close\r\n/i);
  assert.match(await line.closed, /"code":"missing_api_key"/);
});

test("a connection stays open after an answer to a good token", async (context) => {
  const { address } = await open();
  const line = await dial(context, address);
  line.socket.write(head("/v1/models", {}, "GET"));
  await line.until(/"object":"list"/);
  line.socket.write(head("/v1/models", { connection: "close" }, "GET"));
  assert.equal((await line.closed).split("HTTP/1.1 200 ").length, 3);
});

for (const [which, bearer] of [
  ["the clients' token", token],
  ["the general token", operatorToken],
] as const) {
  test(`where both tokens are set, ${which} opens both endpoints`, async () => {
    const { address } = await open();
    for (const on of endpoints) {
      const heard = await tell(address, { on, say: "hi", token: bearer, headers: from() });
      assert.equal(heard.status, 200, heard.raw);
    }
    assert.equal((await call(address, "GET", "/v1/models", undefined, { token: bearer })).status, 200);
  });
}

test("the clients' token does not open what is the operator's", async () => {
  const { address } = await open();
  for (const path of ["/metrics", "/operator/sessions"]) {
    const { status, body } = await call(address, "GET", path);
    assert.deepEqual([status, body.error.type, body.error.code], [403, "permission_error", "endpoint_not_allowed"]);
    assert.equal((await call(address, "GET", path, undefined, { token: operatorToken })).status, 200, path);
  }
});

test("a general token alone opens the endpoints too", async (context) => {
  const { address } = await openGateway(context, { http: { auth_token: undefined } });
  for (const on of endpoints) await tellWell(address, { on, say: "hi", token: operatorToken });
});

test("a clients' token alone opens the endpoints, and nothing opens the operator's routes", async (context) => {
  const { address } = await openGateway(context, { gateway: { auth: undefined } });
  for (const on of endpoints) await tellWell(address, { on, say: "hi" });
  assert.equal((await call(address, "GET", "/metrics")).status, 403);
});

test("the two unnamed tokens are one owner", async (context) => {
  const tokens = [{ name: "app", token: "sk-app-0123456789abcdef" }];
  const { address } = await openGateway(context, { http: { tokens } });
  const { id } = await tellWell(address, { on: "responses", say: "mine" });
  const statusFor = async (bearer: string) =>
    (await call(address, "GET", `${paths.responses}/${id}`, undefined, { token: bearer })).status;
  assert.deepEqual([await statusFor(token), await statusFor("sk-app-0123456789abcdef")], [200, 404]);
  assert.equal(await statusFor(operatorToken), 200);
});
