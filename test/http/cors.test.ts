import assert from "node:assert/strict";
import { test } from "node:test";
import { authorization, createBox, say } from "../scripted.ts";

const origin = "https://chat.example";
const hello = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] });

test("a page of an allowed origin may send requests after a preflight, and read the gateway's headers", async (context) => {
  const address = await createBox(context, [say("hi")], { settings: { corsOrigins: [origin] } }).listen();
  const preflight = await fetch(`${address}/v1/chat/completions`, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-max-age"), "600");
  assert.equal(preflight.headers.get("vary"), "Origin, Access-Control-Request-Headers");
  assert.equal(preflight.headers.get("access-control-allow-origin"), origin);
  assert.match(preflight.headers.get("access-control-allow-methods") ?? "", /POST/);
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /authorization/);
  const answer = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { origin, authorization, "content-type": "application/json" },
    body: hello,
  });
  assert.equal(answer.headers.get("access-control-allow-origin"), origin);
  const exposed = (answer.headers.get("access-control-expose-headers") ?? "").split(", ");
  for (const name of ["x-portico-session", "x-portico-endpoints", "x-ratelimit-reset-requests"])
    assert.ok(exposed.includes(name), name);
  assert.match(await answer.text(), /\[DONE\]/);
});

test("errors are readable for an allowed origin too, so that a page can recognise a wrong token", async (context) => {
  const address = await createBox(context, [say("hi")], { settings: { corsOrigins: [origin] } }).listen();
  const answer = await fetch(`${address}/v1/models`, { headers: { origin, authorization: "Bearer no" } });
  assert.equal(answer.status, 401);
  assert.equal(answer.headers.get("access-control-allow-origin"), origin);
});

test("another origin is not allowed, and without configured origins there are no CORS headers", async (context) => {
  const some = await createBox(context, [say("hi")], { settings: { corsOrigins: [origin] } }).listen();
  const other = await fetch(`${some}/v1/models`, { headers: { origin: "https://evil.example", authorization } });
  assert.equal(other.headers.get("access-control-allow-origin"), null);
  assert.equal(other.headers.get("vary"), "Origin");
  const preflight = await fetch(`${some}/v1/models`, {
    method: "OPTIONS",
    headers: { origin: "https://evil.example" },
  });
  assert.equal(preflight.headers.get("access-control-allow-origin"), null);
  const none = await createBox(context, [say("hi")]).listen();
  const answer = await fetch(`${none}/v1/models`, { headers: { origin, authorization } });
  const names = [...answer.headers.keys()];
  assert.deepEqual(
    names.filter((name) => name === "vary" || name.startsWith("access-control-")),
    [],
  );
  const refused = await fetch(`${none}/v1/models`, { method: "OPTIONS", headers: { origin, authorization } });
  assert.equal(refused.status, 405);
});

test("the operator's routes are not available to web pages, whatever their paths", async (context) => {
  const address = await createBox(context, [say("hi")], { settings: { corsOrigins: [origin] } }).listen();
  for (const method of ["GET", "OPTIONS", "PROPFIND"]) {
    const answer = await fetch(`${address}/metrics`, { method, headers: { origin, authorization } });
    assert.notEqual(answer.status, 204);
    const names = [...answer.headers.keys()];
    assert.deepEqual(
      names.filter((name) => name.startsWith("access-control-")),
      [],
    );
  }
});
