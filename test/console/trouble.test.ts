/** The console with trouble between it and the gateway, and for those who use no mouse or read from right to left. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { findFreePort, makeFolder, openGateway, operatorToken, say } from "../harness/house.ts";
import { inBrowser } from "./chromium.ts";
import { forAll, shareConsole } from "./page.ts";

const { open, openOwn } = shareConsole();

test("a gateway that stops is reported, and the page goes on when it is back", inBrowser, async (context) => {
  const options = { folder: makeFolder(context), http: { ...forAll, port: await findFreePort() } };
  const { gateway, page, shows, comeBack, say: tellModel } = await openOwn(context, options, "#/try");
  await tellModel("before", "history new");
  await gateway.close();
  await comeBack();
  await shows("The gateway does not answer.");
  await openGateway(context, options);
  await comeBack();
  await page.until(`document.querySelector("#gone").hidden`);
  await tellModel("after", "context 3 items");
});

test("a revoked token leads back to the sign-in, and nothing said is lost", inBrowser, async (context) => {
  const { gateway, page, shows, signIn, say: tellModel, count } = await openOwn(context, {}, "#/try");
  await tellModel("with the first", "history new");
  const auth = { token: "sk-other-0123456789abcdef" };
  const { settings } = gateway;
  await gateway.reload({ gateway: { ...settings.gateway, auth } });
  await page.type("textarea", "too late");
  await page.click("button", "Send");
  await page.until(`document.querySelector("input[type=password]") !== null`);
  assert.equal(await page.evaluate(`JSON.stringify(sessionStorage).includes("${operatorToken}")`), false);
  await signIn(auth.token);
  await shows("too late");
  await tellModel("with the other", "context 3 items");
  assert.equal(await count(".talk > li"), 3);
});

test("a proxy's 502 is told as a gateway that is gone, as long as it lasts", inBrowser, async (context) => {
  const { address: behind } = await openGateway(context, { http: forAll });
  const proxy = await openProxy(context, Number(new URL(behind).port));
  const { page, shows, comeBack, visit } = await open(proxy.address);
  await shows("Requests to the endpoints");
  proxy.answer(502, "<h1>502 Bad Gateway</h1>");
  await comeBack();
  await shows("The gateway does not answer.");
  proxy.passOn();
  await comeBack();
  await page.until(`document.querySelector("#gone").hidden`);
  proxy.answer(503, JSON.stringify({ error: { message: "There is too much to do.", code: "overloaded" } }));
  await comeBack();
  await shows("There is too much to do.");
  proxy.passOn();
  await comeBack();
  await page.until(`!document.body.innerText.includes("There is too much to do.")`);
  await visit("Sessions");
  await shows("No sessions are stored yet.");
});

/** Forwards between the page and the gateway, or answers in its place. */
async function openProxy(context: TestContext, port: number) {
  let own: { readonly status: number; readonly text: string } | undefined;
  const server = createServer((asked, answer) => {
    if (own !== undefined) return void answer.writeHead(own.status).end(own.text);
    const { method, url, headers } = asked;
    const passed = request({ port, host: "127.0.0.1", method, path: url, headers }, (incoming) => {
      answer.writeHead(incoming.statusCode ?? 0, incoming.headers);
      incoming.pipe(answer);
    });
    asked.pipe(passed);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
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

test("by keyboard every control is reached, and seen while it has the focus", inBrowser, async (context) => {
  const { page, shows, gateway } = await openOwn(context, {}, "#/try");
  await page.send("Emulation.setDeviceMetricsOverride", {
    width: 360,
    height: 640,
    deviceScaleFactor: 1,
    mobile: false,
  });

  async function press(key: "Tab" | "Enter", modifiers = 0): Promise<void> {
    const code = { key, code: key, modifiers, windowsVirtualKeyCode: key === "Tab" ? 9 : 13 };
    const text = key === "Enter" ? { text: "\r" } : {};
    await page.send("Input.dispatchKeyEvent", { type: "keyDown", ...code, ...text });
    await page.send("Input.dispatchKeyEvent", { type: "keyUp", ...code });
  }
  gateway.model.script = [say("مرحبا.")];
  for (const words of ["one", "two", "three", "four"]) {
    await page.type("textarea", words);
    await press("Enter");
    await page.until(`[...document.querySelectorAll(".user .text")].at(-1)?.textContent === "${words}"`);
    await page.until(`document.querySelector("[aria-busy=false]") !== null`);
  }
  await shows("مرحبا.");
  const shift = 8;
  const reached = new Set<string>();
  for (const modifiers of [...Array(14).fill(shift), ...Array(18).fill(0)]) {
    await press("Tab", modifiers);
    const [words, isInSight] = (await page.evaluate(`(() => {
      const { activeElement: focused } = document;
      const { left, top, width, height } = focused.getBoundingClientRect();
      const onTop = document.elementFromPoint(left + width / 2, top + height / 2);
      return [focused.textContent, focused === document.body || focused.contains(onTop)];
    })()`)) as [string, boolean];
    assert.ok(isInSight, `'${words}' is hidden`);
    reached.add(words);
  }
  for (const control of ["Send", "New conversation", "Open the session"]) assert.ok(reached.has(control), control);
  const isRight = await page.evaluate(`(() => {
    const { firstChild: text } = [...document.querySelectorAll(".assistant .text")].at(-1);
    const placeOf = (start) => {
      const range = document.createRange();
      range.setStart(text, start);
      range.setEnd(text, start + 1);
      return range.getBoundingClientRect().left;
    };
    return placeOf(text.length - 1) < placeOf(0);
  })()`);
  assert.equal(isRight, true, "text runs in the direction of its script");
});
