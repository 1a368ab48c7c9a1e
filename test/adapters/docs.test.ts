/** The examples of docs/writing-an-adapter.md work exactly as they are on the page, and docs/adapters.md's recipes start. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tell, tellWell } from "../harness/client.ts";
import { endAfter, makeFolder, openGateway, openPortico, toSettings } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { startUpstream, type Script } from "../harness/upstream.ts";
import { byName, share } from "./scene.ts";

const read = (name: string) => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8");
const writing = read("writing-an-adapter");
const python = need("python3");
const blockOf = (pattern: RegExp) => pattern.exec(writing)?.[1] ?? assert.fail(`${pattern} is not on the page`);
const lines = [...writing.matchAll(/^\| `(\{"type":.*?\})` /gm)].map(([, line]) => line ?? "");

/** Knows one model, and writes its answer in lines that are split anywhere. */
const ollama: Script = ({ json }, response) => {
  if ((json as { model: string }).model !== "complete") return void response.writeHead(404).end("{}");
  const said = [
    { message: { content: "Grüße, " } },
    { message: { content: "Welt" } },
    { message: { content: "" }, done: true, done_reason: "length", prompt_eval_count: 5, eval_count: 2 },
  ];
  const bytes = Buffer.from(said.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const cut = bytes.indexOf("ü") + 1;
  response.write(bytes.subarray(0, cut), () => response.end(bytes.subarray(cut)));
};

const open = share(async (scope) => {
  const server = await startUpstream(ollama);
  endAfter(scope, () => server.close());
  const folder = makeFolder(scope);
  // As `npm init` leaves a folder.
  writeFileSync(join(folder, "package.json"), `{ "type": "commonjs" }`);
  writeFileSync(join(folder, "agent.py"), blockOf(/```python\n(.*?)```/s));
  writeFileSync(join(folder, "smallest.mts"), blockOf(/```js\n(export default .*?)```/s));
  writeFileSync(join(folder, "complete.mts"), blockOf(/```ts\n([^`]*?export default .*?)```\n*$/s));
  const complete = { type: "module", path: "complete.mts", options: { url: server.url } };
  const printing = { type: "command", output: "jsonl", input: "none", retries: 0 };
  const adapters = {
    ...(python.skip === false && { program: { type: "command", argv: ["python3", "agent.py"], output: "jsonl" } }),
    smallest: { type: "module", path: "smallest.mts" },
    complete,
    unknown: complete,
    ...Object.fromEntries(lines.map((line) => [line, { ...printing, argv: ["printf", "%s\n", line] }])),
  };
  const gateway = { adapters, ...byName(Object.keys(adapters)) };
  return { server, ...(await openGateway(scope, { folder, gateway, env: { PATH: process.env["PATH"] } })) };
});

test("the program on the page answers in capitals", { skip: python.skip }, async () => {
  const { address } = await open();
  const { text } = await tellWell(address, { on: "chat", say: "Hello there", more: { model: "program" } });
  assert.equal(text, "HELLO THERE ");
});

test("the smallest module on the page answers", async () => {
  const { address } = await open();
  const { text } = await tellWell(address, { on: "chat", say: "Hello", more: { model: "smallest" } });
  assert.equal(text, "You said: Hello");
});

test("the complete module on the page answers, and reports a model that it does not know", async () => {
  const { address, server } = await open();
  const more = { model: "complete", instructions: "Rhyme." };
  for (const stream of [false, true]) {
    const { text, raw } = await tellWell(address, { on: "responses", say: "Hello", stream, more });
    assert.equal(text, "Grüße, Welt");
    assert.match(raw, /"max_output_tokens"/);
    assert.match(raw, /"total_tokens":7/);
  }
  const asked = server.received.at(-1)?.json as { readonly messages: readonly { role: string; content: string }[] };
  assert.equal(asked.messages.map(({ role, content }) => `${role}: ${content}`).join(), "system: Rhyme.,user: Hello");
  const { status, error } = await tell(address, { on: "chat", say: "Hello", more: { model: "unknown" } });
  assert.deepEqual([status, error?.["code"]], [404, "adapter_not_found"]);
  assert.equal(error?.["message"], "There is no model 'unknown'.");
});

test("every line of the page's table is accepted from a program", async () => {
  const { address } = await open();
  assert.ok(lines.length >= 8, `${lines.length} lines`);
  const tools = [{ type: "function", name: "look", parameters: {} }];
  for (const line of lines.filter((one) => !one.includes('"tool-arguments"'))) {
    const { status, error, raw } = await tell(address, { on: "responses", say: "hi", more: { model: line, tools } });
    if (line.includes('"error"')) assert.deepEqual([status, error?.["message"]], [429, "Busy."]);
    else assert.equal(status, 200, `${line} ${raw}`);
  }
});

const recipes = read("adapters")
  .split(/^##+ /m)
  .filter((part) => part.includes("```json"));

assert.ok(recipes.length > 12, `${recipes.length} recipes`);
for (const recipe of recipes) {
  const [name] = recipe.split("\n", 1);
  test(`the recipe for '${name}' is accepted, or asks for what the page says to install`, async (context) => {
    const [, json = ""] = /```json\n(.*?)```/s.exec(recipe) ?? [];
    const shown = JSON.parse(json);
    const folder = makeFolder(context);
    writeFileSync(join(folder, "adapter.mts"), "export default () => ({ async *stream() {} });");
    const variables = [...json.matchAll(/\$\{(\w+)\}/g)].map(([, variable = ""]) => [variable, `value-of-${variable}`]);
    const settings = toSettings({ gateway: shown.gateway ?? { adapters: shown }, http: { endpoints: {} } });
    try {
      await (await openPortico(settings, { folder, env: Object.fromEntries(variables) })).close();
    } catch (thrown) {
      const { message } = thrown as Error;
      const [, wanted] = /Run: (npm i \S+)/.exec(message) ?? [];
      if (wanted !== undefined) assert.ok(recipe.includes(wanted), message);
      else assert.match(message, /no executable program claude/);
    }
  });
}
