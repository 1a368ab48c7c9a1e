/** How the terminal probes an address at a start. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createTerminal } from "../../src/cli/terminal.ts";
import { findFreePort } from "../gateway.ts";

async function listen(context: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("A probe returns a JSON answer, and nothing for any other answer, a refused connection or silence.", async (context) => {
  const address = await listen(context, (request, response) => {
    if (request.url === "/list") response.end('{"models":[]}');
    else if (request.url === "/page") response.end("<html>");
    else if (request.url === "/half") response.write('{"models":');
    else if (request.url === "/other") response.writeHead(101, { connection: "upgrade", upgrade: "other" }).end();
    else if (request.url === "/gone") response.writeHead(404).end('{"models":[]}');
  });
  const { probe, outlastOutput } = createTerminal();
  // The tests' own output must not be affected.
  outlastOutput();
  const asked = ["list", "page", "gone", "half", "other", "silent"].map((path) => probe(`${address}/${path}`));
  const nobody = probe(`http://127.0.0.1:${await findFreePort()}/list`);
  const overTls = probe(address.replace("http:", "https:"));
  assert.deepEqual(await Promise.all([...asked, nobody, overTls]), [{ models: [] }, ...Array.from({ length: 7 })]);
});
