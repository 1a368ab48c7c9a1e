/** The adapters of docs/writing-an-adapter.md work exactly as they are on the page. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { createCommand } from "./made.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";

const page = readFileSync(new URL("../../docs/writing-an-adapter.md", import.meta.url), "utf8");
const [, file = ""] = /"type": "module", "path": "([^"]+)"/.exec(page) ?? [];
const [, source = ""] = /```ts\n(.*?)```\n*$/s.exec(page) ?? [];

const noPython = spawnSync("python3", ["--version"]).status === 0 ? false : "no python3 here";

/** Knows one model, and writes its answer in lines that are split anywhere. */
async function startOllama(context: TestContext): Promise<{ readonly url: string; readonly asked: unknown[] }> {
  const asked: unknown[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString("utf8")) as { readonly model: string };
    asked.push(body);
    if (body.model !== "llama") return void response.writeHead(404).end("{}");
    const lines = [
      { message: { role: "assistant", content: "Grüße, " } },
      { message: { role: "assistant", content: "Welt" } },
      {
        message: { role: "assistant", content: "" },
        done: true,
        done_reason: "stop",
        prompt_eval_count: 5,
        eval_count: 2,
      },
    ];
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const cut = bytes.indexOf("ü") + 1;
    response.write(bytes.subarray(0, cut), () => response.end(bytes.subarray(cut)));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  context.after(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

async function start(context: TestContext) {
  const ollama = await startOllama(context);
  const adapter = { type: "module", path: file, options: { url: ollama.url } };
  return { ask: await startWith(context, adapter, file, source), asked: ollama.asked };
}

/** Starts a gateway with one adapter, whose file is beside the configuration. */
async function startWith(context: TestContext, adapter: object, name: string, text: string) {
  const folder = makeFolder(context);
  // As `npm init` leaves a folder.
  writeFileSync(join(folder, "package.json"), `{ "type": "commonjs" }`);
  writeFileSync(join(folder, name), text);
  const gateway = await startGateway(context, { adapters: { mine: adapter } }, folder);
  return (body: object) =>
    fetch(`${gateway.address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "llama", messages: [{ role: "user", content: "Hello" }], ...body }),
    });
}

suite("docs/writing-an-adapter.md", () => {
  test("its program answers", { skip: noPython }, async (context) => {
    const [, program = ""] = /```python\n(.*?)```/s.exec(page) ?? [];
    const ask = await startWith(context, { type: "command", argv: ["python3", "agent.py"] }, "agent.py", program);
    assert.match(await (await ask({})).text(), /"content":"HELLO/);
  });

  test("its smallest module answers", async (context) => {
    const [, smallest = ""] = /```js\n(export default .*?)```/s.exec(page) ?? [];
    const ask = await startWith(context, { type: "module", path: file }, file, smallest);
    assert.match(await (await ask({})).text(), /"content":"You said: Hello"/);
  });

  test("its adapter has fewer than 40 lines", () => {
    const lines = source.trim().split("\n").length;
    assert.ok(lines > 20 && lines < 40, `${lines} lines`);
  });

  test("its adapter answers, whole and streamed", async (context) => {
    const { ask, asked } = await start(context);
    const whole = (await (await ask({})).json()) as {
      readonly choices: readonly { readonly message: { readonly content: string } }[];
      readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
    };
    assert.equal(whole.choices[0]?.message.content, "Grüße, Welt");
    assert.deepEqual([whole.usage.prompt_tokens, whole.usage.completion_tokens], [5, 2]);
    const streamed = await (await ask({ stream: true })).text();
    assert.match(streamed, /Grüße, .*Welt.*\[DONE\]/s);
    const messages = [{ type: "message", role: "user", content: "Hello" }];
    assert.deepEqual(asked[0], { model: "llama", messages });
  });

  test("its adapter reports a model that it does not know", async (context) => {
    const { ask } = await start(context);
    const response = await ask({ model: "gpt" });
    const { error } = (await response.json()) as {
      readonly error: { readonly message: string; readonly code: string };
    };
    assert.equal(response.status, 404);
    assert.deepEqual([error.code, error.message], ["adapter_not_found", "There is no model 'gpt'."]);
  });

  test("every line of its table is accepted from a program", async () => {
    const lines = [...page.matchAll(/^\| `(\{"type":.*?\})` /gm)].map(([, line]) => line ?? "");
    assert.equal(lines.length, 8);
    for (const line of lines) {
      const adapter = createCommand({ argv: ["printf", "%s\n", line], output: "jsonl", input: "none" }, process.env);
      const turn = { id: "resp_1", model: "m", items: [], settings: { tools: [] }, stream: true };
      const answer = adapter.stream(turn, new AbortController().signal)[Symbol.asyncIterator]();
      if (line.includes('"error"'))
        await assert.rejects(answer.next(), { code: "adapter_rate_limit", message: "Busy." });
      else assert.equal((await answer.next()).done, false, line);
      await answer.return?.();
      await adapter.close?.();
    }
  });

  test("its tables name every delta", () => {
    const types = [
      ...readFileSync(new URL("../../src/core/delta.ts", import.meta.url), "utf8").matchAll(/type: "([\w-]+)"/g),
    ];
    for (const [, type] of types) assert.match(page, new RegExp(`^\\| \`${type}\` +\\| `, "m"));
    assert.ok(types.length >= 9);
  });
});
