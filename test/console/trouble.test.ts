/** The console in a browser, with failures between it and the gateway. */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { openPortico, type PorticoSettings } from "../../src/index.ts";
import { findFreePort } from "../gateway.ts";
import { missing, openPage } from "./chromium.ts";

const general = "sk-general-0123456789";

function toSettings(port: number, token = general): PorticoSettings {
  return {
    gateway: {
      auth: { token },
      http: { port, endpoints: { compat_chat: true, compat_responses: true }, console: true },
      adapters: { echo: { type: "echo" } },
      sessions: { store: "memory:" },
      log: { level: "silent" },
    },
  };
}

/** A gateway, and a page for its console. */
async function openConsole(context: TestContext) {
  const port = await findFreePort();
  const portico = await openPortico(toSettings(port));
  context.after(() => portico.close());
  const page = await openPage(context);
  const shows = (text: string) => page.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const signIn = async (token: string) => {
    await page.type("input[type=password]", token);
    await page.click("button.main");
  };
  return { port, portico, page, shows, signIn };
}

test(
  "a conversation continues with another token after its own was revoked, and loses nothing",
  { skip: missing, timeout: 60_000 },
  async (context) => {
    const { port, portico, page, shows, signIn } = await openConsole(context);
    const say = async (text: string) => {
      await page.type("textarea", text);
      await page.click("button", "Send");
    };
    await page.goto(`http://127.0.0.1:${port}/console#/try`);
    await signIn(general);
    await say("with the first");
    await shows("history new");
    await page.click("#views a", "Overview");
    await shows("Accepts turns");
    await page.click("#views a", "Try it");

    for (const [index, token] of ["sk-second-0123456789", "sk-third-01234567890"].entries()) {
      await portico.reload(toSettings(port, token));
      await say(`too late ${index}`);
      await shows("The token is not valid.");
      await signIn(token);
      await shows(`too late ${index}`);
      await say(`with another ${index}`);
      await shows(`context ${index * 2 + 3} items`);
    }
    assert.equal(await page.evaluate(`document.querySelectorAll(".talk > li").length`), 5);
  },
);

test(
  "a gateway behind a proxy that answers 502 is reported as gone, and the page continues when it is back",
  { skip: missing, timeout: 60_000 },
  async (context) => {
    const { port, page, shows, signIn } = await openConsole(context);
    const proxy = await openProxy(port, context);
    const look = () => page.evaluate(`dispatchEvent(new Event("focus"))`);
    const gone = "The gateway does not answer. This page recovers by itself as soon as it does.";
    await page.goto(`${proxy.address}/console`);
    await signIn(general);
    await shows("Accepts turns");
    proxy.answer(502, "<h1>502 Bad Gateway</h1>");
    await look();
    await shows(gone);
    await page.click("#views a", "Sessions");
    await page.until(`document.querySelector("h1")?.textContent === "Sessions"`);
    proxy.passOn();
    await look();
    await shows("No sessions are stored yet.");
    assert.equal(await page.evaluate(`document.querySelector("main").innerText.includes("502")`), false);
  },
);

test(
  "a temporary problem is shown as long as it lasts, and stays in sight",
  { skip: missing, timeout: 60_000 },
  async (context) => {
    const { port, page, shows, signIn } = await openConsole(context);
    const proxy = await openProxy(port, context);
    const look = () => page.evaluate(`dispatchEvent(new Event("focus"))`);
    const narrow = { width: 360, height: 500, deviceScaleFactor: 1, mobile: false };
    await page.send("Emulation.setDeviceMetricsOverride", narrow);
    await page.goto(`${proxy.address}/console`);
    await signIn(general);
    await shows("Accepts turns");
    proxy.answer(503, JSON.stringify({ error: { message: "There is too much to do.", code: "overloaded" } }));
    await look();
    await page.until(`document.querySelector("#trouble").innerText === "There is too much to do."`);
    const isInSight = await page.evaluate(`(() => {
      scrollTo({ top: document.documentElement.scrollHeight });
      const { left, top } = document.querySelector("#trouble").getBoundingClientRect();
      return scrollY > 100 && document.elementFromPoint(left + 10, top + 10)?.id === "trouble";
    })()`);
    assert.equal(isInSight, true);
    proxy.passOn();
    await look();
    await page.until(`document.querySelector("#trouble").hidden`);
  },
);

test("the list stays as it is while the gateway is gone", { skip: missing, timeout: 60_000 }, async (context) => {
  const { port, portico, page, shows, signIn } = await openConsole(context);
  const proxy = await openProxy(port, context);
  const look = () => page.evaluate(`dispatchEvent(new Event("focus"))`);
  const rows = `document.querySelectorAll(".rows li").length`;
  for (let session = 0; session < 110; session += 1)
    await (await portico.talk({ session: `session-${session}`, content: `session ${session}` })).text();
  await page.goto(`${proxy.address}/console#/sessions`);
  await signIn(general);
  await page.click("[data-part=more]");
  await page.until(`${rows} === 100`);
  proxy.answer(502, "");
  await page.click("[data-part=more]");
  await look();
  await shows("The gateway does not answer.");
  proxy.passOn();
  await look();
  await page.until(`document.querySelector("#gone").hidden`);
  await page.until(`${rows} === 100`);
  await page.click("[data-part=more]");
  await page.until(`${rows} === 110`);
});

/** Forwards between the page and the gateway, or answers in its place. */
async function openProxy(port: number, context: TestContext) {
  let own: { readonly status: number; readonly text: string } | undefined;
  const server = createServer((asked, answer) => {
    if (own !== undefined) return void answer.writeHead(own.status).end(own.text);
    const { method, url, headers } = asked;
    const passed = request({ port, host: "127.0.0.1", method, path: url, headers }, (incoming) => {
      answer.writeHead(incoming.statusCode ?? 0, incoming.headers);
      incoming.pipe(answer);
    });
    asked.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer: (status: number, text: string) => void (own = { status, text }),
    passOn: () => void (own = undefined),
  };
}
