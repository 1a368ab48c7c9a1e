/** The console of a gateway in a tab of a browser, and what a person does there. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { openGateway, operatorToken, type Options } from "../harness/house.ts";
import { type Page, shareBrowser } from "./chromium.ts";

/** One token for everything. */
export const forAll = { console: true, auth_token: undefined };

/** What tests of a file use: each opens the console of a gateway, its own or any address, signed in or not. */
export function shareConsole() {
  const openTab = shareBrowser();

  async function open(address: string, path = "", signsIn = true) {
    const page = await openTab();
    await page.goto(`${address}/console${path}`);
    const person = { page, ...createPerson(page) };
    if (signsIn) await person.signIn(operatorToken);
    return person;
  }

  return {
    open,
    /** With a gateway of its own; at the end it is seen that the page asked no one else, and was refused nothing. */
    async openOwn(context: TestContext, options: Options = {}, path = "", signsIn = true) {
      const gateway = await openGateway(context, { ...options, http: { ...forAll, ...options.http } });
      const person = await open(gateway.address, path, signsIn);
      context.after(() => {
        const { complaints, requested } = person.page;
        assert.deepEqual(
          requested.filter((url) => !url.startsWith(`${gateway.address}/`) && !/^(data:,|blob:)/.test(url)),
          [],
        );
        assert.deepEqual(
          requested.filter((url) => url.includes(operatorToken)),
          [],
        );
        assert.deepEqual(
          complaints.filter((text) => !text.includes("Failed to load resource")),
          [],
        );
      });
      return { gateway, ...person };
    },
  };
}

function createPerson(page: Page) {
  const shows = (text: string) => page.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
  return {
    shows,
    async signIn(token: string) {
      await page.type("input[type=password]", token);
      await page.click("button.main");
    },
    visit: (view: string) => page.click("#views a", view),
    /** Says something, and waits until the page shows that, and the answer has ended. */
    async say(text: string, until: string) {
      await page.type("textarea", text);
      await page.click("button", "Send");
      await shows(until);
      await page.until(`document.querySelector("[aria-busy=false]") !== null`);
    },
    /** What the page looks for at once when its reader comes back to it. */
    comeBack: () => page.evaluate(`dispatchEvent(new Event("focus"))`),
    count: (selector: string) => page.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`),
    texts: (selector: string) =>
      page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => each.textContent)`),
  };
}
