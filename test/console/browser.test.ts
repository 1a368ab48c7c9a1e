/** The console in a real browser, against a real gateway. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { openPortico, type PorticoSettings } from "../../src/index.ts";
import { findFreePort } from "../gateway.ts";
import { missing, openPage } from "./chromium.ts";

const general = "sk-general-0123456789";
const forEndpoints = "sk-endpoints-0123456789";

function toSettings(
  port: number,
  endpoints = { compat_chat: true, compat_responses: true },
  token = general,
): PorticoSettings {
  return {
    gateway: {
      auth: { token },
      http: { port, auth_token: forEndpoints, endpoints, console: true },
      adapters: { echo: { type: "echo", delay_ms: 10 } },
      sessions: { store: "memory:" },
      log: { level: "silent" },
    },
  };
}

test("The console in a browser", { skip: missing, timeout: 60_000 }, async (context: TestContext) => {
  const port = await findFreePort();
  const address = `http://127.0.0.1:${port}`;
  let portico = await openPortico(toSettings(port));
  context.after(() => portico.close());
  const page = await openPage(context);
  const shows = (text: string) => page.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const signIn = async (token: string) => {
    await page.type("input[type=password]", token);
    await page.click("button.main");
  };
  const say = async (text: string) => {
    await page.type("textarea", text);
    await page.click("button", "Send");
  };
  const ask = async (path: string, body: object, session?: string): Promise<Record<string, unknown>> => {
    const response = await fetch(address + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${forEndpoints}`,
        "content-type": "application/json",
        ...(session !== undefined && { "x-session-id": session }),
      },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 200);
    return (await response.json()) as Record<string, unknown>;
  };

  await context.test("a wrong token is refused in the gateway's words", async () => {
    await page.goto(`${address}/console`);
    await signIn("sk-wrong");
    await shows("The token is not valid. Check it against the gateway's configuration.");
    assert.equal(await page.evaluate("sessionStorage.length"), 0);
  });

  await context.test("the general token opens the overview, and never appears in an address", async () => {
    await signIn(general);
    await page.until(`document.querySelector("h1")?.textContent === "Overview"`);
    await shows("Requests to the endpoints");
    await shows("Accepts turns");
    await shows("Uptime");
    await page.until(`document.querySelector("#health").innerText === "Ready"`);
    assert.equal(await page.evaluate("location.href"), `${address}/console`);
  });

  await context.test("a separate token for the endpoints is asked for", async () => {
    await page.click("#views a", "Try it");
    await shows("The general token does not open this gateway's endpoints, because");
    await signIn(general);
    await shows("This token is valid, but it opens only the operator routes.");
    await signIn(forEndpoints);
    await page.until(`document.querySelector("select")?.value === "echo"`);
  });

  await context.test("a conversation streams, and each answer shows what the model received", async () => {
    const words = "one two three four five six seven eight nine ten eleven twelve";
    await page.evaluate(`{
      window.seen = new Set();
      const look = () => window.seen.add(document.querySelector(".assistant .text")?.textContent ?? "");
      new MutationObserver(look).observe(document.querySelector(".talk"), { subtree: true, childList: true, characterData: true });
    }`);
    await say(words);
    await page.until(
      `window.seen.has(${JSON.stringify(words)}) && document.querySelector("[aria-busy=false]") !== null`,
    );
    assert.ok(Number(await page.evaluate("window.seen.size")) > 3, "it came all at once");
    await shows("history new");
    await say("and thirteen");
    await shows("history continued");
    await shows("context 3 items");
    await shows("26 → 2 tokens");
    await page.click("summary", "curl");
    await shows(`-d '{"model":"echo","input":"${words}","stream":true}'`);
  });

  await context.test("the overview shows tokens and times of turns, and how often the adapter was asked", async () => {
    await page.click("#views a", "Overview");
    await page.until(`document.querySelector(".figures")?.innerText.includes("38")`);
    const figures = await page.evaluate(
      `Object.fromEntries([...document.querySelectorAll(".figures div")].map((each) => each.innerText.split("\\n").filter(Boolean)).map(([name, ...rest]) => [name, rest.join(" ")]))`,
    );
    const { Uptime: up, ...others } = figures as Record<string, string>;
    assert.match(up ?? "", /^\d+ (s|min) since \w+ \d+/);
    assert.equal(others["Turns running"], "0 0 waiting");
    assert.equal(others["Tokens read"], "38 14 written");
    const bounds = /^≤ [\d.]+ m?s p95 ≤ [\d.]+ m?s$/;
    assert.match(others["First byte of a stream, p50"] ?? "", bounds);
    assert.match(others["Whole turn, p50"] ?? "", bounds);
    const row = `[...document.querySelectorAll("[data-part=adapters] tbody tr > *")].map((each) => each.innerText)`;
    const [name, asked, failed, read, written, mean, breaker] = (await page.evaluate(row)) as string[];
    assert.deepEqual([name, asked, failed, read, written, breaker], ["echo", "2", "0", "38", "14", "Accepts turns"]);
    assert.match(mean ?? "", /^[\d.]+ m?s$/);
    await page.click("#views a", "Try it");
  });

  await context.test("an answer can be stopped, and a failure is shown in the gateway's words", async () => {
    await say("REPEAT 1000 on and on");
    await page.until(
      `document.querySelector(".talk li:last-child .assistant .text")?.textContent.startsWith("on and")`,
    );
    await page.click("button", "Stop");
    await shows("Stopped. The gateway stores nothing of this turn.");
    await say("FAIL after 2 one two three");
    await shows("The echo adapter failed, because the user text told it to.");
    await say("FAIL before");
    await shows("(502 adapter_error)");
  });

  await context.test(
    "the overview shows how turns ended, and the page itself has caused no failed requests",
    async () => {
      await page.click("#views a", "Overview");
      await page.until(`document.querySelector("[data-part=legend]")?.innerText.includes("Failed")`);
      const ends = (await page.evaluate(`document.querySelector("[data-part=legend]").innerText`)) as string;
      assert.deepEqual(
        ends.match(/\D+\d+/g)?.map((end) => end.trim().split(/\s+(?=\d)/)),
        [
          ["Answered", "4"],
          ["Refused", "2"],
          ["Failed", "2"],
          ["Caller left", "1"],
        ],
      );
      const paths = String(await page.evaluate(`document.querySelector("[data-part=paths]").innerText`));
      assert.doesNotMatch(paths, /:id/);
      await page.click("#views a", "Try it");
    },
  );

  const hostile = `<img src=x onerror="window.hacked = true"><script>window.hacked = true</script>`;

  await context.test("messages are shown as text only, even if they look like markup", async () => {
    await say(hostile);
    await page.until(
      `document.querySelector(".talk li:last-child .assistant .text")?.textContent.includes("</script>")`,
    );
    await page.click(".talk li:last-child a", "Open the session");
    await page.until(`document.querySelector("h1")?.textContent.startsWith("conv_")`);
    await page.until(`document.querySelectorAll(".session .talk > li, .sessions .talk > li").length === 3`);
    const texts = await page.evaluate(
      `[...document.querySelectorAll(".said .text")].slice(-2).map((each) => each.textContent)`,
    );
    assert.deepEqual(texts, [hostile, hostile]);
    assert.deepEqual(await page.evaluate("[window.hacked, document.images.length, document.scripts.length]"), [
      null,
      0,
      1,
    ]);
  });

  await context.test("a conversation is kept while its reader visits other views", async () => {
    await page.click("#views a", "Try it");
    await shows("context 3 items");
    await page.click("#views a", "Sessions");
    await shows("default · 3 turns");
    await shows("one two three four");
  });

  await context.test("an answer without what was said above says so", async () => {
    await page.click("#views a", "Try it");
    await page.click("button", "New conversation");
    const name = "document.querySelector('[data-part=session]').value";
    const shown = ["user", "assistant", "user"].map((role) => ({ role, content: "Hi" }));
    await ask("/v1/responses", { model: "echo", input: shown }, String(await page.evaluate(name)));
    const forgotten = "The model was not shown what was said above";
    await say("first");
    await shows("history new");
    await page.until(`document.querySelector("[aria-busy=false]") !== null`);
    assert.equal(await page.evaluate(`document.querySelector(".talk").innerText.includes("${forgotten}")`), false);
    await say("second");
    await shows(forgotten);
    const id = String(await page.evaluate(`document.querySelector(".talk a").href.split("/").at(-1)`));
    const headers = { authorization: `Bearer ${general}` };
    assert.equal((await fetch(`${address}/operator/sessions/${id}`, { method: "DELETE", headers })).status, 200);
  });

  await context.test("a reloaded page, which shows no conversation, begins another", async () => {
    const name = "document.querySelector('[data-part=session]').value";
    const before = await page.evaluate(name);
    await page.send("Page.reload");
    await page.until(`document.querySelector("[data-part=session]") !== null && ${name} !== ${JSON.stringify(before)}`);
    assert.equal(await page.evaluate(`document.querySelector(".talk").childElementCount`), 0);
    await page.click("#views a", "Sessions");
    await shows("default · 3 turns");
  });

  await context.test("a session is deleted after a confirmation", async () => {
    await page.click(".rows a");
    await page.click("button.danger", "Delete…");
    await page.until(`document.querySelector("dialog").open`);
    await page.click("dialog button", "Keep it");
    await page.click("button.danger", "Delete…");
    await page.click("dialog button", "Delete");
    await shows("No sessions are stored yet.");
  });

  await context.test("a session's threads, its reasoning, its calls and their outputs are shown", async () => {
    const tools = [{ type: "function", name: "look", parameters: { type: "object" } }];
    const first = await ask("/v1/responses", { model: "echo", input: "first", reasoning: { effort: "low" } }, "tree");
    const called = await ask("/v1/responses", { model: "echo", tools, input: `CALL look {"at": "it"}` }, "tree");
    const call = (called["output"] as { type: string; call_id?: string }[]).find(
      ({ type }) => type === "function_call",
    );
    const output = { type: "function_call_output", call_id: call?.call_id, output: "a garden" };
    const image = { type: "input_image", image_url: "https://pictures.example/garden.png" };
    await ask("/v1/responses", { model: "echo", tools, input: [output, { role: "user", content: [image] }] }, "tree");
    await ask("/v1/responses", { model: "echo", input: "a branch", previous_response_id: first["id"] });
    await page.click("#views a", "Overview");
    await page.click("#views a", "Sessions");
    await page.click(".rows a");
    await page.until(`document.querySelectorAll("[data-part=thread] option").length === 2`);
    await page.evaluate(`{
      const choice = document.querySelector("[data-part=thread]");
      choice.value = [...choice.options].find(({ text }) => !text.includes("a branch")).value;
      choice.dispatchEvent(new Event("change"));
    }`);
    await shows("Image: https://pictures.example/garden.png");
    assert.equal(
      await page.evaluate(`document.querySelector(".call").innerText.replace(/\\s+/g, " ")`),
      `{"at": "it"} a garden`,
    );
    assert.equal(await page.evaluate(`document.querySelector("details.fold").innerText.trim()`), "Reasoning");
    assert.equal(await page.evaluate(`document.querySelectorAll(".talk > li").length`), 3);
  });

  await context.test("a session of thousands of turns shows the newest ones, and earlier ones on request", async () => {
    await importLong(address, 3_000);
    await page.evaluate(`location.hash = "#/sessions/conv_long"`);
    await shows("Show 200 earlier turns of 2,800");
    assert.equal(await page.evaluate(`document.querySelectorAll(".talk > li").length`), 200);
    await page.click("button", "earlier turns");
    await shows("of 2,600");
    assert.equal(await page.evaluate(`document.querySelectorAll(".talk > li").length`), 400);
  });

  await context.test("a session is exported as a file of JSON Lines", async () => {
    const text = await page.save("conv_long.jsonl", () => page.click("button", "Export"));
    assert.match(text, /^{"type":"portico",.*\n{"type":"session","id":"conv_long"/);
    assert.match(text, /\n{"type":"end"}\n$/);
  });

  await context.test(
    "sessions are listed in pages, each once, and filtered by owner when the filter is applied",
    async () => {
      const names = Array.from({ length: 115 }, (_, index) => `many-${index}`);
      for (const name of names) await ask("/v1/responses", { model: "echo", input: name }, name);
      await page.click("#views a", "Sessions");
      const rows = `document.querySelectorAll(".rows li")`;
      await page.until(`${rows}.length === 50`);
      await page.evaluate(
        `for (let times = 0; times < 3; times += 1) document.querySelector("[data-part=more]").click()`,
      );
      await page.until(`${rows}.length === 100`);
      // Text that is only typed does not filter yet.
      await page.type("[data-part=owner]", "nobody");
      await page.click("[data-part=more]");
      await page.until(`document.querySelector("[data-part=more]").hidden`);
      const [listed, different] = (await page.evaluate(
        `[${rows}.length, new Set([...${rows}].map((row) => row.querySelector("a").href)).size]`,
      )) as number[];
      assert.ok(listed! >= names.length);
      assert.equal(different, listed);
      await page.click("[data-part=filter] button");
      await shows("The owner 'nobody' has no sessions.");
    },
  );

  await context.test("a session is found by its user, or by the header that names it", async () => {
    await ask("/v1/responses", { model: "echo", input: "I am Ann", user: "ann" });
    const find = async (owner: string, hint: string) => {
      await page.type("[data-part=owner]", owner);
      await page.type("[data-part=hint]", hint);
      await page.click("[data-part=filter] button");
    };
    const rows = "[...document.querySelectorAll('.rows a')].map(({ textContent }) => textContent).join()";
    await find("", "ann");
    await page.until(`${rows} === "I am Ann"`);
    await find("default", "header:X-Session-Id=many-7");
    await page.until(`${rows} === "many-7"`);
    await find("nobody", "ann");
    await shows("There is no session under 'ann' of the owner 'nobody'.");
  });

  await context.test("a session that is used while the list is read makes no session appear twice", async () => {
    await page.click("#views a", "Overview");
    await page.click("#views a", "Sessions");
    const rows = `document.querySelectorAll(".rows a")`;
    await page.until(`${rows}.length === 50`);
    // The first time one session of the next page is new, the second time none.
    for (let times = 0; times < 2; times += 1) {
      const [before, last] = (await page.evaluate(`[${rows}.length, [...${rows}].at(-1).textContent]`)) as [
        number,
        string,
      ];
      await ask("/v1/responses", { model: "echo", input: "again" }, last);
      await page.click("[data-part=more]");
      await page.until(`${rows}.length > ${before}`);
      assert.equal(await page.evaluate(`${rows}.length - new Set([...${rows}].map(({ href }) => href)).size`), 0);
    }
  });

  await context.test("a gateway that stops is reported, and the page continues when it is back", async () => {
    await portico.close();
    await page.evaluate(`dispatchEvent(new Event("focus"))`);
    await shows("The gateway does not answer. This page recovers by itself as soon as it does.");
    await page.click("#views a", "Overview");
    portico = await openPortico(toSettings(port, { compat_chat: true, compat_responses: false }));
    await page.evaluate(`dispatchEvent(new Event("focus"))`);
    await shows("Accepts turns");
    await page.until(`document.querySelector("#gone").hidden`);
  });

  await context.test("a revoked token leads back to the sign-in, and is not used again", async () => {
    const chatOnly = { compat_chat: true, compat_responses: false };
    await portico.reload(toSettings(port, chatOnly, "sk-another-0123456789"));
    await page.evaluate(`dispatchEvent(new Event("focus"))`);
    await shows("The token is not valid.");
    await shows("The overview and the sessions need the general token");
    assert.equal(await page.evaluate(`sessionStorage.getItem("portico operator")`), null);
  });

  await context.test("a conversation uses chat completions where only that endpoint is enabled", async () => {
    await page.click("#sign-out");
    await signIn(forEndpoints);
    await page.until(`document.querySelector("select")?.value === "echo"`);
    await say("hello there");
    await shows("history new");
    await shows("2 → 2 tokens");
    await page.click("summary", "curl");
    await shows("/v1/chat/completions");
    await page.click("#views a", "Overview");
    await shows("The overview and the sessions need the general token");
  });

  assert.deepEqual(
    page.complaints.filter((text) => !/Failed to load resource/.test(text)),
    [],
  );
});

/** Imports a session with one thread of so many turns. */
async function importLong(address: string, length: number): Promise<void> {
  const headers = { authorization: `Bearer ${general}`, "content-type": "application/x-ndjson" };
  const archive = await (await fetch(`${address}/operator/export`, { headers })).text();
  // Turns older than the retention of the store could be deleted at any time.
  const at = new Date().toISOString();
  const turns = Array.from({ length }, (_, index) => ({
    type: "turn",
    id: `resp_long${index}`,
    owner: "default",
    session: "conv_long",
    ...(index > 0 && { parent: `resp_long${index - 1}` }),
    createdAt: at,
    model: "echo",
    input: [{ type: "message", role: "user", content: `Question ${index}` }],
    output: [{ type: "message", role: "assistant", content: `Answer ${index}` }],
    status: "completed",
  }));
  const tip = `resp_long${length - 1}`;
  const session = { type: "session", id: "conv_long", owner: "default", tip, resends: false, metadata: {} };
  const lines = [
    JSON.parse(archive.split("\n")[0] ?? ""),
    { ...session, createdAt: at, updatedAt: at },
    ...turns,
    { type: "end" },
  ];
  const body = lines.map((line) => JSON.stringify(line)).join("\n");
  const taken = await fetch(`${address}/operator/import`, { method: "POST", headers, body });
  assert.equal(taken.status, 200, await taken.text());
}
