/** The operator's routes and the console's page: who may, and what is listed, shown and deleted. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { call, tellWell } from "../harness/client.ts";
import { openGateway, operatorToken, shareGateway, token } from "../harness/house.ts";

const [ann, ben] = ["sk-ann-0123456789abcdef", "sk-ben-0123456789abcdef"] as const;
const scraper = "sk-scraper-0123456789ab";
const open = shareGateway({
  http: {
    tokens: [
      { name: "ann", token: ann },
      { name: "ben", token: ben },
      { name: "scraper", token: scraper, endpoints: ["metrics"] },
    ],
    cors: { origins: ["https://chat.example"] },
  },
});

const operator = { token: operatorToken };

async function operate(method: string, path: string) {
  const { address } = await open();
  return call(address, method, `/operator/${path}`, undefined, operator);
}

const routes = [
  ["GET", "/operator/sessions"],
  ["GET", "/operator/sessions/conv_1"],
  ["DELETE", "/operator/sessions/conv_1"],
  ["DELETE", "/operator/sessions?user=ann"],
  ["GET", "/operator/export"],
  ["POST", "/operator/import"],
  ["POST", "/operator/prune"],
  ["GET", "/metrics"],
] as const;

for (const [method, path] of routes) {
  test(`${method} ${path} is the operator's alone`, async () => {
    const { address } = await open();
    for (const other of [token, ann]) {
      const { status, body } = await call(address, method, path, undefined, { token: other });
      assert.deepEqual([status, body.error.code], [403, "endpoint_not_allowed"]);
    }
    assert.equal((await call(address, method, path, undefined, { token: "sk-wrong" })).status, 401);
    const scraped = await call(address, method, path, undefined, { token: scraper });
    assert.equal(scraped.status, path === "/metrics" ? 200 : 403);
  });

  test(`${method} ${path} is not for web pages, whatever origins may call the endpoints`, async () => {
    const { address } = await open();
    const headers = { origin: "https://chat.example", "access-control-request-method": method };
    for (const asked of ["OPTIONS", method]) {
      const answer = await call(address, asked, path, undefined, { ...operator, headers });
      assert.equal(answer.headers.get("access-control-allow-origin"), null);
    }
  });
}

test("sessions are listed newest first, in pages, of all owners or of one", async () => {
  const { address } = await open();
  const say = (own: string, user: string) =>
    tellWell(address, { on: "chat", say: `I am ${user}.`, token: own, more: { user } });
  for (const user of ["first", "second", "third"]) await say(ann, user);
  await say(ben, "other");
  const { body } = await operate("GET", "sessions?owner=ann");
  assert.equal(body.object, "list");
  assert.deepEqual(
    body.data.map(({ owner, turns, beginning }: Record<string, unknown>) => [owner, turns, beginning]),
    ["third", "second", "first"].map((user) => ["ann", 1, `I am ${user}.`]),
  );
  const [newest, middle, oldest] = body.data.map(({ id }: { readonly id: string }) => id);
  for (const [query, ids, hasMore] of [
    ["limit=2", [newest, middle], true],
    [`limit=2&after=${middle}`, [oldest], false],
    ["user=second", [middle], false],
    ["hint=header:X-Session-Id%3Dsecond", [], false],
    ["user=other", [], false],
  ] as const) {
    const page = (await operate("GET", `sessions?owner=ann&${query}`)).body;
    assert.deepEqual([page.data.map(({ id }: { readonly id: string }) => id), page.hasMore], [ids, hasMore], query);
  }
  assert.equal((await operate("GET", "sessions?user=other")).body.data[0].owner, "ben");
});

for (const [method, path, status] of [
  ["GET", "sessions?limit=0", 400],
  ["GET", "sessions?limit=1001", 400],
  ["GET", "sessions?limit=ten", 400],
  ["GET", "sessions?onwer=ann", 400],
  ["GET", "sessions?owner=a&owner=b", 400],
  ["GET", "sessions?user=a&hint=user:a", 400],
  ["GET", "sessions?hint=shed", 400],
  ["GET", "sessions/conv_gone", 404],
  ["DELETE", "sessions/conv_gone", 404],
  ["DELETE", "sessions", 400],
  ["DELETE", "sessions?user=", 400],
  ["DELETE", "sessions?owner=ann", 400],
  ["DELETE", "sessions?user=a&onwer=ann", 400],
  ["GET", "export?owner=ann", 400],
  ["GET", "export?user=a&session=conv_1", 400],
  ["GET", "export?user=nobody", 404],
  ["POST", "prune?owner=ann", 400],
  ["PUT", "sessions", 405],
] as const) {
  test(`${method} /operator/${path} is refused with ${status}, and nothing is deleted`, async () => {
    const { address } = await open();
    const asked = { on: "chat", say: "hi", token: ann, more: { user: "stays" } } as const;
    await tellWell(address, asked);
    const { body, ...answer } = await operate(method, path);
    assert.equal(answer.status, status, answer.raw);
    assert.ok(typeof body.error.message === "string" && body.error.type === "invalid_request_error");
    assert.equal((await tellWell(address, asked)).headers.get("x-portico-history"), "continued");
  });
}

test("a session is shown with all of its turns, and without its hint", async () => {
  const { address } = await open();
  const more = { user: "shown" };
  const first = await tellWell(address, { on: "responses", say: "What grows here?", more });
  await tellWell(address, { on: "chat", say: "And there?", more });
  await tellWell(address, { on: "responses", say: "Or?", more: { previous_response_id: first.id } });
  const id = first.headers.get("x-portico-session");
  const { body, raw } = await operate("GET", `sessions/${id}`);
  assert.deepEqual([body.object, body.id, body.owner, body.turns.length], ["session", id, "default", 3]);
  assert.equal(body.turns[0].id, first.id);
  for (const word of ["What grows here?", "re: And there?"]) assert.ok(raw.includes(word));
  assert.ok(!("hint" in body));
});

test("what was stored outside of sessions is shown by any of its turns, and deleted with all that follows it", async () => {
  const { address } = await open();
  const ask = (say: string, more: object = {}) =>
    tellWell(address, { on: "responses", say, token: ben, more: { ...more } });
  const first = await ask("Plant beans.");
  const second = await ask("When?", { previous_response_id: first.id });
  const { body } = await operate("GET", `sessions/${second.id}`);
  assert.equal(body.turns.length, 2);
  assert.equal((await operate("DELETE", `sessions/${first.id}`)).body.deleted, true);
  for (const { id } of [first, second]) {
    assert.equal((await call(address, "GET", `/v1/responses/${id}`, undefined, { token: ben })).status, 404);
  }
});

test("a session is deleted by its id, and a user's with every owner or with one", async () => {
  const { address } = await open();
  const say = async (own: string, user: string) => {
    const heard = await tellWell(address, { on: "chat", say: "hi", token: own, more: { user } });
    return { id: heard.headers.get("x-portico-session"), history: heard.headers.get("x-portico-history") };
  };
  const [one, two, other] = [await say(ann, "gone"), await say(ben, "gone"), await say(ann, "here")];
  const deleted = (session: typeof one) => ({ id: session.id, object: "session", deleted: true });
  const ofBen = await operate("DELETE", "sessions?user=gone&owner=ben");
  assert.deepEqual(ofBen.body, { object: "list", data: [deleted(two)] });
  assert.deepEqual((await operate("DELETE", "sessions?user=gone")).body.data, [deleted(one)]);
  assert.deepEqual((await operate("DELETE", "sessions?user=gone")).body.data, []);
  assert.deepEqual((await operate("DELETE", `sessions/${other.id}`)).body, deleted(other));
  assert.equal((await operate("DELETE", `sessions/${other.id}`)).status, 404);
  for (const [own, user] of [
    [ann, "gone"],
    [ben, "gone"],
    [ann, "here"],
  ] as const) {
    assert.equal((await say(own, user)).history, "new");
  }
});

test("the operator's requests and the callers' do not count against each other's rate", async (context: TestContext) => {
  const limits = { requests_per_minute: 1, burst: 1 };
  const { address } = await openGateway(context, { limits });
  for (const path of ["/metrics", "/operator/sessions", "/metrics"]) {
    assert.equal((await call(address, "GET", path, undefined, operator)).status, 200);
  }
  const models = async () => (await call(address, "GET", "/v1/models")).status;
  assert.deepEqual([await models(), await models()], [200, 429]);
  assert.equal((await call(address, "GET", "/metrics", undefined, operator)).status, 200);
});

test("the console is a page without a secret, which may run and request nothing but its own origin", async (context) => {
  const { address } = await open();
  assert.deepEqual((await call(address, "GET", "/console")).body?.error.code, "endpoint_disabled");
  const on = await openGateway(context, { http: { console: true } });
  const page = await fetch(`${on.address}/console`);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  const policy = page.headers.get("content-security-policy") ?? "";
  for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(rule), policy);
  }
  const text = await page.text();
  assert.ok(!text.includes(token) && !text.includes(operatorToken));
  const linked = [...text.matchAll(/(?:src|href)="([^"#:]+\.(?:js|css))"/g)].map(([, path]) => path!);
  assert.ok(linked.length > 0, text);
  for (const path of linked) assert.equal((await fetch(new URL(path, `${on.address}/console`))).status, 200, path);
  assert.equal((await fetch(`${on.address}/console/%2e%2e%2f%2e%2e%2fpackage.json`)).status, 404);
});
