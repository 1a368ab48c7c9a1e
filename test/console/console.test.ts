/** The console in a real browser: signing in, the overview, and a conversation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, tell, tellWell } from "../harness/client.ts";
import { makeFolder, operatorToken, say, token, usage } from "../harness/house.ts";
import { runProgram } from "../harness/program.ts";
import { inBrowser } from "./chromium.ts";
import { shareConsole } from "./page.ts";

const { open, openOwn } = shareConsole();

test("a wrong token is refused in the gateway's words, and not kept", inBrowser, async (context) => {
  const { page, shows, signIn, gateway } = await openOwn(context, {}, "", false);
  await signIn("sk-wrong");
  const { error } = await tell(gateway.address, { on: "chat", say: "hi", token: "sk-wrong" });
  await shows(String(error?.["message"]));
  assert.equal(await page.evaluate("sessionStorage.length + localStorage.length"), 0);
});

test("the general token opens the overview, with each adapter's figures", inBrowser, async (context) => {
  const script = [say("Hello"), [{ type: "usage" as const, usage }]];
  const { page, signIn, gateway } = await openOwn(context, { script }, "", false);
  for (const on of ["chat", "responses"] as const) {
    await tellWell(gateway.address, { on, say: "hi", token: operatorToken });
  }
  await tell(gateway.address, { on: "chat", say: [], token: operatorToken });
  await signIn(operatorToken);
  await page.until(`document.querySelector("h1")?.textContent === "Overview"`);
  await page.until(`document.querySelector("#health").innerText === "Ready"`);
  await page.until(
    `document.querySelector("[data-part=legend]")?.innerText.replace(/\\s+/g, " ").includes("Refused 1")`,
  );
  const figures = String(await page.evaluate(`document.querySelector(".figures").innerText`));
  assert.match(figures, /Tokens read\s+6\s+4 written/);
  const row = `[...document.querySelectorAll("[data-part=adapters] tbody tr > *")].map((each) => each.innerText)`;
  const [name, asked, failed, read, written] = (await page.evaluate(row)) as string[];
  assert.deepEqual([name, asked, failed, read, written], ["model", "2", "0", "6", "4"]);
  assert.equal(await page.evaluate("location.href"), `${gateway.address}/console`);
});

test("a conversation streams, and each answer shows what the model was shown", inBrowser, async (context) => {
  const { page, shows, say: tellModel, gateway } = await openOwn(context, {}, "#/try");
  const words = ["one ", "two ", "three ", "four"];
  gateway.model.script = async function* () {
    for (const word of words) {
      yield say(word);
      const shown = words
        .slice(0, words.indexOf(word) + 1)
        .join("")
        .trim();
      // The next word comes when this one is read.
      await page.until(`[...document.querySelectorAll(".assistant .text")].at(-1)?.textContent.trim() === "${shown}"`);
    }
    yield [{ type: "usage", usage }];
  };
  await tellModel("hello", "history new");
  await tellModel("and again", "history continued");
  await shows("context 3 items");
  await shows("3 → 2 tokens");
  await page.click("summary", "curl");
  await shows(`${gateway.address}/v1/responses`);
  await page.click(".talk li:last-child a", "Open the session");
  await page.until(`document.querySelector("h1")?.textContent.startsWith("conv_")`);
  await shows("and again");
});

test("an answer can be stopped, and a failure is shown in the gateway's words", inBrowser, async (context) => {
  const { page, shows, say: tellModel, gateway } = await openOwn(context, {}, "#/try");
  const stopped = Promise.withResolvers<void>();
  gateway.model.script = async function* (_, signal) {
    signal.addEventListener("abort", () => stopped.resolve());
    yield say("on and on");
    await stopped.promise;
  };
  await page.type("textarea", "hello");
  await page.click("button", "Send");
  await shows("on and on");
  await page.click("button", "Stop");
  await stopped.promise;
  await shows("Stopped.");
  gateway.model.script = async function* () {
    throw new Error("out of order");
  };
  await tellModel("again", "(502 adapter_error)");
});

test("what is said is shown as text, even if it looks like markup", inBrowser, async (context) => {
  const { page, say: tellModel, texts } = await openOwn(context, {}, "#/try");
  const hostile = `<img src=x onerror="window.hacked = true"><script>window.hacked = true</script>`;
  await tellModel(hostile, "history new");
  await page.click(".talk a", "Open the session");
  await page.until(`document.querySelector("h1")?.textContent.startsWith("conv_")`);
  await page.until(`document.querySelectorAll(".talk .text").length === 2`);
  assert.deepEqual(await texts(".talk .text"), [hostile, `re: ${hostile}`]);
  assert.deepEqual(await page.evaluate("[window.hacked, document.images.length, document.scripts.length]"), [
    null,
    0,
    1,
  ]);
});

test("a conversation is kept in other views, and a reloaded page begins another", inBrowser, async (context) => {
  const { page, say: tellModel, visit, shows, count } = await openOwn(context, {}, "#/try");
  const name = "document.querySelector('[data-part=session]').value";
  await tellModel("remember me", "history new");
  await visit("Sessions");
  await page.until(`document.querySelector("h1")?.textContent === "Sessions"`);
  await shows("remember me");
  await visit("Try it");
  await tellModel("do you?", "context 3 items");
  const before = await page.evaluate(name);
  await page.send("Page.reload");
  await page.until(`document.querySelector("[data-part=session]") !== null && ${name} !== ${JSON.stringify(before)}`);
  assert.equal(await count(".talk > li"), 0);
});

test("where only chat completions is on, a conversation uses it", inBrowser, async (context) => {
  const http = { endpoints: { compat_chat: true } };
  const { page, say: tellModel, shows } = await openOwn(context, { http }, "#/try");
  await tellModel("hello", "history new");
  await page.click("summary", "curl");
  await shows("/v1/chat/completions");
});

test("a token for the endpoints opens a conversation, and nothing of the operator's", inBrowser, async (context) => {
  const {
    visit,
    shows,
    signIn,
    say: tellModel,
  } = await openOwn(context, { http: { auth_token: token } }, "#/try", false);
  await signIn(token);
  await tellModel("hello", "history new");
  await visit("Overview");
  await shows("need the general token");
});

test("the general token opens all views, whatever the clients' token is", inBrowser, async (context) => {
  const { visit, shows, say: tellModel } = await openOwn(context, { http: { auth_token: token } });
  await shows("Requests to the endpoints");
  await visit("Try it");
  await tellModel("hello", "history new");
});

test("the link of the first run signs in to all views", inBrowser, async (context) => {
  const program = runProgram(context, makeFolder(context), "start", "--port", "0");
  const address = await program.address();
  const [link = "none"] = /http:\S+\/console#\S+/.exec(await program.said("curl ")) ?? [];
  assert.notEqual(link, "none");
  const { page, shows, visit, say: tellModel } = await open(address, new URL(link).hash, false);
  await shows("Requests to the endpoints");
  assert.ok(!String(await page.evaluate("location.href")).includes(new URL(link).hash.slice(1)));
  await visit("Try it");
  await tellModel("hello", "history new");
  assert.equal((await call(address, "GET", "/console")).status, 200);
});
