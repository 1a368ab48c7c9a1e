/** Whose address a request has, directly and through proxies. */
import assert from "node:assert/strict";
import { request as send } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createAddressOf } from "../../src/http/address.ts";
import { makeFolder } from "../gateway.ts";
import { type Box, createBox, decide, say } from "../scripted.ts";
import { refusalOf } from "./websocket-client.ts";

const proxy = "10.0.0.1";
const caller = "203.0.113.7";

/** The address of a request through these proxies. */
function addressOf(forwarded: string | undefined, remoteAddress = proxy): string | undefined {
  const trustedProxies = [proxy, "192.168.0.0/16", "2001:db8:1::/48"];
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return createAddressOf({ trustedProxies, bind: "::" })({ headers, socket: { remoteAddress } });
}

for (const [what, forwarded, address] of [
  ["is what the proxy says", caller, caller],
  ["is the proxy's if it says nothing", undefined, proxy],
  ["is the proxy's if it says nothing but a comma", ",", proxy],
  ["is the last that a proxy added, whatever the caller sent before", `198.51.100.1, 127.0.0.1,${caller}`, caller],
  ["is found behind further proxies", `198.51.100.1, ${caller}, 192.168.3.4, 2001:db8:1::5, ::ffff:10.0.0.1`, caller],
  ["is the first one's if there are only proxies", "192.168.1.1, 192.168.1.2", "192.168.1.1"],
  ["may have a port", `198.51.100.1, ${caller}:4711`, caller],
  ["may be in brackets", "[2001:db8:2::1]", "2001:db8:2::1"],
  ["may be in brackets, with a port", `${caller}, [2001:db8:2::1]:4711, [2001:db8:1::1]:80`, "2001:db8:2::1"],
  ["may have a zone", "fe80::1%eth0", "fe80::1%eth0"],
  ["is the last good one before what is no address", `${caller}, unknown, 192.168.1.1`, "192.168.1.1"],
  ["is the proxy's if it says no address", `${caller}, _hidden`, proxy],
  ["is the proxy's if it says half an address", `${caller}, 203.0.113`, proxy],
] as const) {
  test(`an address behind a trusted proxy ${what}`, () => assert.equal(addressOf(forwarded), address));
}

test("a trusted IPv4 proxy may be written as an IPv6 one, and a network may be", () => {
  assert.equal(addressOf(caller, "::ffff:10.0.0.1"), caller);
  assert.equal(addressOf(caller, "::ffff:192.168.255.1"), caller);
  const mapped = createAddressOf({ trustedProxies: ["::ffff:10.0.0.0/104"], bind: "0.0.0.0" });
  assert.equal(mapped({ headers: { "x-forwarded-for": caller }, socket: { remoteAddress: proxy } }), caller);
});

test("nobody else is believed", () => {
  for (const other of ["10.0.0.2", "::ffff:10.0.0.2", "192.169.0.1", "2001:db8:2::1", "::1"]) {
    assert.equal(addressOf(caller, other), other);
  }
});

test("a connection without an address is a proxy's only on a unix socket", () => {
  const gone = { headers: { "x-forwarded-for": caller }, socket: { remoteAddress: undefined } };
  const through = (bind: string, ...trustedProxies: string[]) => createAddressOf({ trustedProxies, bind })(gone);
  assert.equal(through("unix:/run/door.sock", "unix"), caller);
  assert.equal(through("unix:/run/door.sock", "0.0.0.0/0"), undefined);
  assert.equal(through("127.0.0.1", "unix"), undefined);
});

const now = () => new Date(1_000_000);
const limits = { maxAuthFailuresPerMinute: 1 };

/** A gateway on a real socket that trusts these proxies; the test itself is one at 127.0.0.1. */
async function open(context: TestContext, trustedProxies: readonly string[]) {
  const box = createBox(context, [say("hi")], { now, limits, settings: { trustedProxies } });
  const address = await box.listen();
  const attempt = async (forwarded: string) => {
    const headers = { authorization: "Bearer wrong", "x-forwarded-for": forwarded };
    return (await fetch(`${address}/v1/models`, { headers })).status;
  };
  return { box, address, attempt };
}

/** The addresses in the lines of the log, once there are so many. */
async function loggedAddresses({ logged }: Box, count: number): Promise<readonly unknown[]> {
  while (logged.length < count) await new Promise(setImmediate);
  return logged.map(({ fields }) => "address" in fields && fields.address);
}

test("failed attempts through a trusted proxy are counted and logged by their own addresses", async (context) => {
  const { box, attempt } = await open(context, ["127.0.0.0/8"]);
  // A guesser sends another address before its own each time.
  assert.deepEqual([await attempt(`1.1.1.1, ${caller}`), await attempt(`2.2.2.2, ${caller}`)], [401, 429]);
  assert.equal(await attempt("198.51.100.1"), 401);
  assert.deepEqual(await loggedAddresses(box, 3), [caller, caller, "198.51.100.1"]);
});

test("whoever is not a trusted proxy cannot choose an address", async (context) => {
  for (const trusted of [[], ["10.0.0.0/8", "::1"]]) {
    const { box, attempt } = await open(context, trusted);
    assert.deepEqual([await attempt(caller), await attempt("198.51.100.1")], [401, 429]);
    assert.deepEqual(await loggedAddresses(box, 2), ["127.0.0.1", "127.0.0.1"]);
  }
});

test("other proxies may be trusted while the gateway runs", async (context) => {
  const { box, attempt } = await open(context, []);
  assert.deepEqual([await attempt(caller), await attempt(caller)], [401, 429]);
  box.change(decide({ trustedProxies: ["127.0.0.1"] }, limits));
  assert.equal(await attempt(caller), 401);
  box.change(decide({}, limits));
  assert.equal(await attempt("198.51.100.1"), 429);
});

test("a refused WebSocket has the address that a trusted proxy says", async (context) => {
  const { box, address } = await open(context, ["127.0.0.1"]);
  const attempt = async (forwarded: string) =>
    (await refusalOf(address, { authorization: "Bearer wrong", "x-forwarded-for": forwarded })).status;
  assert.deepEqual([await attempt(caller), await attempt(caller), await attempt("::1")], [401, 429, 401]);
  assert.deepEqual(await loggedAddresses(box, 3), [caller, caller, "::1"]);
});

test("a proxy on a unix socket can be trusted, and may add a header of its own behind the caller's", async (context) => {
  const socketPath = join(makeFolder(context), "door.sock");
  const settings = { bind: `unix:${socketPath}`, trustedProxies: ["unix"] };
  const box = createBox(context, [say("hi")], { now, limits, settings });
  await box.listen();
  const attempt = (forwarded: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const headers = { "x-forwarded-for": ["192.0.2.1", forwarded] };
    send({ socketPath, path: "/v1/models", headers }, (answer) => resolve(answer.resume().statusCode))
      .on("error", reject)
      .end();
    return promise;
  };
  assert.deepEqual([await attempt(caller), await attempt(caller), await attempt("::1")], [401, 429, 401]);
  assert.deepEqual(await loggedAddresses(box, 3), [caller, caller, "::1"]);
});
