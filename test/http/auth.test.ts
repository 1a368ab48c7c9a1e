import assert from "node:assert/strict";
import { test } from "node:test";
import type { GatewayError } from "../../src/core/errors.ts";
import { createAddressOf } from "../../src/http/address.ts";
import { createAdmit, createFailureCount, type Token } from "../../src/http/auth.ts";
import { createTakeRequest } from "../../src/http/rate.ts";
import { createBox, say, toToken, token } from "../scripted.ts";

/** Admits callers with these tokens. */
function createGuard(tokens: readonly Token[], maxAuthFailuresPerMinute: number, now: () => Date) {
  const admit = createAdmit(now);
  const addressOf = createAddressOf({ trustedProxies: [], bind: "::" });
  return (headers: Record<string, string>, remoteAddress: string | undefined) =>
    admit({ headers, socket: { remoteAddress } }, { tokens, addressOf, limits: { maxAuthFailuresPerMinute } });
}

const ways: readonly [string, Record<string, string>][] = [
  ["Authorization: Bearer", { authorization: `Bearer ${token}` }],
  ["the scheme in any case", { authorization: `bEARER   ${token}` }],
  ["X-API-Key", { "x-api-key": token }],
  ["api-key", { "api-key": token }],
  ["api-key beside an empty X-API-Key", { "x-api-key": "", "api-key": token }],
];

for (const [way, headers] of ways) {
  test(`a token is accepted as ${way}`, () => {
    const admit = createGuard([toToken(token)], 10, () => new Date());
    assert.equal(admit(headers, "1.2.3.4").owner, "default");
  });
}

test("a token of another scheme, or with more words behind it, is not accepted", () => {
  const admit = createGuard([toToken(token)], 10, () => new Date());
  for (const authorization of [`Basic ${token}`, `${token}`, `Bearer ${token} more`, `Bearer `]) {
    assert.throws(() => admit({ authorization }, "1.2.3.4"), { code: "missing_api_key" }, authorization);
    // A client may send its token beside it.
    assert.equal(admit({ authorization, "x-api-key": token }, "1.2.3.4").owner, "default");
  }
  assert.throws(() => admit({ "x-api-key": "", "api-key": "" }, "1.2.3.4"), { code: "missing_api_key" });
});

test("a token in the URL is not accepted", async (context) => {
  const address = await createBox(context, [say("hi")]).listen();
  const response = await fetch(`${address}/v1/models?api_key=${token}&token=${token}`);
  assert.equal(response.status, 401);
});

test("each of several tokens is accepted, for its own owner", () => {
  const admit = createGuard(
    [toToken("one", { owner: "app-one" }), toToken("two", { owner: "app-two" })],
    10,
    () => new Date(),
  );
  assert.equal(admit({ "x-api-key": "one" }, "a").owner, "app-one");
  assert.equal(admit({ "x-api-key": "two" }, "a").owner, "app-two");
});

test("a token is refused from the moment at which it expires", () => {
  let at = 999;
  const admit = createGuard([toToken(token, { expiresAt: new Date(1_000) })], 10, () => new Date(at));
  assert.equal(admit({ "x-api-key": token }, "a").owner, "default");
  at = 1_000;
  assert.throws(() => admit({ "x-api-key": token }, "a"), { code: "invalid_api_key" });
});

test("an address must wait after ten failures in a minute, but a correct token is never delayed", () => {
  let at = 1_000_000;
  const admit = createGuard([toToken(token)], 10, () => new Date(at));
  for (let failure = 0; failure < 10; failure++) {
    assert.throws(() => admit({ "x-api-key": "no" }, "a"), { code: "invalid_api_key" });
  }
  at += 20_500;
  assert.throws(() => admit({}, "a"), { code: "too_many_failures", status: 429, retryAfterSeconds: 40 });
  assert.equal(admit({ "x-api-key": token }, "a").owner, "default");
  assert.throws(() => admit({}, "b"), { code: "missing_api_key" });
  at += 40_000;
  assert.throws(() => admit({}, "a"), { code: "missing_api_key" });
});

