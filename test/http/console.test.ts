/** The console's files over a real socket. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { once } from "node:events";
import { request as send, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { createBox, say } from "../scripted.ts";

const folder = join(import.meta.dirname, "../../src/console");

function open(context: TestContext, settings: { readonly console?: boolean; readonly corsOrigins?: string[] } = {}) {
  return createBox(context, [say("hi")], { settings: { console: true, ...settings } }).listen();
}

suite("the console", () => {
  test("is a page that needs no token, with files of the right types", async (context) => {
    const address = await open(context);
    const page = await fetch(`${address}/console`);
    assert.deepEqual([page.status, page.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
    assert.equal(await page.text(), readFileSync(join(folder, "index.html"), "utf8"));
    const types = { html: "text/html", css: "text/css", js: "text/javascript" };
    for (const name of readdirSync(folder)) {
      const file = await fetch(`${address}/console/${name}`);
      assert.equal(file.status, 200, name);
      const type = types[name.split(".").at(-1) as keyof typeof types];
      assert.equal(file.headers.get("content-type"), `${type}; charset=utf-8`, name);
      assert.equal(await file.text(), readFileSync(join(folder, name), "utf8"), name);
    }
  });

  test("is where a browser gets that opens the gateway's bare address; other clients need a token there", async (context) => {
    const accept = "text/html,application/xhtml+xml,*/*;q=0.8";
    const ask = async (address: string, headers: Record<string, string>, path = "/", method = "GET") => {
      const { status, headers: answered } = await fetch(address + path, { method, headers, redirect: "manual" });
      return [status, answered.get("location")];
    };
    const address = await open(context);
    assert.deepEqual(await ask(address, { accept }), [307, "console"]);
    assert.deepEqual(await ask(address, { accept }, "/", "HEAD"), [307, "console"]);
    assert.deepEqual(await ask(address, { accept }, "/", "POST"), [401, null]);
    assert.deepEqual(await ask(address, { accept: "*/*" }), [401, null]);
    assert.deepEqual(await ask(address, { accept }, "/other"), [401, null]);
    assert.deepEqual(await ask(await open(context, { console: false }), { accept }), [401, null]);
  });

  test("allows the browser to load and request only what comes from the gateway", async (context) => {
    const address = await open(context);
    for (const path of ["/console", "/console/main.js"]) {
      const { headers } = await fetch(address + path);
      assert.equal(
        headers.get("content-security-policy"),
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.equal(headers.get("referrer-policy"), "no-referrer");
    }
  });

  test("is sent again only when it has changed", async (context) => {
    const address = await open(context);
    const first = await fetch(`${address}/console/style.css`);
    assert.equal(first.headers.get("cache-control"), "no-cache");
    const etag = first.headers.get("etag") ?? "";
    assert.match(etag, /^"[\w-]{22}"$/);
    for (const known of [etag, `"other", W/${etag}`]) {
      const again = await fetch(`${address}/console/style.css`, { headers: { "if-none-match": known } });
      assert.deepEqual([again.status, again.headers.get("etag"), await again.text()], [304, etag, ""]);
    }
    const other = await fetch(`${address}/console/style.css`, { headers: { "if-none-match": '"other"' } });
    assert.equal(other.status, 200);
  });

  test("is read-only: GET and HEAD are allowed, other methods are answered with 405", async (context) => {
    const address = await open(context);
    const head = await fetch(`${address}/console`, { method: "HEAD" });
    const { size } = new Blob([readFileSync(join(folder, "index.html"))]);
    assert.deepEqual([head.status, head.headers.get("content-length"), await head.text()], [200, String(size), ""]);
    for (const path of ["/console", "/console/main.js"]) {
      for (const method of ["POST", "PUT", "DELETE"]) {
        const refused = await fetch(address + path, { method });
        assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "GET"]);
      }
    }
  });

  test("is answered with 404 and the name of its key when it is disabled", async (context) => {
    const address = await open(context, { console: false });
    for (const path of ["/console", "/console/main.js"]) {
      const refused = await fetch(address + path);
      assert.equal(refused.status, 404);
      const { error } = (await refused.json()) as { error: { code: string; message: string } };
      assert.equal(error.code, "endpoint_disabled");
      assert.match(error.message, /"gateway\.http\.console": true/);
    }
  });

  test("has no other files, however they are requested", async (context) => {
    const address = await open(context);
    for (const path of [
      "/console/nope.js",
      "/console/../package.json",
      "/console/../../package.json",
      "/console/..%2f..%2fpackage.json",
      "/console/%2e%2e/http/console.ts",
      "/console/..%5c..%5cpackage.json",
      "/console//etc/passwd",
      "/console/main.js/",
      "/console/constructor",
    ]) {
      // The platform's own fetch would normalise the path first.
      const outgoing = send(address, { path }).end();
      const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
      incoming.resume();
      assert.equal(incoming.statusCode, 404, path);
    }
  });

  test("has one address: a browser is redirected from the one with a trailing slash", async (context) => {
    const address = await open(context);
    const led = await fetch(`${address}/console/`);
    assert.deepEqual([led.status, led.redirected, led.url], [200, true, `${address}/console`]);
  });
});
