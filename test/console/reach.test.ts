/** The console without a mouse, with a screen reader, and with right-to-left text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPortico } from "../../src/index.ts";
import { missing, openPage } from "./chromium.ts";

const token = "sk-general-0123456789";
const long = "word ".repeat(5_000).trim();

test("The console by keyboard", { skip: missing, timeout: 60_000 }, async (context) => {
  const portico = await openPortico({
    gateway: {
      auth: { token },
      http: { port: 0, endpoints: { compat_chat: true, compat_responses: true }, console: true },
      adapters: { echo: { type: "echo" } },
      sessions: { store: "memory:" },
      log: { level: "silent" },
    },
  });
  context.after(() => portico.close());
  for (let turn = 0; turn < 450; turn += 1) await talk("long", turn === 449 ? long : `turn ${turn}`);
  await talk("paste", "word ".repeat(30_000));
  for (let session = 0; session < 60; session += 1) await talk(`session-${session}`, `session ${session}`);
  const page = await openPage(context);
  await page.send("Emulation.setDeviceMetricsOverride", {
    width: 360,
    height: 640,
    deviceScaleFactor: 1,
    mobile: false,
  });
  await page.goto(`${portico.address}/console`);
  await page.type("input[type=password]", token);
  await page.click("button.main");

  async function talk(session: string, content: string): Promise<void> {
    await (await portico.talk({ session, content })).text();
  }

  async function press(key: "Tab" | "Enter", modifiers = 0): Promise<void> {
    const code = { key, code: key, modifiers, windowsVirtualKeyCode: key === "Tab" ? 9 : 13 };
    const text = key === "Enter" ? { text: "\r" } : {};
    await page.send("Input.dispatchKeyEvent", { type: "keyDown", ...code, ...text });
    await page.send("Input.dispatchKeyEvent", { type: "keyUp", ...code });
  }

  async function use(selector: string): Promise<void> {
    await page.until(`document.querySelector(${JSON.stringify(selector)})?.checkVisibility()`);
    await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
    await press("Enter");
  }

  const focused = () => page.evaluate("document.activeElement.textContent") as Promise<string>;

  await context.test("figures fit on one line, and fields have visible borders, on a narrow screen too", async () => {
    await page.until(`document.querySelector(".figures dd") !== null`);
    const lines = await page.evaluate(`{
      const figures = [...document.querySelectorAll(".figures dd")].map(({ firstChild }) => firstChild);
      // As wide as they come.
      figures[3].data = "123,456,789";
      figures[4].data = "≤ 250 ms";
      figures.map((figure) => {
        const range = document.createRange();
        range.selectNode(figure);
        return range.getClientRects().length;
      });
    }`);
    assert.deepEqual(lines, [1, 1, 1, 1, 1, 1]);
    await page.click("#views a", "Sessions");
    await page.until(`document.querySelector("[data-part=owner]") !== null`);
    for (const value of ["light", "dark"]) {
      await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
      const [edge, ground] = (await page.evaluate(
        `[getComputedStyle(document.querySelector("[data-part=owner]")).borderTopColor, getComputedStyle(document.body).backgroundColor]`,
      )) as [string, string];
      assert.ok(toContrast(edge, ground) >= 3, `${value}: ${edge} on ${ground}`);
    }
  });

  await context.test("the focus moves to the first of the sessions that were added to the list", async () => {
    await page.click("#views a", "Sessions");
    await use("[data-part=more]");
    await page.until(`document.querySelectorAll(".rows li").length === 62`);
    assert.equal(await focused(), "session 9");
    // A beginning that is too long for the list is not shown as missing.
    const beginnings = `[...document.querySelectorAll(".rows a")].slice(-2).map(({ textContent }) => textContent)`;
    assert.deepEqual(await page.evaluate(beginnings), ["Too long to preview, or without text", "turn 0"]);
  });

  await context.test("the focus moves to what a button has revealed", async () => {
    await page.click(".rows a", "turn 0");
    await use(".user .text button");
    await page.until(`document.querySelector(".user .text button") === null`);
    assert.equal(await focused(), long);
    await use("[data-part=earlier] button");
    await page.until(`document.activeElement.textContent === "Show 50 earlier turns of 50"`);
    await press("Enter");
    await page.until(`document.activeElement.textContent.startsWith("conv_")`);
  });

  await context.test("no focused element is hidden behind a bar", async () => {
    await page.click("#views a", "Try it");
    for (const words of ["one", "two", "three", "four", "five", "six"]) {
      await page.type("textarea", words);
      await press("Enter");
      await page.until(`[...document.querySelectorAll(".foot")].at(-1)?.innerText.includes("token") ?? false`);
      await page.until(`document.querySelector("[aria-busy=false]") !== null`);
    }
    const shift = 8;
    for (const modifiers of [...Array(12).fill(shift), ...Array(12).fill(0)]) {
      await press("Tab", modifiers);
      const [words, isInSight] = (await page.evaluate(`(() => {
        const { activeElement: focused } = document;
        const { left, top, width, height } = focused.getBoundingClientRect();
        return [focused.textContent, focused.contains(document.elementFromPoint(left + width / 2, top + height / 2))];
      })()`)) as [string, boolean];
      assert.ok(isInSight, `'${words}' is hidden`);
    }
  });

  await context.test("the focus does not move when an answer ends", async () => {
    await page.type("textarea", "SLEEP 300 at last");
    await press("Enter");
    await page.evaluate(`document.querySelector("[data-part=session]").focus()`);
    await page.until(`[...document.querySelectorAll(".assistant")].at(-1).innerText.includes("at last")`);
    await page.until(`document.querySelector("[aria-busy=false]") !== null`);
    assert.equal(await page.evaluate("document.activeElement.dataset.part"), "session");
  });

  await context.test("a refusal is marked as one in words, not by its colour alone", async () => {
    await page.type("textarea", "REFUSE no");
    await press("Enter");
    await page.until(`[...document.querySelectorAll(".assistant")].at(-1).textContent === "assistantrefusalno"`);
  });

  await context.test("text runs in the direction of its script", async () => {
    await page.type("textarea", "مرحبا.");
    await press("Enter");
    await page.until(`[...document.querySelectorAll(".assistant")].at(-1).innerText.includes("مرحبا")`);
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
    assert.equal(isRight, true);
  });
});

/** The contrast of two colours, as defined by WCAG 2. */
function toContrast(...colours: readonly [string, string]): number {
  const [darker = 0, lighter = 0] = colours
    .map((colour) => {
      const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
        const share = Number(part) / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .toSorted((one, other) => one - other);
  return (lighter + 0.05) / (darker + 0.05);
}
