/** A caller of either endpoint, who reads answers as strictly as a careful client, and a model's server that records what it saw. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send, type IncomingMessage } from "node:http";
import { type Call, type WireCompletion, gatherChunks, toCall } from "./chunks.ts";
import { type WireResponse, checkStream } from "./grammar.ts";
import { endAfter, type Scope, token } from "./house.ts";
import { answerEvents, answerJson, chunk, type Received, type Script, startUpstream } from "./upstream.ts";

export type Endpoint = "chat" | "responses";
export const endpoints: readonly Endpoint[] = ["chat", "responses"];
export const paths = { chat: "/v1/chat/completions", responses: "/v1/responses" } as const;

export interface Wish {
  readonly on: Endpoint;
  /** A text, or the messages or items themselves. */
  readonly say: string | readonly unknown[];
  readonly stream?: boolean;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the body. */
  readonly more?: Readonly<Record<string, unknown>>;
}

export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly raw: string;
  readonly id: string;
  readonly text: string;
  readonly calls: readonly Call[];
  /** What the caller gets of a failure, as a status or inside a stream. */
  readonly error: Readonly<Record<string, unknown>> | undefined;
}

/** Asks and reads the answer to its end; a stream is checked against the grammar of its wire. */
export async function tell(address: string, wish: Wish, signal?: AbortSignal): Promise<Heard> {
  const response = await fetch(address + paths[wish.on], { ...toRequest(wish), ...(signal && { signal }) });
  return readAnswer(wish, response.status, response.headers, await response.text());
}

/** A turn that must succeed. */
export async function tellWell(address: string, wish: Wish): Promise<Heard> {
  const heard = await tell(address, wish);
  assert.equal(heard.status, 200, heard.raw);
  assert.equal(heard.error, undefined, heard.raw);
  return heard;
}

