/** Media given by URL: what is fetched, and what is refused before any byte is read. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import {
  type AddressInfo,
  getDefaultAutoSelectFamily,
  type LookupFunction,
  setDefaultAutoSelectFamily,
} from "node:net";
import { test, type TestContext } from "node:test";
import { readDataUrl } from "../../src/adapters/media/data-url.ts";
import { fetchMedia } from "../../src/adapters/media/fetch.ts";
import type { MediaLimits } from "../../src/adapters/media/limits.ts";
import { createReach } from "../../src/adapters/media/reach.ts";
import type { GatewayError } from "../../src/core/errors.ts";

const never = new AbortController().signal;
const part = { type: "image", url: "https://example.test/a.png" } as const;
const usual: MediaLimits = { part, maxBytes: 20 * 1024 * 1024, timeoutMs: 10_000, allowPrivate: false };
const own: MediaLimits = { ...usual, allowPrivate: ["127.0.0.1"] };
/** The type as it is declared. */
const asDeclared = (type: string): string => type || "text/plain";

/** A server on 127.0.0.1 that records what it was asked for. */
async function startServer(context: TestContext, listener: RequestListener) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.headers.host?.split(":")[0]}${request.url}`);
    listener(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, asked };
}

/** A lookup that resolves names to these addresses, one after the other; the last one is repeated. */
function resolveTo(...addresses: readonly string[]): LookupFunction & { readonly names: string[] } {
  const names: string[] = [];
  const lookup: LookupFunction = (hostname, _options, callback) => {
    const address = addresses[Math.min(names.length, addresses.length - 1)] ?? "";
    names.push(hostname);
    callback(null, [{ address, family: address.includes(":") ? 6 : 4 }]);
  };
  return Object.assign(lookup, { names });
}

async function refusalOf(pending: Promise<unknown>): Promise<GatewayError> {
  const failure = await pending.then(
    () => assert.fail("It was not refused."),
    (thrown: GatewayError) => thrown,
  );
  assert.deepEqual([failure.code, failure.part], ["invalid_value", part], String(failure.stack));
  assert.doesNotMatch(failure.message, /secret/);
  return failure;
}

function send(type: string, body: string | Buffer): RequestListener {
  return (_, response) => void response.writeHead(200, { "content-type": type }).end(body);
}

function redirectTo(location: string): RequestListener {
  return (_, response) => void response.writeHead(302, { location }).end();
}

test("media are fetched with their bytes and their type", async (context) => {
  const server = await startServer(context, send("Image/PNG; x=y", Buffer.of(1, 2, 3)));
  const { bytes, type } = await fetchMedia(`${server.url}/a.png?size=1`, own, never);
  assert.deepEqual([[...bytes], type], [[1, 2, 3], "image/png"]);
  assert.deepEqual(server.asked, ["127.0.0.1/a.png?size=1"]);
});

test("a name that resolves to a private network is refused before a connection is made", async (context) => {
  const server = await startServer(context, send("text/plain", "internal"));
  for (const address of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "::ffff:127.0.0.1"]) {
    const lookup = resolveTo(address);
    const pending = fetchMedia(`http://media.test:${server.port}/a?secret`, usual, never, lookup);
    assert.match((await refusalOf(pending)).message, /media\.test.* is not a public internet address/);
  }
  assert.deepEqual(server.asked, []);
});

test("a name is resolved as the process is told to: to all its addresses or to one", async (context) => {
  const server = await startServer(context, send("image/png", "PICTURE"));
  const before = getDefaultAutoSelectFamily();
  context.after(() => setDefaultAutoSelectFamily(before));
  for (const isAutomatic of [true, false]) {
    setDefaultAutoSelectFamily(isAutomatic);
    const url = `http://media.test:${server.port}/`;
    assert.equal((await fetchMedia(url, own, never, resolveTo("127.0.0.1"))).type, "image/png");
    await refusalOf(fetchMedia(url, own, never, resolveTo("127.0.0.2")));
  }
});

test("a name that cannot be resolved is refused", async () => {
  const lookup: LookupFunction = (_name, _options, callback) => callback(new Error("no such name"), []);
  const { message } = await refusalOf(fetchMedia("http://media.test/?secret", usual, never, lookup));
  assert.match(message, /media\.test cannot be reached/);
});

