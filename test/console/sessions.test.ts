/** The sessions in the console: found, read along their threads, exported and deleted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tellWell } from "../harness/client.ts";
import { call, type Gateway, operatorToken, say } from "../harness/house.ts";
import { inBrowser } from "./chromium.ts";
import { shareConsole } from "./page.ts";

const { openOwn } = shareConsole();

/** A turn of a session, of which nobody hears the answer. */
async function talk(gateway: Gateway, session: string, content: string, owner?: string): Promise<void> {
  await (await gateway.talk({ session, content, ...(owner !== undefined && { owner }) })).text();
}

test("a session is shown with its threads, reasoning, calls and images", inBrowser, async (context) => {
  const { page, shows, visit, texts, gateway } = await openOwn(context);
  const tell = (input: string | readonly unknown[], more: object = {}) =>
    tellWell(gateway.address, { on: "responses", say: input, token: operatorToken, more: { user: "ann", ...more } });
  const first = await tell("first");
  gateway.model.script = [
    [{ type: "reasoning", text: "Look it up.", summary: 0 }, ...call("c1", "look", '{"at":"it"}')],
  ];
  await tell("second");
  gateway.model.script = [say("a garden, then")];
  const image = { type: "input_image", image_url: "https://pictures.example/garden.png" };
  await tell([
    { type: "function_call_output", call_id: "c1", output: "a garden" },
    { role: "user", content: [image] },
  ]);
  await tell("a branch", { user: undefined, previous_response_id: first.id });
  await visit("Sessions");
  await page.click(".rows a");
  await page.until(`document.querySelectorAll("[data-part=thread] option").length === 2`);
  await page.evaluate(`{
    const choice = document.querySelector("[data-part=thread]");
    choice.value = [...choice.options].find(({ text }) => !text.includes("a branch")).value;
    choice.dispatchEvent(new Event("change"));
  }`);
  await shows("https://pictures.example/garden.png");
  await shows("a garden, then");
  const [shown = ""] = (await texts(".call")) as string[];
  assert.match(shown, /\{"at":\s*"it"\}.*a garden/s);
  await page.click("details summary", "Reasoning");
  await shows("Look it up.");
});

test("where a turn was deleted, the thread behind it says so", inBrowser, async (context) => {
  const { page, shows, visit, count, gateway } = await openOwn(context);
  const tell = (say: string) =>
    tellWell(gateway.address, { on: "responses", say, token: operatorToken, more: { user: "ann" } });
  const first = await tell("forget this");
  await tell("keep this");
  const headers = { authorization: `Bearer ${operatorToken}` };
  await fetch(`${gateway.address}/v1/responses/${first.id}`, { method: "DELETE", headers });
  await visit("Sessions");
  await page.click(".rows a");
  await shows("A turn before this was deleted.");
  assert.equal(await count(".talk > li"), 1);
});

test("a session is deleted after a confirmation, and exported as a file of JSON Lines", inBrowser, async (context) => {
  const { page, shows, visit, gateway } = await openOwn(context);
  await talk(gateway, "s", "remember me");
  await visit("Sessions");
  await page.click(".rows a", "remember me");
  await page.until(`document.querySelector("h1")?.textContent.startsWith("conv_")`);
  const id = String(await page.evaluate(`document.querySelector("h1").textContent`));
  const lines = (await page.save(`${id}.jsonl`, () => page.click("button", "Export"))).trim().split("\n");
  assert.ok(lines.length > 2 && lines.map((line) => JSON.parse(line)).some((line) => line.id === id));
  assert.ok(lines.some((line) => line.includes("remember me")));
  await page.click("button.danger", "Delete…");
  await page.until(`document.querySelector("dialog").open`);
  await page.click("dialog button", "Keep it");
  await page.click("button.danger", "Delete…");
  await page.click("dialog button", "Delete");
  await shows("No sessions are stored yet.");
  const next = await gateway.talk({ session: "s", content: "who am I?" });
  assert.deepEqual([next.about.history, await next.text()], ["new", "re: who am I?"]);
});

test("sessions are listed in pages, and found by owner, user or header", inBrowser, async (context) => {
  const { page, shows, visit, count, gateway } = await openOwn(context);
  for (let session = 0; session < 60; session++) await talk(gateway, `many-${session}`, `words ${session}`);
  await talk(gateway, "theirs", "of Bob", "bob");
  await tellWell(gateway.address, { on: "chat", say: "I am Ann", token: operatorToken, more: { user: "ann" } });
  await visit("Sessions");
  await page.until(`document.querySelectorAll(".rows li").length === 50`);
  await talk(gateway, "many-3", "again");
  await page.click("[data-part=more]");
  await page.until(`document.querySelector("[data-part=more]").hidden`);
  const hrefs = (await page.evaluate(`[...document.querySelectorAll(".rows a")].map(({ href }) => href)`)) as string[];
  assert.ok(hrefs.length > 60, `${hrefs.length} are listed`);
  assert.equal(new Set(hrefs).size, hrefs.length);

  async function find(owner: string, hint: string, found: string): Promise<void> {
    await page.type("[data-part=owner]", owner);
    await page.type("[data-part=hint]", hint);
    await page.click("[data-part=filter] button");
    await page.until(`[...document.querySelectorAll(".rows a")].map((row) => row.textContent).join() === "${found}"`);
  }
  await find("", "ann", "I am Ann");
  await find("bob", "", "of Bob");
  await find("default", "header:X-Session-Id=many-7", "words 7");
  await find("nobody", "ann", "");
  await shows("nobody");
  assert.equal(await count(".rows a"), 0);
});

test("a long session shows its newest turns, and earlier ones on request", inBrowser, async (context) => {
  const { page, visit, count, texts, gateway } = await openOwn(context);
  for (let turn = 0; turn < 210; turn++) await talk(gateway, "long", `turn ${turn}.`);
  await visit("Sessions");
  await page.click(".rows a");
  await page.until(`document.querySelectorAll(".talk > li").length > 0`);
  const shown = Number(await count(".talk > li"));
  assert.ok(shown < 210, `${shown} are shown at once`);
  assert.equal(((await texts(".talk .text")) as string[]).at(-1), "re: turn 209.");
  await page.click("button", "earlier");
  await page.until(`document.querySelectorAll(".talk > li").length > ${shown}`);
  assert.notEqual(await page.evaluate("document.activeElement.tagName"), "BODY");
});
