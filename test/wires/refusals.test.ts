/** Settings that both endpoints have, with a type or a value that neither takes: 400, in OpenAI's own words. */
import { endpoints } from "../harness/client.ts";
import { shareGateway } from "../harness/house.ts";
import { test } from "node:test";
import { type Row, toTests } from "./refused.ts";

const open = shareGateway();
const missing = "missing_required_parameter";
const toFormat = (fields: object) => ({ text: { format: { type: "json_schema", ...fields } } });

const rows: readonly Row[] = [
  [{ model: undefined }, "model", missing],
  [{ model: null }, "model", missing],
  [{ model: "" }, "model", "empty_string"],
  [{ model: 5 }, "model", "invalid_type"],
  [{ temperature: -1 }, "temperature", "decimal_below_min_value", "Expected a value >= 0, but got -1 instead."],
  [{ temperature: 2.5 }, "temperature", "decimal_above_max_value", "Expected a value <= 2, but got 2.5 instead."],
  [{ temperature: "1" }, "temperature", "invalid_type"],
  [{ top_p: -0.1 }, "top_p", "decimal_below_min_value"],
  [{ top_p: 1.5 }, "top_p", "decimal_above_max_value"],
  [{ presence_penalty: 3 }, "presence_penalty", "decimal_above_max_value"],
  [{ frequency_penalty: -3 }, "frequency_penalty", "decimal_below_min_value"],
  [{ parallel_tool_calls: "true" }, "parallel_tool_calls", "invalid_type"],
  [{ service_tier: 1 }, "service_tier", "invalid_type"],
  [{ user: 5 }, "user", "invalid_type"],
  [{ store: "yes" }, "store", "invalid_type"],
  [{ stream: 1 }, "stream", "invalid_type"],
  [{ prompt_cache_key: 5 }, "prompt_cache_key", "invalid_type"],
  [{ safety_identifier: [] }, "safety_identifier", "invalid_type"],
  [{ metadata: [] }, "metadata", "invalid_type"],
  [{ metadata: { a: 1 } }, "metadata.a", "invalid_type"],
  [{ metadata: { ...Array(17).fill("x") } }, "metadata", "too_many_properties", "16"],
  [{ metadata: { a: "x".repeat(513) } }, "metadata.a", "string_too_long", "512"],
  [{ tools: {} }, "tools", "invalid_type"],
  [{ tools: [5] }, "tools[0]", "invalid_type"],
  [{ tools: [{ name: "f" }] }, "tools[0].type", missing],
  [{ tool_choice: "any" }, "tool_choice", "invalid_value", "'required'"],
  [{ tool_choice: 5 }, "tool_choice", "invalid_type"],
  [{ tool_choice: {} }, "tool_choice.type", missing],
];

for (const on of endpoints) for (const [name, run] of toTests(on, rows, open)) test(name, run);

for (const [name, run] of toTests(
  "chat",
  [
    [{ max_tokens: 0 }, "max_tokens", "integer_below_min_value"],
    [{ max_completion_tokens: 1.5 }, "max_completion_tokens", "invalid_type"],
    [{ max_output_tokens: 99 }, "max_output_tokens", "unsupported_parameter"],
    [{ seed: "1" }, "seed", "invalid_type"],
    [{ seed: 2 ** 70 }, "seed", "integer_above_max_value"],
    [{ stop: 5 }, "stop", "invalid_type"],
    [{ stop: ["a", 5] }, "stop[1]", "invalid_type"],
    [{ logprobs: 1 }, "logprobs", "invalid_type"],
    [{ logprobs: true, top_logprobs: 21 }, "top_logprobs", "integer_above_max_value"],
    [{ n: 0 }, "n", "integer_below_min_value"],
    [{ n: 2 }, "n", "unsupported_parameter"],
    [{ n: "1" }, "n", "invalid_type"],
    [{ logit_bias: { 50256: -100 } }, "logit_bias", "unsupported_parameter"],
    [{ modalities: ["text", "audio"] }, "modalities", "unsupported_parameter"],
    [{ modalities: "audio" }, "modalities", "invalid_type"],
    [{ stream_options: {} }, "stream_options", "invalid_value", "'stream'"],
    [{ stream: true, stream_options: true }, "stream_options", "invalid_type"],
    [{ stream: true, stream_options: { include_usage: "yes" } }, "stream_options.include_usage", "invalid_type"],
    [{ reasoning_effort: 3 }, "reasoning_effort", "invalid_type"],
    [{ verbosity: true }, "verbosity", "invalid_type"],
    [{ response_format: "json" }, "response_format", "invalid_type"],
    [{ response_format: {} }, "response_format.type", missing],
    [{ response_format: { type: "xml" } }, "response_format.type", "invalid_value", "'json_schema'"],
    [{ response_format: { type: "json_schema" } }, "response_format.json_schema", missing],
    [{ response_format: { type: "json_schema", json_schema: {} } }, "response_format.json_schema.name", missing],
    [{ previous_response_id: "resp_1" }, "previous_response_id", "unsupported_parameter"],
  ],
  open,
))
  test(name, run);

for (const [name, run] of toTests(
  "responses",
  [
    [{ max_output_tokens: 15 }, "max_output_tokens", "integer_below_min_value", ">= 16"],
    [{ max_output_tokens: 16.5 }, "max_output_tokens", "invalid_type"],
    [{ max_tool_calls: 0 }, "max_tool_calls", "integer_below_min_value", ">= 1"],
    [{ top_logprobs: 21 }, "top_logprobs", "integer_above_max_value", "<= 20"],
    [{ max_tokens: 99 }, "max_tokens", "unsupported_parameter"],
    [{ response_format: { type: "json_object" } }, "response_format", "unsupported_parameter"],
    [{ truncation: "middle" }, "truncation", "invalid_value", "'auto'"],
    [{ include: "all" }, "include", "invalid_type"],
    [{ include: [1] }, "include[0]", "invalid_type"],
    [{ instructions: 5 }, "instructions", "invalid_type"],
    [{ text: "json" }, "text", "invalid_type"],
    [{ text: { format: {} } }, "text.format.type", missing],
    [{ text: { format: { type: "xml" } } }, "text.format.type", "invalid_value", "'json_schema'"],
    [toFormat({ schema: {} }), "text.format.name", missing],
    [toFormat({ name: "n" }), "text.format.schema", missing],
    [{ reasoning: "high" }, "reasoning", "invalid_type"],
    [{ reasoning: { effort: 3 } }, "reasoning.effort", "invalid_type"],
    [{ stream_options: true }, "stream_options", "invalid_type"],
    [{ background: "no" }, "background", "invalid_type"],
    [{ prompt: { id: "pmpt_1" } }, "prompt", "unsupported_parameter"],
    [{ previous_response_id: 5 }, "previous_response_id", "invalid_type"],
    [{ conversation: 7 }, "conversation", "invalid_type"],
    [{ conversation: {} }, "conversation.id", missing],
  ],
  open,
))
  test(name, run);
