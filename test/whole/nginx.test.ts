/**
 * The nginx block of docs/operating.md, unchanged, in front of a gateway: streams, WebSocket, sizes, and a path prefix.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, test, type TestContext } from "node:test";
import { WebSocket } from "ws";
import { options } from "../../src/adapters/openai/options.ts";
import { certificate, privateKey } from "../certificate.ts";
import { findFreePort, makeFolder, startGateway, token } from "../gateway.ts";
import { root } from "./program.ts";

const page = readFileSync(join(root, "docs/operating.md"), "utf8");
const [, block = ""] = /^```nginx\n(.*?)^```$/ms.exec(page) ?? [];
const program = "nginx";
const skip = spawnSync(program, ["-v"]).status === 0 ? false : "no nginx here";
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

/** The block with the machine's own addresses and files, and with what every nginx has around it. */
async function startNginx(context: TestContext, gateway: string, site = block): Promise<string> {
  const folder = makeFolder(context);
  const port = await findFreePort();
  writeFileSync(join(folder, "site.pem"), certificate);
  writeFileSync(join(folder, "site.key"), privateKey);
  const server = site
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replace("/etc/ssl/ai.example.com.pem", "site.pem")
    .replace("/etc/ssl/ai.example.com.key", "site.key")
    .replace("http://127.0.0.1:8600", gateway);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${kind};`);
  const around = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    join(folder, "nginx.conf"),
    `${around} daemon off; worker_processes 1; pid nginx.pid; error_log stderr notice; events {}
    http { access_log off; ${temporary.join(" ")}\n${server}\n}`,
  );
  const nginx = spawn(program, ["-e", "stderr", "-p", folder, "-c", "nginx.conf"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(nginx, "close");
  context.after(() => {
    nginx.kill("SIGTERM");
    return ended;
  });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    nginx.stderr.on("data", (piece: Buffer) => {
      said += piece.toString("utf8");
      if (said.includes("start worker process ")) resolve();
    });
    void ended.then(() => reject(new Error(said)));
  });
  return `https://127.0.0.1:${port}`;
}

async function send(url: string, body?: string) {
  const asked = request(url, { method: body === undefined ? "GET" : "POST", headers, ca: certificate });
  asked.end(body);
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return response;
}

const endpoints = { compat_chat: true, compat_responses: true };
const http = { port: 0, auth_token: token, endpoints, console: true };

suite("nginx in front of the gateway", { skip }, () => {
  test("a stream arrives piece by piece", async (context) => {
    const adapters = { echo: { type: "echo", delay_ms: 100 } };
    const { address } = await startGateway(context, { http, adapters });
    const nginx = await startNginx(context, address);
    const body = { model: "echo", stream: true, messages: [{ role: "user", content: "one two three four five" }] };
    const response = await send(`${nginx}/v1/chat/completions`, JSON.stringify(body));
    const pieces = await Array.fromAsync<Buffer>(response);
    assert.ok(pieces.length >= 5, `${pieces.length} pieces`);
    assert.match(pieces.join(""), /data: \[DONE\]\n\n$/);
  });

  test("a WebSocket is passed on", async (context) => {
    const { address } = await startGateway(context, { http });
    const nginx = await startNginx(context, address);
    const socket = new WebSocket(`${nginx.replace("https", "wss")}/v1/responses`, { headers, ca: certificate });
    context.after(() => socket.terminate());
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "response.create", model: "echo", input: "Hello" }));
    const [first] = await once(socket, "message");
    assert.match(String(first), /"type":"response\.created"/);
  });

  test("a body of the largest size passes, and a larger one is refused with the gateway's own error", async (context) => {
    const { address } = await startGateway(context, { http });
    const nginx = await startNginx(context, address);
    const wrap = (content: string) => JSON.stringify({ model: "echo", max_output_tokens: 16, input: content });
    const room = 20 * 1024 * 1024 - wrap("").length;
    const fits = await send(`${nginx}/v1/responses`, wrap("x".repeat(room)));
    fits.destroy();
    assert.equal(fits.statusCode, 200);
    const large = await send(`${nginx}/v1/responses`, wrap("x".repeat(room + 1)));
    assert.equal(large.statusCode, 413);
    assert.match(await text(large), /"code":"body_too_large"/);
  });

  test("the endpoints and the console work under a path prefix", async (context) => {
    const { address } = await startGateway(context, { http });
    const [, location = "", pass = ""] = /`(location .*? \{)` and `(proxy_pass .*?;)`/.exec(page) ?? [];
    const site = block.replace("location / {", location).replace("proxy_pass http://127.0.0.1:8600;", pass);
    const nginx = await startNginx(context, address, site);
    const answer = await send(`${nginx}/ai/v1/responses`, JSON.stringify({ model: "echo", input: "Hello" }));
    assert.match(await text(answer), /"text":"Hello"/);
    for (const path of ["console", "console/main.js"]) {
      const found = await send(`${nginx}/ai/${path}`);
      found.resume();
      assert.equal(found.statusCode, 200, path);
    }
  });
});

test("the nginx block of the page waits longer than a whole answer may take", () => {
  const [, seconds] = /proxy_read_timeout (\d+)s;/.exec(block) ?? [];
  assert.ok(Number(seconds) * 1000 > options.properties.total_timeout_ms.default);
});
