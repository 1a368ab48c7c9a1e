/** The nginx block of docs/operating.md, unchanged, in front of a gateway: streams, WebSocket, sizes, a path prefix. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { hear, readAll } from "../harness/client.ts";
import { findFreePort, gate, headers, type Scope, say, shareGateway } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { startNginx } from "../harness/nginx.ts";
import { root } from "../harness/program.ts";
import { certificate, privateKey } from "../harness/certificate.ts";
import { chat, helloStreamed } from "./raw.ts";

const options = { skip: need("nginx").skip };
const page = readFileSync(join(root, "docs/operating.md"), "utf8");
const [, block = ""] = /^```nginx\n(.*?)^```$/ms.exec(page) ?? [];
const [, prefixed = "", stripping = ""] = /`(location .*? \{)` and `(proxy_pass .*?;)`/.exec(page) ?? [];

const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.toReversed()) await end();
});
const opened = shareGateway({ http: { console: true } });
let started: Promise<string> | undefined;

/** One nginx for all tests, which serves the gateway at its root, and under the page's path prefix. */
async function open() {
  const portico = await opened();
  started ??= startSite({ after: (end) => void ends.push(end) }, portico.address);
  return { ...portico, nginx: await started };
}

async function startSite(scope: Scope, gateway: string): Promise<string> {
  const port = await findFreePort();
  const [location = ""] = /location \/ \{.*?\}/s.exec(block) ?? [];
  const under = location.replace("location / {", prefixed).replace("proxy_pass http://127.0.0.1:8600;", stripping);
  const site = block
    .replace(location, () => `${location}\n${under}`)
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace("/etc/ssl/ai.example.com.pem", "site.pem")
    .replace("/etc/ssl/ai.example.com.key", "site.key")
    .replaceAll("http://127.0.0.1:8600", gateway);
  await startNginx(scope, site, { "site.pem": certificate, "site.key": privateKey });
  return `https://127.0.0.1:${port}`;
}

async function send(url: string, body?: string): Promise<IncomingMessage> {
  const asking = request(url, { method: body === undefined ? "GET" : "POST", headers, ca: certificate });
  asking.end(body);
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  return response;
}

test("nginx: a stream arrives piece by piece", options, async () => {
  const { nginx, model } = await open();
  const later = gate();
  model.script = async function* () {
    yield say("first");
    await later.opened;
    yield say("second");
  };
  const response = await send(nginx + chat, helloStreamed);
  await hear(response, "first");
  later.open();
  assert.match(await hear(response, "[DONE]"), /second/);
});

test("nginx: a WebSocket is passed on", options, async (context) => {
  const { nginx, model } = await open();
  model.script = [say("hi")];
  const socket = new WebSocket(`${nginx.replace("https", "wss")}/v1/responses`, { headers, ca: certificate });
  context.after(() => socket.terminate());
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "response.create", model: "m", input: "Hello" }));
  const [first] = await once(socket, "message");
  assert.match(String(first), /"type":"response\.created"/);
});

test(
  "nginx: a body of the largest size passes, and a larger one is refused in the gateway's own words",
  options,
  async () => {
    const { nginx, model } = await open();
    model.script = [say("hi")];
    const wrap = (content: string) => JSON.stringify({ model: "m", store: false, input: content });
    const room = 20 * 1024 * 1024 - wrap("").length;
    const fits = await send(`${nginx}/v1/responses`, wrap("x".repeat(room)));
    fits.destroy();
    assert.equal(fits.statusCode, 200);
    const large = await send(`${nginx}/v1/responses`, wrap("x".repeat(room + 1)));
    assert.equal(large.statusCode, 413);
    assert.match(await readAll(large), /"code":"body_too_large"/);
  },
);

test("nginx: the endpoints and the console work under the path prefix of the page", options, async () => {
  const { nginx, model } = await open();
  model.script = [say("hi")];
  const answer = await send(`${nginx}/ai${chat}`, helloStreamed);
  assert.match(await readAll(answer), /"content":"hi"/);
  for (const path of ["console", "console/main.js"]) {
    const found = await send(`${nginx}/ai/${path}`);
    assert.equal(found.resume().statusCode, 200, path);
  }
});

test("nginx: the block of the page waits longer than a whole answer may take", () => {
  const [, seconds] = /proxy_read_timeout (\d+)s;/.exec(block) ?? [];
  assert.ok(Number(seconds) > 600);
});
