/** The openai adapter fulfils the contract on both wires, against a server on the loopback interface. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createOpenai } from "./made.ts";
import { answerJson, beginEvents, chunk, startUpstream, writeEvent } from "../upstream.ts";
import { type Said, type SaidFailure, type Scenario, type Scene, adapterContract } from "./contract.ts";
import { completed, item, itemAdded, itemDone, response, responseEvent } from "./openai-events.ts";

/** How a wire writes what the upstream sends. */
interface WireFormat {
  reasoning(text: string): unknown;
  text(text: string): unknown;
  calls(said: Said): readonly unknown[];
  failure(failure: SaidFailure): unknown;
  end(said: Said): readonly unknown[];
  whole(said: Said): unknown;
}

const chat: WireFormat = {
  reasoning: (text) => chunk({ reasoning_content: text }),
  text: (text) => chunk({ content: text }),
  calls: ({ calls }) => [
    ...calls.map(({ callId, name }, index) =>
      chunk({ tool_calls: [{ index, id: callId, type: "function", function: { name, arguments: "" } }] }),
    ),
    ...inTurns(calls.map((call) => call.arguments)).map(([index, piece]) =>
      chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ],
  failure: ({ message }) => ({ error: { message, type: "server_error", code: null } }),
  end: (said) => [chunk({}, said.finish.replace("-", "_")), { choices: [], usage: chatUsage(said) }, "[DONE]"],
  whole: (said) => ({
    choices: [{ index: 0, message: { role: "assistant", content: said.pieces.join("") }, finish_reason: "stop" }],
    usage: chatUsage(said),
  }),
};

function chatUsage({ usage }: Said): unknown {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

const responses: WireFormat = {
  reasoning: (text) => responseEvent("reasoning_text.delta", { output_index: 0, content_index: 0, delta: text }),
  text: (text) => responseEvent("output_text.delta", { output_index: 1, content_index: 0, delta: text, logprobs: [] }),
  calls: ({ calls }) => [
    ...calls.map(({ callId, name }, index) => itemAdded(index, item.call(callId, name, ""))),
    ...inTurns(calls.map((call) => call.arguments)).map(([index, delta]) =>
      responseEvent("function_call_arguments.delta", { output_index: index, delta }),
    ),
    ...calls.map((call, index) => itemDone(index, item.call(call.callId, call.name, call.arguments))),
  ],
  failure: ({ message }) =>
    responseEvent("failed", { response: response([], { status: "failed", error: { code: "server_error", message } }) }),
  end: (said) => [
    said.finish === "length"
      ? responseEvent("incomplete", {
          response: response([], {
            status: "incomplete",
            incomplete_details: { reason: "max_output_tokens" },
            usage: responsesUsage(said),
          }),
        })
      : completed([], { usage: responsesUsage(said) }),
  ],
  whole: (said) => response([item.message(said.pieces.join(""))], { usage: responsesUsage(said) }),
};

function responsesUsage({ usage }: Said): unknown {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}

adapterContract("openai (chat)", (scenario, said) => open("chat", chat, scenario, said));
adapterContract("openai (responses)", (scenario, said) => open("responses", responses, scenario, said));

async function open(wire: "chat" | "responses", format: WireFormat, scenario: Scenario, said: Said): Promise<Scene> {
  const gone = Promise.withResolvers<void>();
  let pushed = 0;
  const server = await startUpstream(async ({ json }, reply) => {
    reply.once("close", gone.resolve);
    if (scenario === "error-before" && said.failure !== undefined) {
      const { status, message } = said.failure;
      return void answerJson({ error: { message } }, status)({ ...server.received[0]! }, reply);
    }
    if ((json as { stream?: boolean }).stream !== true) return answer(reply, format.whole(said));
    beginEvents(reply);
    if (scenario === "flood") return await flood(reply);
    await sendAnswer(reply);
  });

  async function sendAnswer(reply: ServerResponse): Promise<void> {
    for (const text of said.reasoning) writeEvent(reply, format.reasoning(text));
    for (const [index, text] of said.pieces.entries()) {
      if (scenario === "drip") await said.received(index);
      writeEvent(reply, format.text(text));
    }
    if (scenario === "hang") return;
    for (const event of said.calls.length > 0 ? format.calls(said) : []) writeEvent(reply, event);
    for (const event of said.failure ? [format.failure(said.failure)] : format.end(said)) writeEvent(reply, event);
    reply.end();
  }

  async function flood(reply: ServerResponse): Promise<void> {
    const event = format.text(said.pieces[0]!);
    while (pushed < said.times && !reply.destroyed) {
      pushed += 1;
      if (!writeEvent(reply, event)) await Promise.race([once(reply, "drain"), gone.promise]);
    }
  }

  const adapter = createOpenai({ base_url: server.url, wire }, {});
  return {
    adapter,
    gone: gone.promise,
    pushed: () => pushed,
    async close() {
      await adapter.close?.();
      await server.close();
    },
  };
}

function answer(reply: ServerResponse, body: unknown): void {
  reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Cuts texts into small pieces and interleaves them. */
function inTurns(texts: readonly string[]): readonly (readonly [index: number, piece: string])[] {
  const longest = Math.max(...texts.map((text) => text.length));
  const pieces: (readonly [number, string])[] = [];
  for (let at = 0; at < longest; at += 5) {
    for (const [index, text] of texts.entries()) if (at < text.length) pieces.push([index, text.slice(at, at + 5)]);
  }
  return pieces;
}