/** The parts of the HTTP request. */
export function toRequest({ on, say, stream = false, token: own = token, headers = {}, more = {} }: Wish) {
  const messages = typeof say === "string" ? [{ role: "user", content: say }] : say;
  const body = on === "chat" ? { messages } : { input: say };
  return {
    method: "POST",
    headers: { authorization: `Bearer ${own}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "any", ...body, ...(stream && { stream }), ...more }),
  };
}

/** The answer as soon as its head is there, to be read piece by piece or left. */
export async function begin(address: string, wish: Wish): Promise<IncomingMessage> {
  const { body, ...request } = toRequest(wish);
  const [response] = (await once(send(address + paths[wish.on], request).end(body), "response")) as [IncomingMessage];
  return response;
}

export function readAnswer(wish: Wish, status: number, headers: Headers, raw: string): Heard {
  const heard = { status, headers, raw };
  if (status !== 200) return { ...heard, id: "", text: "", calls: [], error: JSON.parse(raw).error };
  if (wish.on === "chat") {
    if (wish.stream) {
      const { message, rest, error } = gatherChunks(bare(raw), wantsUsage(wish));
      return { ...heard, id: String(rest["id"]), text: message.content, calls: message.calls, error };
    }
    const completion = JSON.parse(raw) as WireCompletion;
    const message = completion.choices[0]?.message;
    const calls = (message?.tool_calls ?? []).map(toCall);
    return { ...heard, id: String(completion["id"]), text: message?.content ?? "", calls, error: undefined };
  }
  const response = wish.stream ? checkStream(bare(raw)).response : (JSON.parse(raw) as WireResponse);
  const said = response.output.flatMap((item) => item.content ?? []).map((part) => String(part["text"] ?? ""));
  const called = response.output.filter((item) => item.type === "function_call");
  return {
    ...heard,
    id: String(response["id"]),
    text: said.join(""),
    calls: called.map((item) => ({
      id: String(item["call_id"]),
      type: "function",
      name: String(item["name"]),
      arguments: String(item["arguments"]),
    })),
    error: response.error ?? undefined,
  };
}

function wantsUsage({ more }: Wish): boolean {
  return (more?.["stream_options"] as { readonly include_usage?: boolean } | undefined)?.include_usage === true;
}

/** A stream without its heartbeats. */
export function withoutComments(raw: string): string {
  return raw.replaceAll(/^: [^\n]*\n\n/gm, "");
}

/** What every stream has, also without the ids by which one can be resumed. */
const bare = (raw: string) => withoutComments(raw).replaceAll(/^id: [^\n]*\n/gm, "");

/** The data of a stream's events, in order, as text. */
export function readEvents(raw: string): string[] {
  return raw
    .split("\n\n")
    .filter((block) => block !== "" && !block.startsWith(":"))
    .map((block) => block.replace(/^(event: .*\n|id: .*\n)*/, "").replace(/^data: /, ""));
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly raw: string;
  /** The body as JSON, of whatever shape the test expects. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/** Any other request; a body that is not text is sent as JSON. */
export async function call(
  address: string,
  method: string,
  path: string,
  body?: unknown,
  { token: own = token, headers = {} }: Pick<Wish, "token" | "headers"> = {},
): Promise<Answered> {
  const response = await fetch(address + path, {
    method,
    headers: {
      authorization: `Bearer ${own}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const raw = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, raw, body: isJson ? JSON.parse(raw) : undefined };
}

/** A model's server with a chat completions endpoint. */
export interface Server {
  /** Config of the adapter that uses it. */
  readonly adapters: Record<string, Record<string, unknown>>;
  readonly url: string;
  readonly received: readonly Received[];
  /** What it saw, request by request, as `role: text`. */
  readonly shown: readonly (readonly string[])[];
  /** What it answers from now on; at first `re: ` and the last text it saw. */
  script: Script;
}

/** Starts a model's server on a free port. It answers whole or streamed, as requested. */
export async function startServer(scope: Scope, more: Readonly<Record<string, unknown>> = {}): Promise<Server> {
  const upstream = await startUpstream(
    replyWith((received) => ({ content: `re: ${messagesOf(received).at(-1)?.content}` })),
  );
  endAfter(scope, () => upstream.close());
  return {
    adapters: { model: { type: "openai", base_url: `${upstream.url}/v1`, api_key: "sk-upstream", ...more } },
    url: upstream.url,
    received: upstream.received,
    get shown() {
      return upstream.received.map((received) =>
        messagesOf(received).map(({ role, content }) => `${role}: ${content}`),
      );
    },
    get script() {
      return upstream.script;
    },
    set script(script) {
      upstream.script = script;
    },
  };
}

interface Shown {
  readonly role: string;
  readonly content: string | null;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string }[];
}

export function messagesOf(received: Received): readonly Shown[] {
  return (received.json as { readonly messages: readonly Shown[] }).messages;
}

/** A script that answers with one assistant message; a streamed text comes in two pieces. */
export function replyWith(reply: (received: Received) => { content?: string; tool_calls?: readonly object[] }): Script {
  return (received, response) => {
    const message = reply(received);
    const finish = message.tool_calls === undefined ? "stop" : "tool_calls";
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const { stream } = received.json as { readonly stream?: boolean };
    if (!stream) {
      const choices = [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }];
      return answerJson({ id: "chatcmpl-1", object: "chat.completion", created: 1, model: "m", choices, usage })(
        received,
        response,
      );
    }
    const pieces = message.content?.match(/^.{2}|.+$/gs) ?? [];
    return answerEvents(
      chunk({ role: "assistant", ...(message.tool_calls && { tool_calls: message.tool_calls }) }),
      ...pieces.map((content) => chunk({ content })),
      chunk({}, finish),
      { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage },
    )(received, response);
  };
}

/** What has arrived once this text has. */
export async function hear(response: IncomingMessage, text: string): Promise<string> {
  const arrived = Promise.withResolvers<void>();
  let heard = "";
  response.on("error", () => {});
  response.on("data", (piece: Buffer) => {
    heard += String(piece);
    if (heard.includes(text)) arrived.resolve();
  });
  response.on("close", () => arrived.reject(new Error(`It ended without '${text}': ${heard}`)));
  await arrived.promise;
  return heard;
}

/** All that a streamed answer brings. */
export async function readAll(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += piece;
  return text;
}
