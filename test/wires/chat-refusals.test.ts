/** Messages and tools that chat completions refuses, each with the path of what is wrong. */
import { shareGateway } from "../harness/house.ts";
import { test } from "node:test";
import { type Row, toTests } from "./refused.ts";

const one = (message: unknown) => ({ messages: [message] });
const user = (content: unknown) => one({ role: "user", content });
const part = (value: unknown) => user([value]);
const calls = (...list: readonly unknown[]) => one({ role: "assistant", content: null, tool_calls: list });
const tool = { type: "function", function: { name: "f" } };
const functions = [{ name: "f" }];
const allowed = (fields: object) => ({ tool_choice: { type: "allowed_tools", allowed_tools: fields } });
const described = (fields: object) => ({ tools: [{ type: "function", function: fields }] });
const chosen = (type: string, name: string) => ({ tools: [tool], tool_choice: { type, [type]: { name } } });
const first = "messages[0].tool_calls[0]";
const missing = "missing_required_parameter";

const messages: readonly Row[] = [
  [{ messages: undefined }, "messages", missing],
  [{ messages: null }, "messages", missing],
  [{ messages: "Hi" }, "messages", "invalid_type"],
  [{ messages: {} }, "messages", "invalid_type"],
  [{ messages: [] }, "messages", "empty_array"],
  [one(123), "messages[0]", "invalid_type"],
  [one(null), "messages[0]", "invalid_type"],
  [{ messages: [{ role: "user", content: "Hi" }, "Hi"] }, "messages[1]", "invalid_type"],
  [one({}), "messages[0].role", missing],
  [one({ role: 1, content: "" }), "messages[0].role", "invalid_type"],
  [one({ role: "robot", content: "" }), "messages[0].role", "invalid_value", "'developer'"],
  [one({ role: "toString", content: "" }), "messages[0].role", "invalid_value", "toString"],
  [one({ role: "user" }), "messages[0].content", missing],
  [one({ role: "system" }), "messages[0].content", missing],
  [user(null), "messages[0].content", missing],
  [user(5), "messages[0].content", "invalid_type"],
  [user({}), "messages[0].content", "invalid_type"],
  [one({ role: "assistant", content: 5 }), "messages[0].content", "invalid_type"],
  [one({ role: "assistant", refusal: 5 }), "messages[0].refusal", "invalid_type"],
  [one({ role: "user", content: "", name: 5 }), "messages[0].name", "invalid_type"],
  [part("Hi"), "messages[0].content[0]", "invalid_type"],
  [part({ text: "Hi" }), "messages[0].content[0].type", missing],
  [part({ type: "text" }), "messages[0].content[0].text", missing],
  [part({ type: "text", text: 5 }), "messages[0].content[0].text", "invalid_type"],
  [part({ type: "refusal" }), "messages[0].content[0].refusal", missing],
  [part({ type: "image_url" }), "messages[0].content[0].image_url", missing],
  [part({ type: "image_url", image_url: "u" }), "messages[0].content[0].image_url", "invalid_type"],
  [part({ type: "image_url", image_url: {} }), "messages[0].content[0].image_url.url", missing],
  [part({ type: "file" }), "messages[0].content[0].file", missing],
  [part({ type: "file", file: {} }), "messages[0].content[0].file.file_id", missing],
  [part({ type: "input_audio" }), "messages[0].content[0].input_audio", missing],
  [part({ type: "input_audio", input_audio: { data: "AA" } }), "messages[0].content[0].input_audio.format", missing],
  [one({ role: "assistant", tool_calls: {} }), "messages[0].tool_calls", "invalid_type"],
  [calls(5), "messages[0].tool_calls[0]", "invalid_type"],
  [calls({ function: { name: "f" } }), "messages[0].tool_calls[0].id", missing],
  [calls({ id: "c" }), "messages[0].tool_calls[0].function", missing],
  [calls({ id: "c", function: {} }), "messages[0].tool_calls[0].function.name", missing],
  [calls({ id: "c", function: { name: "f", arguments: 1 } }), `${first}.function.arguments`, "invalid_type"],
  [one({ role: "tool", content: "1" }), "messages[0].tool_call_id", missing],
  [one({ role: "tool", tool_call_id: "c" }), "messages[0].content", missing],
  [one({ role: "tool", tool_call_id: "c", content: "1" }), "messages", "tool_call_mismatch", "c"],
  [one({ role: "function", content: "1" }), "messages[0].name", missing],
];

const tools: readonly Row[] = [
  [{ tools: [{ type: "function", name: "f" }] }, "tools[0].function", missing],
  [described({}), "tools[0].function.name", missing],
  [described({ name: "f", parameters: "{}" }), "tools[0].function.parameters", "invalid_type"],
  [{ tools: [{ type: "custom" }] }, "tools[0].custom", missing],
  [{ tools: [{ type: "custom", custom: { name: "f", format: "lark" } }] }, "tools[0].custom.format", "invalid_type"],
  [{ tool_choice: "required" }, "tool_choice", "invalid_value", "'tools'"],
  [{ tool_choice: { type: "function" } }, "tool_choice.function", missing],
  [{ tool_choice: tool }, "tool_choice", "invalid_value", "'f'"],
  [chosen("function", "g"), "tool_choice", "invalid_value", "'g'"],
  [chosen("custom", "f"), "tool_choice", "invalid_value", "'f'"],
  [allowed({ mode: "auto" }), "tool_choice.allowed_tools.tools", missing],
  [allowed({ mode: "all", tools: [tool] }), "tool_choice.allowed_tools.mode", "invalid_value", "'auto'"],
  [allowed({ mode: "auto", tools: [tool] }), "tool_choice", "invalid_value", "'f'"],
  [{ functions: {} }, "functions", "invalid_type"],
  [{ functions: [{}] }, "functions[0].name", missing],
  [{ functions: [{ name: "f", parameters: 5 }] }, "functions[0].parameters", "invalid_type"],
  [{ functions, function_call: {} }, "function_call.name", missing],
];

const open = shareGateway();
for (const [name, run] of toTests("chat", messages, open)) test(name, run);
for (const [name, run] of toTests("chat", tools, open)) test(name, run);
