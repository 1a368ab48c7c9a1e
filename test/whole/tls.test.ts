/** Models behind TLS: trusted through the system's certificates, or through those that the operator adds. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { compiled } from "../compiled.ts";
import { certificate, privateKey } from "../certificate.ts";
import { makeFolder } from "../gateway.ts";
import { chunk } from "../upstream.ts";

async function startServer(context: TestContext): Promise<string> {
  const server = createServer({ cert: certificate, key: privateKey }, (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify(chunk({ content: "over TLS" }, "stop"))}\n\ndata: [DONE]\n\n`);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `https://localhost:${(server.address() as AddressInfo).port}/v1`;
}

/** Which certificates are trusted is fixed when a process starts, so each answer comes from its own process. */
const program = `
import { openPortico } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
const [, folder, base_url] = process.argv;
const http = { port: 0, auth_token: "sk-gateway-0123456789abcdef", endpoints: { compat_chat: true } };
const adapters = { model: { type: "openai", base_url, retry: { times: 0 } } };
const gateway = { http, adapters, log: { level: "silent" }, sessions: { store: "memory:" } };
const portico = await openPortico({ gateway }, { folder, env: {} });
const response = await fetch(portico.address + "/v1/chat/completions", {
  method: "POST",
  headers: { authorization: "Bearer " + http.auth_token, "content-type": "application/json" },
  body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }] }),
});
console.log(response.status, await response.text());
await portico.close();
`;

test("the operator's own certificate is trusted when NODE_EXTRA_CA_CERTS names it, and not otherwise", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, "authority.pem");
  writeFileSync(file, certificate);
  const url = await startServer(context);
  const ask = async (more: NodeJS.ProcessEnv) => {
    const argv = ["--input-type=module", "--eval", program, folder, url];
    const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compiled, ...more };
    return (await promisify(execFile)(process.execPath, argv, { env })).stdout;
  };
  const [trusted, untrusted] = await Promise.all([ask({ NODE_EXTRA_CA_CERTS: file }), ask({})]);
  assert.match(trusted, /^200 .*"content":"over TLS"/);
  assert.match(untrusted, /^502 .*TLS with the upstream at localhost:\d+ failed .*NODE_EXTRA_CA_CERTS/);
});
