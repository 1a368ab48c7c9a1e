/** The wire formats of three providers, written by hand: what their servers send for an answer. */
import type { AnthropicProviderSettings } from "@ai-sdk/anthropic";
import type { GoogleGenerativeAIProviderSettings } from "@ai-sdk/google";
import type { OpenAICompatibleProviderSettings } from "@ai-sdk/openai-compatible";
import { type Script, beginEvents, chunk } from "../harness/upstream.ts";
import type { Finish, Usage } from "./scene.ts";

export const apiKey = "sk-very-secret-key";

/** How one provider's server writes its answers. */
export interface Wire {
  readonly packageName: string;
  /** The options that direct the package to a server. */
  toOptions(url: string): Readonly<Record<string, unknown>>;
  begin(usage?: Usage): string;
  reason(pieces: readonly string[], signature?: string): string;
  say(pieces: readonly string[]): string;
  call(calls: readonly { callId: string; name: string; arguments: string }[]): string;
  end(finish: Finish, usage?: Usage): string;
  /** An error within the stream, and as the body of a response. */
  fail(status: number, message: string): string;
  refuse(status: number, message: string): unknown;
}

/** Settings of an adapter with that package, whose server is at the URL. */
export function toAdapter(
  wire: Wire,
  url: string,
  { options = {}, ...more }: { options?: object; [key: string]: unknown } = {},
) {
  return { type: "ai-sdk", package: wire.packageName, options: { ...wire.toOptions(url), ...options }, ...more };
}

/** A script that streams these texts unchanged. */
export function answerStream(...texts: readonly string[]): Script {
  return (_, response) => {
    beginEvents(response);
    response.end(texts.join(""));
  };
}

const writeData = (body: unknown): string => `data: ${JSON.stringify(body)}\n\n`;

/** How each provider calls the reason of an end. */
const ends = {
  stop: ["end_turn", "STOP", "stop"],
  length: ["max_tokens", "MAX_TOKENS", "length"],
  "tool-calls": ["tool_use", "STOP", "tool_calls"],
  "content-filter": ["refusal", "SAFETY", "content_filter"],
} as const;

const unused: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

const anthropicEvent = (type: string, body: object = {}) => `event: ${type}\n${writeData({ type, ...body })}`;

function anthropicBlock(index: number, block: object, deltas: readonly object[]): string {
  return [
    anthropicEvent("content_block_start", { index, content_block: block }),
    ...deltas.map((delta) => anthropicEvent("content_block_delta", { index, delta })),
    anthropicEvent("content_block_stop", { index }),
  ].join("");
}

const anthropicErrorTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

export const anthropic: Wire & { hide(secret: string): string } = {
  packageName: "@ai-sdk/anthropic",
  toOptions: (url) => ({ baseURL: `${url}/v1`, apiKey }) satisfies AnthropicProviderSettings,
  begin: (usage = unused) =>
    anthropicEvent("message_start", {
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "model-1",
        content: [],
        stop_reason: null,
        usage: {
          input_tokens: usage.inputTokens - usage.cachedTokens,
          cache_read_input_tokens: usage.cachedTokens,
          output_tokens: 1,
        },
      },
    }) + anthropicEvent("ping"),
  reason: (pieces, signature = "sig-1") =>
    anthropicBlock(0, { type: "thinking", thinking: "", signature: "" }, [
      ...pieces.map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature },
    ]),
  hide: (data) => anthropicBlock(1, { type: "redacted_thinking", data }, []),
  say: (pieces) => {
    const deltas = pieces.map((text) => ({ type: "text_delta", text }));
    return anthropicBlock(2, { type: "text", text: "" }, deltas);
  },
  call: (calls) =>
    calls
      .map(({ callId, name, arguments: text }, number) => {
        const deltas = halves(text).map((partial_json) => ({ type: "input_json_delta", partial_json }));
        return anthropicBlock(3 + number, { type: "tool_use", id: callId, name, input: {} }, deltas);
      })
      .join(""),
  end: (finish, usage = unused) =>
    anthropicEvent("message_delta", {
      delta: {
        stop_reason: ends[finish][0],
        stop_sequence: null,
      },
      usage: {
        output_tokens: usage.outputTokens,
        output_tokens_details: { thinking_tokens: usage.reasoningTokens },
      },
    }) + anthropicEvent("message_stop"),
  fail: (status, message) => anthropicEvent("error", { error: { type: anthropicErrorTypes[status], message } }),
  refuse: (status, message) => ({ type: "error", error: { type: anthropicErrorTypes[status], message } }),
};

