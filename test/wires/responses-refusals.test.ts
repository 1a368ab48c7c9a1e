/** Items and tools that the responses endpoint refuses, each with the path of what is wrong. */
import { test } from "node:test";
import { type Row, toTests } from "./refused.ts";

const one = (item: unknown) => ({ input: [item] });
const user = (content: unknown) => one({ role: "user", content });
const part = (value: unknown) => user([value]);
const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
const output = { type: "function_call_output", call_id: "c", output: "1" };
const tool = { type: "function", name: "f" };
const missing = "missing_required_parameter";

const rows: readonly Row[] = [
  [{ input: undefined }, "input", missing],
  [{ input: null }, "input", missing],
  [{ input: 5 }, "input", "invalid_type"],
  [{ input: {} }, "input", "invalid_type"],
  [one(123), "input[0]", "invalid_type"],
  [one(null), "input[0]", "invalid_type"],
  [one({}), "input[0].role", missing],
  [one({ role: 1, content: "" }), "input[0].role", "invalid_type"],
  [one({ role: "tool", content: "" }), "input[0].role", "invalid_value", "'assistant'"],
  [one({ role: "user" }), "input[0].content", missing],
  [one({ type: 7 }), "input[0].type", "invalid_type"],
  [user(null), "input[0].content", missing],
  [user(5), "input[0].content", "invalid_type"],
  [part("Hi"), "input[0].content[0]", "invalid_type"],
  [part({ text: "Hi" }), "input[0].content[0].type", missing],
  [part({ type: "input_text" }), "input[0].content[0].text", missing],
  [part({ type: "input_text", text: 1 }), "input[0].content[0].text", "invalid_type"],
  [part({ type: "input_image" }), "input[0].content[0].image_url", missing],
  [part({ type: "input_image", image_url: { url: "u" } }), "input[0].content[0].image_url", "invalid_type"],
  [part({ type: "input_file" }), "input[0].content[0].file_id", missing],
  [part({ type: "refusal" }), "input[0].content[0].refusal", missing],
  [one({ ...call, call_id: null }), "input[0].call_id", missing],
  [one({ ...call, name: undefined }), "input[0].name", missing],
  [one({ ...call, arguments: {} }), "input[0].arguments", "invalid_type"],
  [one({ ...call, id: 7 }), "input[0].id", "invalid_type"],
  [{ input: [call, { ...output, output: undefined }] }, "input[1].output", missing],
  [{ input: [call, { ...output, output: 4 }] }, "input[1].output", "invalid_type"],
  [one(output), "input", "tool_call_mismatch", "No tool call found for function call output with call_id c."],
  [one({ type: "reasoning", summary: "s" }), "input[0].summary", "invalid_type"],
  [one({ type: "reasoning", summary: [{}] }), "input[0].summary[0].text", missing],
  [one({ type: "compaction" }), "input[0].encrypted_content", missing],
  [{ tools: [{ type: "function", function: tool }] }, "tools[0].name", missing],
  [{ tools: [{ ...tool, parameters: "{}" }] }, "tools[0].parameters", "invalid_type"],
  [{ tools: [{ ...tool, strict: "yes" }] }, "tools[0].strict", "invalid_type"],
  [{ tools: [{ type: "namespace", name: "n", tools: [{ type: "function" }] }] }, "tools[0].tools[0].name", missing],
  [{ tools: [tool], tool_choice: { type: "function" } }, "tool_choice.name", missing],
  [{ tools: [tool], tool_choice: { type: "function", name: "g" } }, "tool_choice", "invalid_value", "'g'"],
  [{ tools: [tool], tool_choice: { type: "custom", name: "f" } }, "tool_choice", "invalid_value", "'f'"],
  [{ tool_choice: { type: "allowed_tools" } }, "tool_choice.tools", missing],
  [{ tool_choice: { type: "allowed_tools", tools: [tool] } }, "tool_choice", "invalid_value", "'f'"],
];

for (const [name, run] of toTests("responses", rows)) test(name, run);