test("one private address among public ones is enough to refuse a name", async () => {
  const lookup: LookupFunction = (_name, _options, callback) =>
    callback(null, [
      { address: "93.184.216.34", family: 4 },
      { address: "10.0.0.1", family: 4 },
    ]);
  await refusalOf(fetchMedia("http://media.test/", usual, never, lookup));
});

test("a private address is refused in every notation", async (context) => {
  const { port, asked } = await startServer(context, send("text/plain", "internal"));
  for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0", "[::]"]) {
    await refusalOf(fetchMedia(`http://${host}:${port}/`, usual, never));
  }
  await refusalOf(fetchMedia(`http://localhost:${port}/`, usual, never));
  assert.deepEqual(asked, []);
});

test("a redirect is followed, and the address of each hop is checked", async (context) => {
  const last = await startServer(context, send("text/plain", "here"));
  const away = await startServer(context, (_, response) => {
    response.writeHead(302, { location: `${last.url}/there` }).end(Buffer.alloc(1_000_000));
  });
  assert.equal(Buffer.from((await fetchMedia(away.url, own, never)).bytes).toString(), "here");

  const inwards = await startServer(context, redirectTo(`http://127.0.0.2:${last.port}/secret`));
  assert.match(
    (await refusalOf(fetchMedia(inwards.url, own, never))).message,
    /127\.0\.0\.2.* is not a public internet address/,
  );
  const named = await startServer(context, redirectTo(`http://inside.test:${last.port}/secret`));
  const lookup = resolveTo("10.1.2.3");
  assert.match(
    (await refusalOf(fetchMedia(named.url, own, never, lookup))).message,
    /inside\.test.* is not a public internet address/,
  );
  assert.deepEqual(last.asked, ["127.0.0.1/there"]);
});

test("a name that resolves differently at the next hop is refused, since the checked address is the one connected to", async (context) => {
  const server = await startServer(context, redirectTo("/again"));
  const lookup = resolveTo("127.0.0.1", "127.0.0.2");
  const pending = fetchMedia(`http://media.test:${server.port}/`, own, never, lookup);
  assert.match((await refusalOf(pending)).message, /media\.test.* is not a public internet address/);
  // Resolved once for each hop: there is no second lookup between the check and the connection.
  assert.deepEqual(lookup.names, ["media.test", "media.test"]);
  assert.deepEqual(server.asked, ["media.test/"]);
});

test("more than three redirects, and one to another protocol, are refused", async (context) => {
  const server = await startServer(context, redirectTo("/on"));
  assert.match((await refusalOf(fetchMedia(server.url, own, never))).message, /redirects too often/);
  assert.equal(server.asked.length, 4);
  for (const location of [
    "file:///etc/passwd",
    "data:text/plain,x",
    "ftp://media.test/",
    "http://a:secret@media.test/",
  ])
    await refusalOf(fetchMedia((await startServer(context, redirectTo(location))).url, own, never));
});

test("an invalid URL, another protocol and credentials are refused", async () => {
  for (const url of [
    "",
    "a.png",
    "file:///etc/passwd",
    "ftp://media.test/",
    "http://user:secret@media.test/",
    "blob:x",
  ])
    await refusalOf(fetchMedia(url, usual, never));
});

test("media larger than allowed are refused, with or without a declared length", async (context) => {
  const limits = { ...own, maxBytes: 1000 };
  const said = await startServer(context, send("image/png", Buffer.alloc(1001)));
  assert.match((await refusalOf(fetchMedia(said.url, limits, never))).message, /127\.0\.0\.1:\d+ is larger than 1000/);
  const unsaid = await startServer(context, (_, response) => {
    response.writeHead(200, { "content-type": "image/png" });
    const more = (): void => void (response.destroyed || response.write(Buffer.alloc(600), more));
    more();
  });
  await refusalOf(fetchMedia(unsaid.url, limits, never));
  const fits = await startServer(context, send("image/png", Buffer.alloc(1000)));
  assert.equal((await fetchMedia(fits.url, limits, never)).bytes.length, 1000);
});

