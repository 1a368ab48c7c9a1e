/** One scripted answer, heard whole and streamed, and how the two are compared. */
import assert from "node:assert/strict";
import { call, type Endpoint, paths, withoutComments } from "../harness/client.ts";
import { type Gathered, gatherChunks, toCall, type WireCompletion, addedTo } from "../harness/chunks.ts";
import { checkStream, type WireResponse } from "../harness/grammar.ts";
import type { Delta, Gateway, Script } from "../harness/house.ts";

export type Batches = readonly (readonly Delta[])[];
type Fields = Readonly<Record<string, unknown>>;

export const question = { chat: { messages: [{ role: "user", content: "Hi" }] }, responses: { input: "Hi" } } as const;

/** The text of an answer that must succeed, at least to begin. */
export async function hear(gateway: Gateway, on: Endpoint, script: Script, more: Fields): Promise<string> {
  gateway.model.script = script;
  const { status, raw } = await call(gateway.address, "POST", paths[on], { model: "m", ...question[on], ...more });
  assert.equal(status, 200, raw);
  return raw;
}

export async function playChat(gateway: Gateway, batches: Batches, more: Fields = {}) {
  const { stream_options: options, ...others } = more as { stream_options?: { include_usage?: boolean } };
  const whole = JSON.parse(await hear(gateway, "chat", batches, others)) as WireCompletion;
  const stream = withoutComments(await hear(gateway, "chat", batches, { ...more, stream: true }));
  return { whole, choice: whole.choices[0]!, stream, gathered: gatherChunks(stream, options?.include_usage === true) };
}

export async function playResponse(gateway: Gateway, batches: Batches, more: Fields = {}) {
  const whole = JSON.parse(await hear(gateway, "responses", batches, more)) as WireResponse;
  const stream = withoutComments(await hear(gateway, "responses", batches, { ...more, stream: true }));
  return { whole, ...checkStream(stream) };
}

/** A stream that fails midway, on either wire. */
export async function playFailure(gateway: Gateway, on: Endpoint, said: Batches, error: Error, more: Fields = {}) {
  const script: Script = async function* () {
    yield* said;
    throw error;
  };
  return withoutComments(await hear(gateway, on, script, { ...more, stream: true }));
}

/** An error as an adapter throws it. */
export function failure(code: string, message = "It broke.", more: object = {}): Error {
  return Object.assign(new Error(message), { code, ...more });
}

/** What differs from one request to the next is left out: of ids all but their kind, times, and what is sealed. */
export function normalise(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each) => {
      if (/^(id|item_id)$/.test(key) && typeof each === "string") return each.replace(/^([a-z]+)[-_]\w{8,}$/, "$1");
      if (/^(created|created_at|completed_at)$/.test(key) && typeof each === "number") return 0;
      if (key === "encrypted_content") return typeof each;
      return each;
    }),
  );
}

/** A whole completion as a stream's reader has it. */
export function gatherWhole(completion: WireCompletion): Omit<Gathered, "error"> {
  const { choices, object: _object, usage, ...rest } = completion;
  const { message, logprobs, finish_reason: finishReason } = choices[0]!;
  return {
    message: {
      content: message.content ?? "",
      refusal: message.refusal ?? "",
      reasoning: message.reasoning_content ?? "",
      calls: message.tool_calls?.map(toCall) ?? [],
      annotations: message.annotations ?? [],
      added: addedTo(message),
    },
    logprobs: logprobs?.content ?? [],
    finishReason,
    rest,
    usage,
  };
}
