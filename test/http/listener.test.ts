/** Where the gateway listens: a free port, either family, all addresses, and what happens when it cannot. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { makeFolder, openGateway, openPortico } from "../harness/house.ts";
import { dial, head, statusesOf } from "./raw.ts";

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === "::1"));
const ipv6 = { skip: hasIpv6 ? false : "no IPv6 here" } as const;
const asked = head("/v1/models", { connection: "close" }, "GET");

for (const [bind, told, options] of [
  ["127.0.0.1", /^http:\/\/127\.0\.0\.1:\d+$/, {}],
  ["localhost", /^http:\/\/(localhost|127\.0\.0\.1):\d+$/, {}],
  ["0.0.0.0", /^http:\/\/(127\.0\.0\.1|localhost):\d+$/, {}],
  ["::1", /^http:\/\/\[::1\]:\d+$/, ipv6],
  ["::", /^http:\/\/(127\.0\.0\.1|localhost|\[::1?\]):\d+$/, ipv6],
] as const) {
  test(
    `a gateway at ${bind} with port 0 takes a free port, and tells an address that leads there`,
    options,
    async (context) => {
      const { address } = await openGateway(context, { http: { bind } });
      assert.match(address, told);
      assert.notEqual(new URL(address).port, "0");
      assert.equal((await fetch(`${address}/healthz`)).status, 200);
    },
  );
}

test("a gateway at localhost is reached at both of its addresses", ipv6, async (context) => {
  const { address, close } = await openGateway(context, { http: { bind: "localhost" } });
  const { port } = new URL(address);
  for (const host of ["127.0.0.1", "[::1]", "localhost"])
    assert.equal((await fetch(`http://${host}:${port}/healthz`)).status, 200, host);
  await close();
  await assert.rejects(dial(context, `http://[::1]:${port}`), { code: "ECONNREFUSED" });
});

test("a unix socket is its owner's alone, and is removed when the gateway closes", async (context) => {
  const path = join(makeFolder(context), "door.sock");
  const { address, close } = await openGateway(context, { http: { bind: `unix:${path}` } });
  assert.ok(address.includes(path), address);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const line = await dial(context, path);
  line.socket.write(asked);
  assert.deepEqual(statusesOf(await line.closed), [200]);
  await close();
  assert.throws(() => statSync(path), { code: "ENOENT" });
});

test("a port that another has is an error, and nothing stays open", async (context) => {
  const { address } = await openGateway(context);
  const { port } = new URL(address);
  const folder = makeFolder(context);
  await assert.rejects(openGateway(context, { folder, http: { port: Number(port) } }), { code: "EADDRINUSE" });
  await openGateway(context, { folder });
});

test("with both endpoints off there is no listener", async (context) => {
  const gateway = { auth: { token: "sk-operator-0123456789abcdef" }, adapters: { echo: { type: "echo" } } } as const;
  const portico = await openPortico({ gateway }, { folder: makeFolder(context), env: {}, log: silent });
  context.after(() => portico.close());
  assert.equal(portico.address, undefined);
  assert.equal(await (await portico.talk({ content: "hi", model: "m" })).text(), "hi");
});

const silent = { info() {}, error() {} };