test("media that are slow to begin or to end time out, and a caller that disconnects ends the fetch", async (context) => {
  const limits = { ...own, timeoutMs: 60 };
  const mute = await startServer(context, () => {});
  assert.match((await refusalOf(fetchMedia(mute.url, limits, never))).message, /within 60 ms/);
  const slow = await startServer(context, (_, response) => {
    response.writeHead(200, { "content-type": "image/png" }).write("x");
  });
  await refusalOf(fetchMedia(slow.url, limits, never));
  const caller = new AbortController();
  const leaving = await startServer(context, () => caller.abort());
  await assert.rejects(fetchMedia(leaving.url, own, caller.signal), { code: "client_closed" });
});

test("only media types that models read are accepted, and only without a content encoding", async (context) => {
  for (const type of ["application/zip", "font/woff", "application/json", "", "<secret>"]) {
    const server = await startServer(context, send(type, "x"));
    await refusalOf(fetchMedia(`${server.url}/?secret`, own, never));
  }
  for (const type of ["audio/wav", "video/mp4", "text/csv; charset=utf-8", "application/pdf", "image/svg+xml"]) {
    const server = await startServer(context, send(type, "x"));
    assert.equal((await fetchMedia(server.url, own, never)).type, type.split(";")[0]);
  }
  const packed = await startServer(context, (_, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" }).end("x");
  });
  await refusalOf(fetchMedia(packed.url, own, never));
});

test("an error status, a lost connection and a refused connection are reported with the host only", async (context) => {
  const missing = await startServer(
    context,
    (_, response) => void response.writeHead(404).end(Buffer.alloc(1_000_000)),
  );
  const message = /^A file cannot be used: 127\.0\.0\.1:\d+ answered with status 404\.$/;
  assert.match((await refusalOf(fetchMedia(`${missing.url}/a?secret`, own, never))).message, message);
  const lost = await startServer(context, (request) => void request.socket.destroy());
  assert.match((await refusalOf(fetchMedia(`${lost.url}/a?secret`, own, never))).message, /cannot be reached/);
  await refusalOf(fetchMedia("http://127.0.0.1:1/?secret", own, never));
});

test("a data: URL is decoded without a request", () => {
  const texts: readonly (readonly [url: string, type: string, text: string])[] = [
    ["data:image/png;base64,AQID", "image/png", "\x01\x02\x03"],
    ["data:image/png;base64,AQI%3D", "image/png", "\x01\x02"],
    ["DATA:text/plain;charset=utf-8;base64,aGk", "text/plain", "hi"],
    ["data:,a%20b", "text/plain", "a b"],
    ["data:;charset=utf-8,gr%C3%BCn", "text/plain", "grün"],
  ];
  for (const [url, type, text] of texts) {
    const media = readDataUrl(url, usual, asDeclared);
    assert.deepEqual([media.type, Buffer.from(media.bytes).toString()], [type, text]);
  }
});

test("a data: URL of another type, too large or malformed is refused", async () => {
  const read = async (url: string) => readDataUrl(url, { ...usual, maxBytes: 10 }, asDeclared);
  for (const url of [
    "data:image/png;base64",
    "data:application/zip;base64,AQID",
    "data:image/png;base64,A*ID",
    "data:text/plain,%E0%A4",
    `data:image/png;base64,${"AAAA".repeat(4)}`,
    `data:image/png;base64,${"AAAA".repeat(100_000)}`,
    `data:text/plain,${"x".repeat(11)}`,
  ])
    await refusalOf(read(url));
  assert.equal((await read("data:image/png;base64,AAAAAAAAAAAAAA==")).bytes.length, 10);
});

const privateAddresses = (
  "0.0.0.0 10.255.0.1 100.100.0.1 127.9.9.9 169.254.1.1 172.31.0.1 192.0.0.8 192.168.1.1 198.19.0.1 203.0.113.7 " +
  "224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::808:808 64:ff9b:1::1 100::1 " +
  "fc00::1 fd12::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1"
).split(" ");

test("only public internet addresses are reached, unless the operator adds others", () => {
  const isPublic = createReach(false);
  for (const address of ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"])
    assert.equal(isPublic(address), true, address);
  for (const address of [...privateAddresses, "", "localhost", "1.2.3"])
    assert.equal(isPublic(address), false, address);
  const added = createReach(["10.1.0.0/16", "fd00::/8"]);
  assert.deepEqual(["10.1.2.3", "10.2.2.3", "fd00::1", "8.8.8.8"].map(added), [true, false, true, true]);
  assert.equal(createReach(true)("127.0.0.1"), true);
  assert.throws(() => createReach(["home"]), /'home' is neither/);
});
