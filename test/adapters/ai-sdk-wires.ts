/** The wire formats of three providers, written by hand: what their servers send for an answer. */
import type { AnthropicProviderSettings } from "@ai-sdk/anthropic";
import type { GoogleGenerativeAIProviderSettings } from "@ai-sdk/google";
import type { OpenAICompatibleProviderSettings } from "@ai-sdk/openai-compatible";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { createAiSdk } from "./made.ts";
import type { Adapter } from "../../src/core/ports.ts";
import type { Finish, Usage } from "../../src/core/turn.ts";
import { type Script, beginEvents } from "../upstream.ts";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const apiKey = "sk-very-secret-key";

export type AiSdkOptions = Partial<Parameters<typeof createAiSdk>[0]>;

/** How one provider's server writes its answers. */
export interface Wire {
  readonly packageName: string;
  /** The options that direct the package to a server. */
  toOptions(url: string): Readonly<Record<string, unknown>>;
  begin(usage?: Usage): string;
  reason(pieces: readonly string[], signature?: string): string;
  say(pieces: readonly string[], index?: number): string;
  call(calls: readonly { callId: string; name: string; arguments: string }[]): string;
  end(finish: Finish, usage?: Usage): string;
  /** An error within the stream, and as the body of a response. */
  fail(status: number, message: string): string;
  refuse(status: number, message: string): unknown;
}

export function createAdapter(wire: Wire, url: string, options: AiSdkOptions = {}): Adapter {
  const { options: more, ...rest } = options;
  const chosen = { package: wire.packageName, options: { ...wire.toOptions(url), ...more }, ...rest };
  return createAiSdk(chosen, {}, root);
}

/** A script that streams these texts unchanged. */
export function answerStream(...texts: readonly string[]): Script {
  return (_, response) => {
    beginEvents(response);
    response.end(texts.join(""));
  };
}

/** Writes, and waits while the reader is slow. */
export async function push(response: ServerResponse, text: string): Promise<void> {
  if (!response.write(text)) await once(response, "drain");
}

function event(body: { readonly type?: string; readonly [key: string]: unknown }, named = false): string {
  return `${named ? `event: ${body.type}\n` : ""}data: ${JSON.stringify(body)}\n\n`;
}

const none: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

const anthropicEvent = (type: string, body: object = {}): string => event({ type, ...body }, true);

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

export const anthropic: Wire & { hide(secret: string, index?: number): string } = {
  packageName: "@ai-sdk/anthropic",
  toOptions: (url) => ({ baseURL: `${url}/v1`, apiKey }) satisfies AnthropicProviderSettings,
  begin: (usage = none) =>
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
  hide: (data, index = 1) => anthropicBlock(index, { type: "redacted_thinking", data }, []),
  say: (pieces, index = 2) =>
    anthropicBlock(
      index,
      { type: "text", text: "" },
      pieces.map((text) => ({ type: "text_delta", text })),
    ),
  call: (calls) =>
    calls
      .map((call, number) =>
        anthropicBlock(
          3 + number,
          { type: "tool_use", id: call.callId, name: call.name, input: {} },
          halves(call.arguments).map((partial_json) => ({ type: "input_json_delta", partial_json })),
        ),
      )
      .join(""),
  end: (finish, usage = none) =>
    anthropicEvent("message_delta", {
      delta: {
        stop_reason: { stop: "end_turn", length: "max_tokens", "tool-calls": "tool_use", "content-filter": "refusal" }[
          finish
        ],
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

const googleParts = (parts: readonly object[], more: object = {}): string =>
  event({ candidates: [{ content: { parts, role: "model" }, index: 0, ...more }], responseId: "r_1" });

export const google: Wire = {
  packageName: "@ai-sdk/google",
  toOptions: (url) => ({ baseURL: `${url}/v1beta`, apiKey }) satisfies GoogleGenerativeAIProviderSettings,
  begin: () => "",
  reason: (pieces, signature) =>
    pieces
      .map((text, index) =>
        googleParts([
          { text, thought: true, ...(index === pieces.length - 1 && signature && { thoughtSignature: signature }) },
        ]),
      )
      .join(""),
  say: (pieces) => pieces.map((text) => googleParts([{ text }])).join(""),
  call: (calls) =>
    googleParts(
      calls.map((call, index) => ({
        functionCall: { id: call.callId, name: call.name, args: JSON.parse(call.arguments) },
        ...(index === 0 && { thoughtSignature: "thought-sig-1" }),
      })),
    ),
  end: (finish, usage = none) =>
    event({
      candidates: [
        {
          content: { parts: [{ text: "" }], role: "model" },
          finishReason: { stop: "STOP", "tool-calls": "STOP", length: "MAX_TOKENS", "content-filter": "SAFETY" }[
            finish
          ],
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
  fail: (status, message) => event({ error: { code: status, message, status: "INTERNAL" } }),
  refuse: (status, message) => ({ error: { code: status, message, status: "RESOURCE_EXHAUSTED" } }),
};

const chatChunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  event({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "model-1",
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  });

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
        calls.map((call, index) =>
          chatChunk({
            tool_calls: [
              {
                index,
                ...(half === 0 && { id: call.callId, type: "function" }),
                function: { ...(half === 0 && { name: call.name }), arguments: halves(call.arguments)[half] },
              },
            ],
          }),
        ),
      )
      .join(""),
  end: (finish, usage = none) =>
    chatChunk(
      {},
      { stop: "stop", length: "length", "tool-calls": "tool_calls", "content-filter": "content_filter" }[finish],
    ) +
    event({
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
  fail: (status, message) => event({ error: { message, type: "server_error", code: status } }),
  refuse: (_, message) => ({ error: { message, type: "rate_limit_error", code: "rate_limit_exceeded", param: null } }),
};

export const wires: readonly Wire[] = [anthropic, google, compatible];

function halves(text: string): readonly [string, string] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}
