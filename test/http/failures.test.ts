/** Failed attempts: ten a minute from one address, counted by the address that a trusted proxy tells. */
import assert from "node:assert/strict";
import { request as send } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { call, tell } from "../harness/client.ts";
import { makeFolder, openGateway, shareGateway, type Gateway, token, toSettings } from "../harness/house.ts";

let at = Date.parse("2030-01-01T00:00:00Z");
const now = () => new Date(at);
const open = shareGateway({ now, http: { trusted_proxies: ["127.0.0.1", "192.168.0.0/16", "2001:db8:1::/48"] } });
const most = 10;

/** The statuses of so many attempts from an address, as a proxy tells it. */
async function attempt({ address }: Gateway, forwarded: string | undefined, times = 1): Promise<number[]> {
  const statuses: number[] = [];
  for (let time = 0; time < times; time++) {
    const headers = { authorization: "Bearer sk-wrong", ...(forwarded && { "x-forwarded-for": forwarded }) };
    const response = await fetch(`${address}/v1/models`, { headers });
    await response.text();
    statuses.push(response.status);
  }
  return statuses;
}

test("after ten failures in a minute an address is told to wait, and a right token is never delayed", async () => {
  const portico = await open();
  const from = "198.51.100.1";
  assert.deepEqual(await attempt(portico, from, most), Array(most).fill(401));
  at += 20_500;
  const headers = { "x-forwarded-for": from };
  const refused = await call(portico.address, "GET", "/v1/models", undefined, { token: "sk-wrong", headers });
  const { type, code } = refused.body.error;
  assert.deepEqual([refused.status, type, code], [429, "rate_limit_error", "too_many_failures"]);
  assert.equal(refused.headers.get("retry-after"), "40");
  assert.equal((await tell(portico.address, { on: "chat", say: "hi", headers })).status, 200);
  assert.deepEqual(await attempt(portico, "198.51.100.2"), [401]);
  at += 40_000;
  assert.deepEqual(await attempt(portico, from), [401]);
});

test("attempts without a token count as well", async () => {
  const { address } = await open();
  const headers = { "x-forwarded-for": "198.51.100.3" };
  for (let time = 0; time < most; time++) assert.equal((await fetch(`${address}/v1/models`, { headers })).status, 401);
  assert.equal((await fetch(`${address}/v1/models`, { headers })).status, 429);
});

for (const [what, full, neighbour, stranger] of [
  ["an IPv4 address, however it is written", "192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2"],
  ["the /64 of an IPv6 address", "2001:db8:0:1:2:3:4:5", "2001:db8:0:1:ffff::1", "2001:db8:0:2:2:3:4:5"],
  ["the /64 of a shortened IPv6 address", "2001:db8:2::1", "2001:db8:2:0:9::", "2001:db8:2:1::1"],
  ["the local /64", "::1", "::2", "0:0:0:1::1"],
] as const) {
  test(`failures are counted for ${what}`, async () => {
    const portico = await open();
    await attempt(portico, full, most);
    assert.deepEqual([await attempt(portico, neighbour), await attempt(portico, stranger)], [[429], [401]]);
  });
}

const caller = "203.0.113.7";
for (const [what, forwarded, counted] of [
  ["is the last that a proxy added, whatever the caller sent before", `1.1.1.1, 127.0.0.1,${caller}`, caller],
  ["is found behind further proxies", `1.1.1.1, ${caller}, 192.168.3.4, 2001:db8:1::5, ::ffff:192.168.0.1`, caller],
  ["is the first one's if there are only proxies", "192.168.1.1, 192.168.1.2", "192.168.1.1"],
  ["may have a port", `198.51.100.1, ${caller}:4711`, caller],
  ["may be in brackets, with a port", `${caller}, [2001:db8:3::1]:4711, [2001:db8:1::1]:80`, "2001:db8:3::1"],
  ["is the last good one before what is no address", `${caller}, unknown, 192.168.1.3`, "192.168.1.3"],
  ["is the proxy's if it tells none", undefined, "127.0.0.1"],
  ["is the proxy's if it tells half an address", `${caller}, 203.0.113`, "127.0.0.1"],
] as const) {
  test(`the address of a caller behind a trusted proxy ${what}`, async () => {
    const portico = await open();
    await attempt(portico, forwarded);
    const line = portico.logged.findLast(({ message }) => message === "request");
    assert.equal(line?.fields["address"], counted);
  });
}

test("whoever is not a trusted proxy cannot choose an address", async (context) => {
  const portico = await openGateway(context, { now, http: { trusted_proxies: ["10.0.0.0/8", "::1"] } });
  for (let time = 0; time < most; time++) assert.deepEqual(await attempt(portico, `198.51.100.${time}`), [401]);
  assert.deepEqual(await attempt(portico, caller), [429]);
  assert.ok(portico.logged.every(({ fields }) => fields["address"] === "127.0.0.1"));
});

test("failures survive a reload, and the reloaded proxies are believed", async (context) => {
  const portico = await openGateway(context, { now });
  await attempt(portico, caller, most);
  assert.deepEqual(await attempt(portico, caller), [429]);
  await portico.reload(toSettings({ http: { trusted_proxies: ["127.0.0.0/8"] } }));
  assert.deepEqual(await attempt(portico, caller), [401]);
  assert.deepEqual(await attempt(portico, undefined), [429]);
});

test("a proxy on a unix socket can be trusted", async (context) => {
  const path = await listenOnSocket(context, { trusted_proxies: ["unix"] });
  for (let time = 0; time < most; time++) assert.equal(await knock(path, caller), 401);
  assert.equal(await knock(path, caller), 429);
  assert.equal(await knock(path, "203.0.113.8"), 401);
});

test("without trust all who come through a unix socket are one address", async (context) => {
  const path = await listenOnSocket(context, {});
  for (let time = 0; time < most; time++) assert.equal(await knock(path, `203.0.113.${time}`), 401);
  assert.equal(await knock(path, caller), 429);
  assert.equal(await knock(path, caller, token), 200);
});

async function listenOnSocket(context: TestContext, http: object): Promise<string> {
  const path = join(makeFolder(context), "door.sock");
  await openGateway(context, { now, http: { bind: `unix:${path}`, ...http } });
  return path;
}

function knock(socketPath: string, forwarded: string, bearer = "sk-wrong"): Promise<number | undefined> {
  const headers = { "x-forwarded-for": forwarded, authorization: `Bearer ${bearer}` };
  return new Promise((resolve, reject) => {
    send({ socketPath, path: "/v1/models", headers }, (answer) => resolve(answer.resume().statusCode))
      .on("error", reject)
      .end();
  });
}