test("failures are counted for an IPv4 address, however it is written, and for an IPv6 network", () => {
  const admit = createGuard([toToken(token)], 1, () => new Date(0));
  const codeFor = (address: string) => {
    try {
      admit({}, address);
    } catch (thrown) {
      return (thrown as GatewayError).code;
    }
    return undefined;
  };
  for (const [address, neighbour, stranger] of [
    ["2001:db8:0:1:2:3:4:5", "2001:db8:0:1:ffff::1", "2001:db8:0:2:2:3:4:5"],
    ["2001:db8::1", "2001:db8::2:0:0:1", "2001:db8:1::1"],
    ["2001::1:2:3:4:5", "2001:0:0:1::1", "2001::2:2:3:4:5"],
    ["fe80::1%eth0", "fe80::2%eth0", "fe80:0:0:1::1%eth0"],
    ["::1", "::2", "0:0:0:1::1"],
    ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2"],
  ] as const) {
    assert.deepEqual(
      [codeFor(address), codeFor(neighbour), codeFor(stranger)],
      ["missing_api_key", "too_many_failures", "missing_api_key"],
      address,
    );
  }
  const onUnixSocket = undefined as unknown as string;
  assert.deepEqual([codeFor(onUnixSocket), codeFor(onUnixSocket)], ["missing_api_key", "too_many_failures"]);
});

test("at most ten thousand failing addresses are remembered, the newest", () => {
  const countFailure = createFailureCount();
  for (let address = 0; address <= 10_000; address++) countFailure(`${address}`, 0, 1);
  assert.equal(countFailure("1", 0, 1), 60_000);
  assert.equal(countFailure("0", 0, 1), 0);
  // One that fails again a minute later is the newest, and others are forgotten first.
  assert.equal(countFailure("3", 60_000, 1), 0);
  for (const other of ["x", "y"]) countFailure(other, 60_000, 1);
  assert.equal(countFailure("3", 60_000, 1), 60_000);
});

test("a rate limit allows a burst, then refuses with Retry-After, and refills", () => {
  let at = 0;
  const general = { requestsPerMinute: 60, burst: 3 };
  const take = createTakeRequest(() => new Date(at));
  const caller = toToken(token);
  for (let request = 0; request < 3; request++) take(caller, general);
  assert.throws(() => take(caller, general), { code: "rate_limit_exceeded", retryAfterSeconds: 1 });
  take(toToken("other", { owner: "other" }), general);
  at += 1000;
  take(caller, general);
  assert.throws(() => take(caller, general), { code: "rate_limit_exceeded" });
  at += 500;
  assert.throws(() => take(caller, general), { retryAfterSeconds: 1 });
  // However long no request comes, it refills no further than its burst.
  at += 3_600_000;
  for (let request = 0; request < 3; request++) take(caller, general);
  assert.throws(() => take(caller, general), { code: "rate_limit_exceeded" });
});

test("headers say what is left of a rate limit, of a refused request too, and without a limit there are none", () => {
  let at = 0;
  const take = createTakeRequest(() => new Date(at));
  const told: (readonly string[])[] = [];
  const general = { requestsPerMinute: 6, burst: 12 };
  const tell = (headers: object) => told.push(Object.values(headers));
  take(toToken(token), undefined, tell);
  for (let request = 0; request < 12; request++) take(toToken(token), general, tell);
  assert.throws(() => take(toToken(token), general, tell), { code: "rate_limit_exceeded" });
  at = 119_500;
  take(toToken(token), general, tell);
  at = 129_490;
  take(toToken(token), { requestsPerMinute: 6, burst: 2 }, tell);
  at = 139_480;
  take(toToken(token), { requestsPerMinute: 600, burst: 2 }, tell);
  assert.equal(told.length, 16);
  assert.deepEqual(
    [0, 1, 6, 11, 12, 13, 14, 15].map((request) => told[request]),
    [
      ["12", "11", "10s"],
      ["12", "10", "20s"],
      ["12", "5", "1m10s"],
      ["12", "0", "2m0s"],
      ["12", "0", "2m0s"],
      ["12", "10", "10.5s"],
      ["2", "1", "10s"],
      ["2", "1", "100ms"],
    ],
  );
});

test("a clock that was set back locks no caller out", () => {
  let at = 3_600_000;
  const general = { requestsPerMinute: 60, burst: 1 };
  const take = createTakeRequest(() => new Date(at));
  take(toToken(token), general);
  const countFailure = createFailureCount();
  for (let failure = 0; failure < 3; failure++) countFailure("a", at, 2);
  at = 0;
  assert.throws(() => take(toToken(token), general), { retryAfterSeconds: 1 });
  at = 1_000;
  take(toToken(token), general);
  assert.equal(countFailure("a", at, 2), 0);
});

test("a token's own rate replaces the general one", () => {
  const general = { requestsPerMinute: 60, burst: 60 };
  const take = createTakeRequest(() => new Date(0));
  const slow = toToken(token, { rate: { requestsPerMinute: 1, burst: 1 } });
  take(slow, general);
  assert.throws(() => take(slow, general), { retryAfterSeconds: 60 });
});
