/**
 * Every config file on the page about adapters is valid according to `portico check`, and the page says what to install
 * for it.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { runtime } from "../../src/cli/runtime.ts";
import { run } from "../../src/cli/main.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import { createTerminalIn } from "../cli/screen.ts";
import { makeFolder } from "../gateway.ts";

const page = readFileSync(new URL("../../docs/adapters.md", import.meta.url), "utf8");

const [, firstFile = ""] = /```json\n(.*?)```/s.exec(page) ?? [];

/** Each section of the page with a config file, or with the adapters to put into the first one: its heading, its text, the file. */
const recipes = page
  .split(/^##+ /m)
  .map((part) => ({ name: part.split("\n", 1)[0] ?? "", words: part, json: /```json\n(.*?)```/s.exec(part)?.[1] }))
  .flatMap(({ json, ...rest }) => (json === undefined ? [] : [{ ...rest, file: toFile(json) }]));

function toFile(json: string): string {
  const shown = JSON.parse(json) as object;
  if ("gateway" in shown) return json;
  const { gateway } = JSON.parse(firstFile) as { readonly gateway: object };
  return JSON.stringify({ gateway: { ...gateway, adapters: shown } });
}

interface Checked {
  readonly code: number;
  readonly complaints: string;
  /** The effective configuration. */
  readonly effective: { readonly gateway: { readonly adapters: Readonly<Record<string, Adapter>> } };
}

interface Adapter {
  readonly type: string;
  readonly package?: string;
}

/** Runs `portico check` on a file in a folder of its own, with a value for every variable that the file names. */
async function check(context: TestContext, text: string): Promise<Checked> {
  const folder = makeFolder(context);
  const file = join(folder, "portico.json");
  writeFileSync(file, text, { mode: 0o600 });
  const printed: string[] = [];
  const complained: string[] = [];
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => name);
  const terminal: Terminal = {
    ...createTerminalIn(folder),
    env: Object.fromEntries(names.map((name) => [name, `value-of-${name.toLowerCase()}-0123`])),
    print: (line) => void printed.push(line),
    complain: (line) => void complained.push(line),
    probe: () => assert.fail("nothing may be probed"),
  };
  // The packages, programs and files of the recipes are not installed here.
  const code = await run(["check", "--config", file], terminal, { ...runtime, tryAdapters: async () => {} });
  return { code, complaints: complained.join("\n"), effective: JSON.parse(printed.join("\n") || "null") };
}

suite("docs/adapters.md", () => {
  test("the page has a recipe for every common provider", () => {
    assert.deepEqual(
      recipes.map(({ name }) => name),
      (
        "OpenAI, Azure OpenAI, Anthropic, Gemini, Bedrock, Mistral, OpenRouter, LiteLLM, Groq, DeepSeek, Ollama, vLLM, LM Studio, " +
        "llama.cpp, A CLI agent, A module, Several adapters"
      ).split(", "),
    );
  });

  for (const { name, words, file } of recipes) {
    test(`the config file for '${name}' passes \`portico check\` without a warning, and names what to install`, async (context) => {
      const { code, complaints, effective } = await check(context, file);
      assert.equal(code, 0, complaints);
      assert.doesNotMatch(complaints, /warning/);
      assert.match(complaints, /is valid\.$/);
      for (const { type, package: packageName } of Object.values(effective.gateway.adapters)) {
        if (type === "ai-sdk") assert.ok(words.includes(`\`npm i ${packageName}\``), packageName);
      }
    });
  }

  test("a misspelt key in a recipe is detected", async (context) => {
    const file = recipes.at(-1)?.file.replace('"fallback"', '"fallbck"') ?? "";
    const { code, complaints } = await check(context, file);
    assert.equal(code, 1);
    assert.match(complaints, /fallback/);
  });

  test("the defaults on the page are those of the schema", async (context) => {
    const { effective } = await check(context, recipes[0]?.file ?? "");
    const { openai } = effective.gateway.adapters as Record<string, unknown> as Record<string, Record<string, unknown>>;
    assert.deepEqual(openai?.["retry"], { times: 2, base_ms: 200, max_wait_ms: 1000 });
    assert.deepEqual(openai?.["breaker"], { failures: 5, open_ms: 10_000 });
    for (const shown of ["`retry.times` (2)", "`retry.base_ms` (200)", "`breaker.failures` (5)"])
      assert.ok(page.includes(shown), shown);
  });
});