const googleParts = (parts: readonly object[]): string =>
  writeData({ candidates: [{ content: { parts, role: "model" }, index: 0 }], responseId: "r_1" });

export const google: Wire = {
  packageName: "@ai-sdk/google",
  toOptions: (url) => ({ baseURL: `${url}/v1beta`, apiKey }) satisfies GoogleGenerativeAIProviderSettings,
  begin: () => "",
  reason: (pieces) => pieces.map((text) => googleParts([{ text, thought: true }])).join(""),
  say: (pieces) => pieces.map((text) => googleParts([{ text }])).join(""),
  call: (calls) =>
    googleParts(
      calls.map((call, index) => ({
        functionCall: { id: call.callId, name: call.name, args: JSON.parse(call.arguments) },
        ...(index === 0 && { thoughtSignature: "thought-sig-1" }),
      })),
    ),
  end: (finish, usage = unused) =>
    writeData({
      candidates: [
        {
          content: { parts: [{ text: "" }], role: "model" },
          finishReason: ends[finish][1],
          index: 0,
        },
      ],
      usageMetadata: {
        promptTokenCount: usage.inputTokens,
        cachedContentTokenCount: usage.cachedTokens,
        candidatesTokenCount: usage.outputTokens - usage.reasoningTokens,
        thoughtsTokenCount: usage.reasoningTokens,
        totalTokenCount: usage.inputTokens + usage.outputTokens,
      },
    }),
  fail: (status, message) => writeData({ error: { code: status, message, status: "INTERNAL" } }),
  refuse: (status, message) => ({ error: { code: status, message, status: "RESOURCE_EXHAUSTED" } }),
};

const chatChunk = (delta: object, finish: string | null = null) => writeData(chunk(delta, finish));

export const compatible: Wire = {
  packageName: "@ai-sdk/openai-compatible",
  toOptions: (url) => ({ baseURL: `${url}/v1`, apiKey, name: "house" }) satisfies OpenAICompatibleProviderSettings,
  begin: () => chatChunk({ role: "assistant", content: "" }),
  reason: (pieces) => pieces.map((text) => chatChunk({ reasoning_content: text })).join(""),
  say: (pieces) => pieces.map((content) => chatChunk({ content })).join(""),
  // The pieces of parallel calls are interleaved.
  call: (calls) =>
    [0, 1]
      .flatMap((half) =>
        calls.map(({ callId, name, arguments: text }, index) => {
          const called = { ...(half === 0 && { name }), arguments: halves(text)[half] };
          const begun = half === 0 && { id: callId, type: "function" };
          return chatChunk({ tool_calls: [{ index, ...begun, function: called }] });
        }),
      )
      .join(""),
  end: (finish, usage = unused) =>
    chatChunk({}, ends[finish][2]) +
    writeData({
      id: "chatcmpl-1",
      choices: [],
      usage: {
        prompt_tokens: usage.inputTokens,
        completion_tokens: usage.outputTokens,
        total_tokens: usage.inputTokens + usage.outputTokens,
        prompt_tokens_details: { cached_tokens: usage.cachedTokens },
        completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      },
    }) +
    "data: [DONE]\n\n",
  fail: (status, message) => writeData({ error: { message, type: "server_error", code: status } }),
  refuse: (_, message) => ({ error: { message, type: "rate_limit_error", code: "rate_limit_exceeded", param: null } }),
};

function halves(text: string): readonly [string, string] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}
