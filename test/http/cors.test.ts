/** Which web pages may call the gateway: those of the configured origins, exactly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { authorization, openGateway, operatorToken, shareGateway, toSettings } from "../harness/house.ts";
import { chat, helloStreamed } from "./raw.ts";

const origin = "https://chat.example";
const open = shareGateway({ http: { cors: { origins: [origin] } } });
const preflight = {
  origin,
  "access-control-request-method": "POST",
  "access-control-request-headers": "authorization,content-type,x-session-id",
};

function corsNames(headers: Headers): string[] {
  return [...headers.keys()].filter((name) => name === "vary" || name.startsWith("access-control-"));
}

test("a page of an allowed origin may send requests after a preflight, and read the gateway's headers", async () => {
  const { address } = await open();
  const allowed = await fetch(address + chat, { method: "OPTIONS", headers: preflight });
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get("access-control-allow-origin"), origin);
  assert.match(allowed.headers.get("access-control-allow-methods") ?? "", /POST/);
  const named = allowed.headers.get("access-control-allow-headers")?.toLowerCase() ?? "";
  for (const name of ["authorization", "content-type", "x-session-id"]) assert.ok(named.includes(name), name);
  const headers = { origin, authorization, "content-type": "application/json" };
  const answer = await fetch(address + chat, { method: "POST", headers, body: helloStreamed });
  assert.equal(answer.headers.get("access-control-allow-origin"), origin);
  assert.match(answer.headers.get("vary") ?? "", /Origin/i);
  const exposed = (answer.headers.get("access-control-expose-headers") ?? "").toLowerCase();
  for (const name of ["x-request-id", "x-portico-session", "x-portico-history", "retry-after"])
    assert.ok(exposed.includes(name), name);
  assert.match(await answer.text(), /\[DONE\]/);
});

test("an allowed page can read a refusal, so that it can recognise a wrong token", async () => {
  const { address } = await open();
  const answer = await fetch(`${address}/v1/models`, { headers: { origin, authorization: "Bearer sk-wrong" } });
  assert.deepEqual([answer.status, answer.headers.get("access-control-allow-origin")], [401, origin]);
});

for (const other of ["https://evil.example", "https://chat.example.evil.example", "http://chat.example", "null"]) {
  test(`the origin ${other} is not allowed`, async () => {
    const { address } = await open();
    const answer = await fetch(`${address}/v1/models`, { headers: { origin: other, authorization } });
    assert.equal(answer.headers.get("access-control-allow-origin"), null);
    const asked = await fetch(address + chat, { method: "OPTIONS", headers: { ...preflight, origin: other } });
    assert.equal(asked.headers.get("access-control-allow-origin"), null);
  });
}

test("the operator's routes are not for web pages", async () => {
  const { address } = await open();
  for (const method of ["GET", "OPTIONS"]) {
    const headers = { ...preflight, authorization: `Bearer ${operatorToken}` };
    const answer = await fetch(`${address}/metrics`, { method, headers });
    assert.notEqual(answer.status, 204);
    assert.equal(answer.headers.get("access-control-allow-origin"), null);
  }
});

test("without configured origins there are no CORS headers, until a reload names some", async (context) => {
  const portico = await openGateway(context);
  const { address } = portico;
  const ask = async () => {
    const { headers } = await fetch(`${address}/v1/models`, { headers: { origin, authorization } });
    const { status } = await fetch(`${address}/v1/models`, {
      method: "OPTIONS",
      headers: { ...preflight, authorization },
    });
    return [corsNames(headers).length > 0, status];
  };
  assert.deepEqual(await ask(), [false, 405]);
  await portico.reload(toSettings({ http: { cors: { origins: [origin] } } }));
  assert.deepEqual(await ask(), [true, 204]);
});
