/** How a wrong chat completions body is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { protocol } from "./script.ts";

const messages = [{ role: "user", content: "Hi" }];
const called = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const described = { name: "f" };
const tool = { type: "function", function: described };
const customTool = (format: unknown) => ({ type: "custom", custom: { name: "f", format } });
const schema = { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } };
const one = (message: unknown) => ({ messages: [message] });
const user = (content: unknown) => one({ role: "user", content });
const part = (value: unknown) => user([value]);
const calls = (...list: readonly unknown[]) => one({ role: "assistant", content: null, tool_calls: list });

/** The wrong part of the body, the path in the error, the code, and a part of the message. */
const refused: readonly (readonly [body: unknown, param: string | null, code: string, message: string])[] = [
  [null, null, "invalid_type", "must be a JSON object, but it is null"],
  [[], null, "invalid_type", "must be a JSON object, but it is an array"],
  ["Hi", null, "invalid_type", "must be a JSON object, but it is a string"],
  [{ model: undefined }, "model", "missing_required_parameter", "Missing required parameter: 'model'."],
  [{ model: null }, "model", "missing_required_parameter", "Missing required parameter: 'model'."],
  [{ model: "" }, "model", "empty_string", "at least one character"],
  [{ model: "m".repeat(1_001) }, "model", "string_too_long", "at most 1000 characters, but got 1001"],
  [{ model: 5 }, "model", "invalid_type", "expected a string, but got an integer"],
  [{ messages: undefined }, "messages", "missing_required_parameter", "Missing required parameter: 'messages'."],
  [
    { messages: undefined, input: "Hi" },
    "messages",
    "missing_required_parameter",
    "Missing required parameter: 'messages'. A request with 'input' goes to /v1/responses.",
  ],
  [
    { previous_response_id: "resp_1" },
    "previous_response_id",
    "unsupported_parameter",
    "Unsupported parameter: 'previous_response_id'. Only /v1/responses can continue a response; here 'user' or a header names the session.",
  ],
  [{ messages: null }, "messages", "missing_required_parameter", "Missing required parameter: 'messages'."],
  [{ messages: "Hi" }, "messages", "invalid_type", "expected an array, but got a string"],
  [{ messages: {} }, "messages", "invalid_type", "expected an array, but got an object"],
  [{ messages: [] }, "messages", "empty_array", "Expected an array with minimum length 1"],
  [one(123), "messages[0]", "invalid_type", "expected an object, but got an integer"],
  [one(null), "messages[0]", "invalid_type", "expected an object, but got null"],
  [calls({ ...called, type: 7 }), "messages[0].tool_calls[0].type", "invalid_type", "expected a string"],
  [{ modalities: ["text", 7] }, "modalities[1]", "invalid_type", "expected a string, but got an integer"],
  [
    { stream: true, stream_options: { include_obfuscation: 1 } },
    "stream_options.include_obfuscation",
    "invalid_type",
    "expected a boolean",
  ],
  [one({}), "messages[0].role", "missing_required_parameter", "'messages[0].role'"],
  [one({ role: 1, content: "" }), "messages[0].role", "invalid_type", "expected a string, but got an integer"],
  [one({ role: "robot", content: "" }), "messages[0].role", "invalid_value", "'system', 'developer', 'user'"],
  [one({ role: "toString", content: "" }), "messages[0].role", "invalid_value", "Invalid value: 'toString'"],
  [one({ role: "__proto__", content: "" }), "messages[0].role", "invalid_value", "Invalid value: '__proto__'"],
  [one({ role: "user" }), "messages[0].content", "missing_required_parameter", "'messages[0].content'"],
  [one({ role: "system" }), "messages[0].content", "missing_required_parameter", "'messages[0].content'"],
  [user(null), "messages[0].content", "missing_required_parameter", "'messages[0].content'"],
  [
    user(5),
    "messages[0].content",
    "invalid_type",
    "expected a string or an array of content parts, but got an integer",
  ],
  [user({}), "messages[0].content", "invalid_type", "but got an object"],
  [one({ role: "user", content: "", name: 5 }), "messages[0].name", "invalid_type", "expected a string"],
  [part("Hi"), "messages[0].content[0]", "invalid_type", "expected an object, but got a string"],
  [part({ text: "Hi" }), "messages[0].content[0].type", "missing_required_parameter", "content[0].type"],
  [part({ type: "text" }), "messages[0].content[0].text", "missing_required_parameter", "content[0].text"],
  [part({ type: "text", text: 5 }), "messages[0].content[0].text", "invalid_type", "expected a string"],
  [part({ type: "refusal" }), "messages[0].content[0].refusal", "missing_required_parameter", "content[0].refusal"],
  [part({ type: "image_url" }), "messages[0].content[0].image_url", "missing_required_parameter", "image_url"],
  [part({ type: "image_url", image_url: "u" }), "messages[0].content[0].image_url", "invalid_type", "an object"],
  [part({ type: "image_url", image_url: { url: "" } }), "messages[0].content[0].image_url.url", "empty_string", "url"],
  [part({ type: "file" }), "messages[0].content[0].file", "missing_required_parameter", "content[0].file"],
  [part({ type: "file", file: {} }), "messages[0].content[0].file.file_id", "missing_required_parameter", "file_id"],
  [part({ type: "input_audio" }), "messages[0].content[0].input_audio", "missing_required_parameter", "input_audio"],
  [
    part({ type: "input_audio", input_audio: { data: "AA" } }),
    "messages[0].content[0].input_audio.format",
    "missing_required_parameter",
    "input_audio.format",
  ],
  [one({ role: "assistant", content: 5 }), "messages[0].content", "invalid_type", "but got an integer"],
  [one({ role: "assistant", refusal: 5 }), "messages[0].refusal", "invalid_type", "expected a string"],
  [one({ role: "assistant", tool_calls: {} }), "messages[0].tool_calls", "invalid_type", "expected an array"],
  [calls(5), "messages[0].tool_calls[0]", "invalid_type", "expected an object"],
  [calls({ ...called, id: null }), "messages[0].tool_calls[0].id", "missing_required_parameter", "tool_calls[0].id"],
  [calls({ id: "c" }), "messages[0].tool_calls[0].function", "missing_required_parameter", "tool_calls[0].function"],
  [calls({ id: "c", function: {} }), "messages[0].tool_calls[0].function.name", "missing_required_parameter", "name"],
  [
    calls({ id: "c", function: { name: "f", arguments: {} } }),
    "messages[0].tool_calls[0].function.arguments",
    "invalid_type",
    "expected a string, but got an object",
  ],
  [
    one({ role: "assistant", function_call: {} }),
    "messages[0].function_call.name",
    "missing_required_parameter",
    "name",
  ],
  [one({ role: "tool", content: "1" }), "messages[0].tool_call_id", "missing_required_parameter", "tool_call_id"],
  [one({ role: "tool", tool_call_id: "", content: "1" }), "messages[0].tool_call_id", "empty_string", "empty string"],
  [
    one({ role: "tool", tool_call_id: "c" }),
    "messages[0].content",
    "missing_required_parameter",
    "'messages[0].content'",
  ],
  [one({ role: "function", content: "1" }), "messages[0].name", "missing_required_parameter", "'messages[0].name'"],
  [{ temperature: -1 }, "temperature", "decimal_below_min_value", "Expected a value >= 0, but got -1 instead."],
  [{ temperature: 2.1 }, "temperature", "decimal_above_max_value", "Expected a value <= 2, but got 2.1 instead."],
  [{ temperature: "1" }, "temperature", "invalid_type", "expected a decimal, but got a string"],
  [{ top_p: 1.5 }, "top_p", "decimal_above_max_value", "<= 1"],
  [{ presence_penalty: 3 }, "presence_penalty", "decimal_above_max_value", "<= 2"],
  [{ frequency_penalty: -3 }, "frequency_penalty", "decimal_below_min_value", ">= -2"],
  [{ max_tokens: 0 }, "max_tokens", "integer_below_min_value", ">= 1"],
  [{ max_completion_tokens: 1.5 }, "max_completion_tokens", "invalid_type", "expected an integer, but got a decimal"],
  [{ seed: 2 ** 63 }, "seed", "integer_above_max_value", "<= 9223372036854775000"],
  [{ seed: -(2 ** 63) - 2_048 }, "seed", "integer_below_min_value", ">= -9223372036854776000"],
  [{ seed: "1" }, "seed", "invalid_type", "expected an integer"],
  [{ prompt_cache_key: 5 }, "prompt_cache_key", "invalid_type", "expected a string"],
  [{ safety_identifier: [] }, "safety_identifier", "invalid_type", "expected a string"],
  [{ stop: 5 }, "stop", "invalid_type", "expected a string or an array of strings"],
  [{ stop: ["a", 5] }, "stop[1]", "invalid_type", "expected a string"],
  [{ stop: ["a", "b", "c", "d", "e"] }, "stop", "array_above_max_length", "maximum length 4"],
  [{ logprobs: 1 }, "logprobs", "invalid_type", "expected a boolean"],
  [{ logprobs: true, top_logprobs: 21 }, "top_logprobs", "integer_above_max_value", "<= 20"],
  [{ top_logprobs: 2 }, "top_logprobs", "invalid_value", "only allowed when 'logprobs' is enabled"],
  [{ n: 0 }, "n", "integer_below_min_value", ">= 1"],
  [{ n: 129 }, "n", "integer_above_max_value", "<= 128"],
  [{ functions: {} }, "functions", "invalid_type", "expected an array"],
  [{ functions: [{}] }, "functions[0].name", "missing_required_parameter", "'functions[0].name'"],
  [{ functions: [{ name: "f", parameters: 5 }] }, "functions[0].parameters", "invalid_type", "expected an object"],
  [{ functions: [described], tools: [tool] }, "functions", "mutually_exclusive", "'functions' and 'tools' cannot be"],
  [{ functions: [described], tool_choice: "auto" }, "functions", "mutually_exclusive", "'functions' and 'tool_choice'"],
  [{ function_call: "auto" }, "function_call", "invalid_value", "only allowed when 'functions' are specified."],
  [{ tools: [tool], function_call: "auto" }, "function_call", "invalid_value", "only allowed when 'functions' are"],
  [{ functions: [described], function_call: "required" }, "function_call", "invalid_value", "are: 'auto', 'none'."],
  [{ functions: [described], function_call: {} }, "function_call.name", "missing_required_parameter", "name"],
  [{ functions: [described], function_call: { name: "g" } }, "function_call", "invalid_value", "no function named 'g'"],
  [
    one({ role: "function", name: "f", content: "1" }),
    "messages[0]",
    "tool_call_mismatch",
    "also send the assistant message with its 'function_call'",
  ],
  [{ modalities: ["text", "audio"] }, "modalities", "unsupported_parameter", "ask for 'text'"],
  [{ modalities: "audio" }, "modalities", "invalid_type", "expected an array"],
  [{ user: 5 }, "user", "invalid_type", "expected a string"],
  [{ store: "yes" }, "store", "invalid_type", "expected a boolean"],
  [{ stream: 1 }, "stream", "invalid_type", "expected a boolean"],
  [{ stream_options: {} }, "stream_options", "invalid_value", "only allowed when 'stream' is enabled"],
  [{ stream: true, stream_options: true }, "stream_options", "invalid_type", "expected an object"],
  [
    { stream: true, stream_options: { include_usage: "yes" } },
    "stream_options.include_usage",
    "invalid_type",
    "expected a boolean",
  ],
  [{ metadata: { a: 1 } }, "metadata.a", "invalid_type", "expected a string"],
  [{ metadata: { ...Array(17).fill("x") } }, "metadata", "too_many_properties", "at most 16 properties, but got 17"],
  [{ metadata: { a: "x".repeat(513) } }, "metadata.a", "string_too_long", "at most 512"],
  [{ reasoning_effort: 3 }, "reasoning_effort", "invalid_type", "expected a string"],
  [{ verbosity: true }, "verbosity", "invalid_type", "expected a string, but got a boolean"],
  [{ service_tier: 1 }, "service_tier", "invalid_type", "expected a string"],
  [{ parallel_tool_calls: "true" }, "parallel_tool_calls", "invalid_type", "expected a boolean"],
  [{ response_format: "json" }, "response_format", "invalid_type", "expected an object"],
  [{ response_format: {} }, "response_format.type", "missing_required_parameter", "'response_format.type'"],
  [{ response_format: { type: "xml" } }, "response_format.type", "invalid_value", "'json_object', 'json_schema'"],
  [
    { response_format: { type: "json_schema" } },
    "response_format.json_schema",
    "missing_required_parameter",
    "response_format.json_schema",
  ],
  [
    { response_format: { ...schema, json_schema: {} } },
    "response_format.json_schema.name",
    "missing_required_parameter",
    "json_schema.name",
  ],
  [{ tools: {} }, "tools", "invalid_type", "expected an array"],
  [{ tools: [5] }, "tools[0]", "invalid_type", "expected an object"],
  [{ tools: [{}] }, "tools[0].type", "missing_required_parameter", "tools[0].type"],
  [
    { tools: [{ type: "function", name: "f" }] },
    "tools[0].function",
    "missing_required_parameter",
    "tools[0].function",
  ],
  [{ tools: [{ type: "function", function: {} }] }, "tools[0].function.name", "missing_required_parameter", "name"],
  [
    { tools: [{ type: "function", function: { name: "f", parameters: "{}" } }] },
    "tools[0].function.parameters",
    "invalid_type",
    "expected an object",
  ],
  [{ tools: [{ type: "custom" }] }, "tools[0].custom", "missing_required_parameter", "tools[0].custom"],
  [{ tools: [customTool("lark")] }, "tools[0].custom.format", "invalid_type", "expected an object, but got a string"],
  [{ tool_choice: "any" }, "tool_choice", "invalid_value", "'auto', 'none', 'required'"],
  [{ tool_choice: "required" }, "tool_choice", "invalid_value", "'tools' has none to call"],
  [{ tool_choice: { type: "required" } }, "tool_choice", "invalid_value", "'tools' has none to call"],
  [{ tool_choice: 5 }, "tool_choice", "invalid_type", "expected an object"],
  [{ tool_choice: {} }, "tool_choice.type", "missing_required_parameter", "tool_choice.type"],
  [{ tool_choice: { type: "function" } }, "tool_choice.function", "missing_required_parameter", "tool_choice.function"],
  [{ tool_choice: tool }, "tool_choice", "invalid_value", "Tool choice 'f' not found in 'tools' parameter."],
  [
    { tools: [tool], tool_choice: { type: "custom", custom: { name: "f" } } },
    "tool_choice",
    "invalid_value",
    "'f' not found",
  ],
  [
    { tools: [tool], tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto" } } },
    "tool_choice.allowed_tools.tools",
    "missing_required_parameter",
    "allowed_tools.tools",
  ],
  [
    { tools: [tool], tool_choice: { type: "allowed_tools", allowed_tools: { mode: "all", tools: [tool] } } },
    "tool_choice.allowed_tools.mode",
    "invalid_value",
    "'auto', 'required'",
  ],
  [
    { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool] } } },
    "tool_choice",
    "invalid_value",
    "'f' not found",
  ],
];

test("a wrong body is refused with status 400, the field and the remedy", () => {
  for (const [body, param, code, message] of refused) {
    const whole = body !== null && typeof body === "object" && !Array.isArray(body);
    const sent = whole ? { model: "m", messages, ...body } : body;
    const shown = JSON.stringify(body);
    assert.throws(
      () => protocol.parse(sent, "default"),
      (error) => {
        assert.ok(error instanceof GatewayError, `${shown}: ${error}`);
        assert.equal(error.status, 400, shown);
        assert.equal(error.param, param, shown);
        assert.equal(error.wireCode, code, shown);
        assert.ok(error.message.includes(message), `${shown}: ${error.message}`);
        return true;
      },
      shown,
    );
  }
});
