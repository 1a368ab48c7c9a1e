import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { createEcho } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Settings, Tool, ToolChoice } from "../../src/core/turn.ts";

const page = readFileSync(new URL("../../docs/echo.md", import.meta.url), "utf8");
const examples = readExamples();

suite("docs/echo.md", () => {
  for (const { section, what, text, fields, answer } of examples) {
    test(`${section}: ${what}`, async () => {
      const tools = section === "Tools" ? readTools() : [];
      assert.equal(await say(text, { tools, ...toSettings(fields) }), answer);
    });
  }

  test("the page has the examples that these tests run", () => {
    assert.deepEqual([...new Set(examples.map(({ section }) => section))], ["What it says", "Tools", "Directives"]);
    assert.ok(examples.length >= 25);
  });

  test("each code of ERROR is listed on the page and fails with its own status", async () => {
    const [, list = ""] = /^`ERROR` knows ([^;]+);/m.exec(page) ?? [];
    const codes = [...list.matchAll(/`(\w+)`/g)].map(([, code]) => code);
    assert.equal(codes.length, 8);
    for (const code of codes) assert.match(await say(`ERROR ${code}`, { tools: [] }), new RegExp(`^! \\d{3} ${code}$`));
    assert.equal(await say("ERROR internal_error", { tools: [] }), "ERROR internal_error");
  });
});

interface Example {
  readonly section: string;
  readonly what: string;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly answer: string;
}

function readExamples(): Example[] {
  return page.split(/^## /m).flatMap((part) => {
    const section = part.slice(0, part.indexOf("\n"));
    return [...part.matchAll(/^\| ([^|`]+?) +\| `([^|]*)` +\| `(\{[^|]*\})` +\| `([^|]*)` +\|$/gm)].map(
      ([, what = "", text = "", fields = "", answer = ""]) => ({
        section,
        what,
        text: text.replaceAll("⏎", "\n"),
        fields: JSON.parse(fields),
        answer: answer.replaceAll("⏎", "\n"),
      }),
    );
  });
}

function readTools(): Tool[] {
  const [, json = ""] = /^These lines have two tools:\n\n```json\n([^`]*)```/m.exec(page) ?? [];
  const tools: readonly { type: "function" | "custom"; function: { name: string }; custom: { name: string } }[] =
    JSON.parse(json);
  return tools.map((tool) => Object.assign({ type: tool.type }, tool[tool.type]));
}

// oxlint-disable-next-line typescript/no-explicit-any
function toSettings(fields: any): Partial<Settings> {
  const { tool_choice: choice, response_format: format } = fields;
  const toolChoice: ToolChoice | undefined =
    typeof choice === "string"
      ? { type: choice as "auto" }
      : choice && { type: "tool", name: choice[choice.type].name };
  return {
    toolChoice,
    parallelToolCalls: fields.parallel_tool_calls,
    stop: fields.stop,
    maxOutputTokens: fields.max_completion_tokens,
    reasoningEffort: fields.reasoning_effort,
    format: format && (format.type === "json_object" ? { type: "json" } : { type: "schema", ...format.json_schema }),
  };
}

/** The answer in the notation of the page. */
async function say(text: string, settings: Settings): Promise<string> {
  const deltas: Delta[] = [];
  const turn = {
    id: "resp_1",
    model: "echo",
    items: [{ type: "message", role: "user", content: text } as const],
    settings,
    stream: true,
  };
  let failure = "";
  try {
    for await (const batch of createEcho({}).stream(turn, new AbortController().signal)) deltas.push(...batch);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    failure = `! ${thrown.status} ${thrown.code}`;
  }
  const joined = (type: Delta["type"]) =>
    deltas.map((delta) => (delta.type === type && "text" in delta ? delta.text : "")).join("");
  let written = joined("text");
  if (joined("refusal") !== "") written += `(refusal: ${joined("refusal")})`;
  if (joined("reasoning") !== "") written = `(${joined("reasoning")}) ${written}`;
  let calls = "";
  for (const delta of deltas) {
    if (delta.type === "tool-call") calls += `\n→ ${delta.name} `;
    if (delta.type === "tool-arguments") calls += delta.text;
  }
  const cut = deltas.some((delta) => delta.type === "finish" && delta.reason === "length") ? "…" : "";
  return written + calls.slice(1) + cut + failure;
}
