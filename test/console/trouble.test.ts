/** The console in a browser, where something is wrong on the way to the gateway. */
import assert from "node:assert/strict";
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

/** A gateway, and a page of it at this address where somebody has signed in. */
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
  "a conversation goes on with another token after its own was taken away, and loses nothing",
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
    await shows("Takes turns");
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
