/**
 * Collects the chunks of a chat stream the way a careful client reads them, and throws at what no client should see.
 */
import assert from "node:assert/strict";
import type { WireItem } from "./grammar.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A piece of a call, or a whole one: the two differ only in which fields they have. */
export interface WireCall {
  readonly index?: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments: string };
  readonly custom?: { readonly name?: string; readonly input: string };
}

export interface WireMessage {
  readonly role?: string;
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string;
  readonly annotations?: readonly unknown[];
  readonly tool_calls?: readonly WireCall[];
  readonly function_call?: { readonly name: string; readonly arguments: string };
}

interface WireLogprobs {
  readonly content: readonly unknown[];
  readonly refusal: null;
}

interface WireChunk extends Fields {
  readonly choices: readonly {
    readonly index: number;
    readonly delta: WireMessage;
    readonly logprobs: WireLogprobs | null;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Fields | null;
  readonly error?: Fields;
}

export interface WireCompletion extends Fields {
  readonly choices: readonly {
    readonly index: number;
    readonly message: WireMessage;
    readonly logprobs: WireLogprobs | null;
    readonly finish_reason: string;
  }[];
  readonly usage?: Fields;
}

/** A call in one form, whatever its type. */
export interface Call {
  readonly id: string | undefined;
  readonly type: string | undefined;
  readonly name: string | undefined;
  arguments: string;
  /** Other fields of the wire. */
  added?: Fields;
}

/** What a client has received when the stream has ended. */
export interface Gathered {
  readonly message: {
    readonly content: string;
    readonly refusal: string;
    readonly reasoning: string;
    readonly calls: readonly Call[];
    readonly annotations: readonly unknown[];
    /** Other fields of the wire. */
    readonly added: Fields;
  };
  readonly logprobs: readonly unknown[];
  readonly finishReason: string | undefined;
  /** The fields next to the choices, from the last chunk. */
  readonly rest: Fields;
  readonly usage: Fields | undefined;
  readonly error: Fields | undefined;
}

/** The bodies of a stream; the last message must be `[DONE]`, and no message has a name. */
export function readChunks(text: string): WireChunk[] {
  assert.ok(text.endsWith("\n\n"), "a stream ends with a whole message");
  assert.ok(!text.includes("\r"), "lines end with \\n only");
  const messages = text.slice(0, -2).split("\n\n");
  assert.equal(messages.pop(), "data: [DONE]");
  return messages.map((message) => {
    assert.match(message, /^data: \{[^\n]+\}$/, "a message is one line");
    return JSON.parse(message.slice("data: ".length));
  });
}

/** `showsUsage`: the request asked for usage, so that every chunk has the field. */
export function gatherChunks(text: string, showsUsage = false): Gathered {
  const chunks = readChunks(text);
  const error = chunks.at(-1)?.error;
  if (error !== undefined) chunks.pop();
  const usage = chunks.at(-1)?.choices.length === 0 ? chunks.pop()?.usage : undefined;
  const calls: Call[] = [];
  const logprobs: unknown[] = [];
  const annotations: unknown[] = [];
  const added: Record<string, unknown> = {};
  let [content, refusal, reasoning] = ["", "", ""];
  let finishReason: string | undefined;

  for (const [position, chunk] of chunks.entries()) {
    assert.equal(chunk["object"], "chat.completion.chunk");
    for (const key of ["id", "created", "model"]) assert.equal(chunk[key], chunks[0]?.[key], `one ${key} for all`);
    assert.equal(chunk.usage, showsUsage ? null : undefined);
    assert.equal(chunk.choices.length, 1);
    const { index, delta, ...choice } = chunk.choices[0]!;
    assert.equal(index, 0);
    assert.equal(delta.role, position === 0 ? "assistant" : undefined, "only the first chunk has the role");
    assert.equal(finishReason, undefined, "nothing is sent after the finish reason");
    content += delta.content ?? "";
    refusal += delta.refusal ?? "";
    reasoning += delta.reasoning_content ?? "";
    for (const piece of delta.tool_calls ?? []) acceptCall(piece, calls);
    annotations.push(...(delta.annotations ?? []));
    for (const [key, value] of Object.entries(addedTo(delta))) {
      const before = added[key];
      added[key] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
    }
    logprobs.push(...(choice.logprobs?.content ?? []));
    if (choice.finish_reason !== null) {
      finishReason = choice.finish_reason;
      assert.deepEqual(delta, {}, "the finish reason is sent alone");
    }
  }
  assert.equal(finishReason === undefined, error !== undefined, "a stream finishes once, or fails");
  const { choices: _choices, usage: _usage, object: _object, ...rest } = chunks.at(-1) ?? { choices: [] };
  return {
    message: { content, refusal, reasoning, calls, annotations, added },
    logprobs,
    finishReason,
    rest,
    usage: usage ?? undefined,
    error,
  };
}

/** The fields of a message that no other reader knows. */
export function addedTo(message: WireMessage): Fields {
  return Object.fromEntries(Object.entries(message).filter(([key]) => !knownOfMessage.has(key)));
}

const knownOfMessage = new Set([
  "role",
  "content",
  "refusal",
  "reasoning_content",
  "annotations",
  "tool_calls",
  "function_call",
]);

/** A call begins once, with everything but its arguments; then they follow, and never those of an earlier call. */
function acceptCall(piece: WireCall, calls: Call[]): void {
  const received = toCall(piece);
  if (received.id !== undefined) {
    assert.equal(piece.index, calls.length, "calls are numbered from 0 without gaps");
    assert.equal(received.arguments, "", "a call begins without arguments");
    calls.push(received);
    return;
  }
  const call = calls.at(-1)!;
  assert.equal(piece.index, calls.length - 1, "arguments belong to the newest call");
  assert.deepEqual([received.name, received.type], [undefined, undefined], "a call is named once");
  assert.equal(piece.custom !== undefined, call.type === "custom");
  call.arguments += received.arguments;
  if (received.added !== undefined) call.added = { ...call.added, ...received.added };
}

export function toCall({ id, type, function: called, custom, index: _index, ...added }: WireCall): Call {
  const written = called?.arguments ?? custom?.input ?? "";
  return {
    id,
    type,
    name: called?.name ?? custom?.name,
    arguments: written,
    ...(Object.keys(added).length > 0 && { added }),
  };
}

/** A call of the responses dialect in the form in which chunks are collected. */
export function fromItem(item: WireItem): Call {
  const isCustom = item.type === "custom_tool_call";
  return {
    id: String(item["call_id"]),
    type: isCustom ? "custom" : "function",
    name: String(item["name"]),
    arguments: String(item[isCustom ? "input" : "arguments"]),
  };
}
