/** A gateway in front of one scripted server, with an adapter for each way of speaking to it; the model's name chooses it. */
import assert from "node:assert/strict";
import { after } from "node:test";
import { type Call, fromItem, gatherChunks, toCall, type WireCompletion, type WireMessage } from "../harness/chunks.ts";
import { type Endpoint, endpoints, type Heard, paths, tell, toRequest } from "../harness/client.ts";
import { type Wish, withoutComments } from "../harness/client.ts";
import { checkStream, type WireItem, type WireResponse } from "../harness/grammar.ts";
import { endAfter, type Gateway, openGateway, type Scope } from "../harness/house.ts";
import { answerEvents, answerJson, chunk, type Received, type Script } from "../harness/upstream.ts";
import { type ScriptedUpstream, startUpstream } from "../harness/upstream.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** The key that the gateway has for the server, and that nobody else may read. */
export const apiKey = "sk-upstream-0123456789abcdef";

export interface Scene extends Gateway {
  readonly upstream: ScriptedUpstream;
  /** Answers with this from now on. */
  plays(script: Script): void;
  /** The newest request of the server. */
  last(): Received;
}

type Adapters = Readonly<Record<string, Fields>>;

/** Each name is a model of this gateway, asked through an adapter with these keys; `chat` and `responses` are always there. */
export async function openScene(scope: Scope, more: Adapters = {}): Promise<Scene> {
  const upstream = await startUpstream(says("fine"));
  endAfter(scope, () => upstream.close());
  const ways: Adapters = { chat: {}, responses: { wire: "responses" }, ...more };
  const common = { type: "openai", base_url: `${upstream.url}/v1`, api_key: apiKey, retries: 0 };
  const named = Object.entries(ways).map(([name, keys]) => [name, { ...common, ...keys }]);
  const models = Object.fromEntries(Object.keys(ways).map((name) => [name, name]));
  const adapters = Object.fromEntries(named);
  const settings = { adapters, models, default_adapter: "chat" };
  const gateway = await openGateway(scope, { gateway: settings, http: { expose_reasoning: true } });
  const plays = (script: Script) => void (upstream.script = script);
  return { ...gateway, upstream, plays, last: () => upstream.received.at(-1)! };
}

/** One for all tests of a file. */
export function shareScene(more?: Adapters): () => Promise<Scene> {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  let opened: Promise<Scene> | undefined;
  return () => (opened ??= openScene({ after: (end) => void ends.push(end) }, more));
}

/** Both endpoints, whole and streamed. */
export const ways = endpoints.flatMap((on) => [false, true].map((stream) => ({ on, stream })));

export interface Asked extends Omit<Wish, "say"> {
  /** The model, and so the adapter. */
  readonly model: string;
  readonly say?: Wish["say"];
}

export function ask(scene: Scene, { model, say = "hi", more, ...wish }: Asked): Promise<Heard> {
  return tell(scene.address, { ...wish, say, more: { model, ...more } });
}

/** What a caller gets, in the same words whatever the endpoint and the form. */
export interface Answer {
  readonly text: string;
  readonly refusal: string;
  readonly reasoning: string;
  /** As `name arguments`. */
  readonly calls: readonly string[];
  /** Input, of these cached, output, of these reasoning. */
  readonly usage: readonly number[];
  readonly finish: string;
  readonly annotations: readonly Fields[];
  readonly logprobs: readonly unknown[];
}

const parameters = { type: "object", properties: {} };
const functions = ["look", "hear"].map((name) => ({ name, parameters }));

/** Two functions and a tool that takes free text, as each endpoint has them. */
export const tools = {
  chat: [
    ...functions.map((one) => ({ type: "function", function: one })),
    { type: "custom", custom: { name: "shell" } },
  ],
  responses: [...functions.map((one) => ({ type: "function", ...one })), { type: "custom", name: "shell" }],
};

const sure = { chat: { logprobs: true }, responses: { include: ["message.output_text.logprobs"] } };

/** Checks what callers get of what a server sends: of the first script on all four ways, of each further one on two. */
export async function judge(
  scene: Scene,
  model: string,
  hears: Partial<Answer>,
  ...scripts: readonly Script[]
): Promise<void> {
  for (const [index, script] of scripts.entries()) {
    scene.plays(script);
    for (const { on, stream } of ways) {
      if (index > 0 && (on === "chat") !== (stream === (index % 2 === 0))) continue;
      const heard = await listen(scene, { on, stream, model, more: { tools: tools[on], ...sure[on] } });
      const told = Object.keys(hears).map((key) => [key, heard[key as keyof Answer]]);
      assert.deepEqual(Object.fromEntries(told), hears, `${on}, ${stream ? "streamed" : "whole"}, script ${index}`);
    }
  }
}

/** Asks for everything that can be told, and fails if there is no answer. */
export async function listen(scene: Scene, { model, say = "hi", more, ...wish }: Asked): Promise<Answer> {
  const isChat = wish.on === "chat";
  const told = wish.stream && isChat ? { stream_options: { include_usage: true } } : {};
  const request = toRequest({ ...wish, say, more: { model, ...told, ...more } });
  const response = await fetch(scene.address + paths[wish.on], request);
  const raw = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${raw}`);
  if (isChat) return wish.stream ? fromChunks(raw) : fromCompletion(JSON.parse(raw));
  return fromResponse(wish.stream ? checkStream(withoutComments(raw)).response : JSON.parse(raw));
}

/** What the responses endpoint tells of an answer on the responses wire, unless another model is named. */
export async function respond(scene: Scene, stream: boolean, more: Fields = {}): Promise<WireResponse> {
  const { status, raw } = await ask(scene, { on: "responses", model: "responses", stream, more });
  assert.equal(status, 200, raw);
  return stream ? checkStream(withoutComments(raw)).response : JSON.parse(raw);
}

function fromChunks(raw: string): Answer {
  const { message, finishReason = "", usage, logprobs } = gatherChunks(withoutComments(raw), true);
  return toAnswer(message, message.calls, finishReason, usage, logprobs);
}

function fromCompletion({ choices: [choice], usage }: WireCompletion): Answer {
  const { reasoning_content: reasoning, tool_calls = [], ...message } = choice!.message;
  const logprobs = choice!.logprobs?.content ?? [];
  return toAnswer({ ...message, reasoning }, tool_calls.map(toCall), choice!.finish_reason, usage, logprobs);
}

type Said = Pick<WireMessage, "content" | "refusal" | "annotations"> & { readonly reasoning: string | undefined };

function toAnswer(
  said: Said,
  calls: readonly Call[],
  finish: string,
  usage: Counts,
  logprobs: Answer["logprobs"],
): Answer {
  const { content, refusal, reasoning = "", annotations = [] } = said;
  const read = { text: content ?? "", refusal: refusal ?? "", reasoning, annotations: annotations.map(toFlat) };
  return { ...read, calls: calls.map(toLine), finish, usage: countsOf(usage), logprobs };
}

function toLine(call: Call): string {
  return `${call.name} ${call.arguments}`;
}

function fromResponse(response: WireResponse): Answer {
  const parts = response.output.flatMap((item) => (item.type === "message" ? (item.content ?? []) : []));
  const calls = response.output.filter(({ type }) => type === "function_call" || type === "custom_tool_call");
  const cut = response["incomplete_details"] as { readonly reason: string } | null;
  const limit = cut?.reason === "max_output_tokens" ? "length" : cut?.reason;
  return {
    text: parts.map((part) => part["text"] ?? "").join(""),
    refusal: parts.map((part) => part["refusal"] ?? "").join(""),
    reasoning: response.output.map(thoughtOf).join(""),
    calls: calls.map(fromItem).map(toLine),
    usage: countsOf(response["usage"] as Fields),
    finish: limit ?? (calls.length > 0 ? "tool_calls" : "stop"),
    annotations: parts.flatMap((part) => (part["annotations"] ?? []) as Fields[]),
    logprobs: parts.flatMap((part) => (part["logprobs"] ?? []) as Fields[]),
  };
}

function thoughtOf({ type, content = [], summary = [] }: WireItem): string {
  return type === "reasoning" ? [...content, ...summary].map((part) => String(part["text"])).join("") : "";
}

type Counts = Fields | null | undefined;

function countsOf(usage: Counts): readonly number[] {
  const { prompt_tokens, completion_tokens, input_tokens, output_tokens, ...details } = usage ?? {};
  const inner = Object.assign({}, ...Object.values(details).filter((value) => typeof value === "object")) as Fields;
  const counts = [prompt_tokens ?? input_tokens, inner["cached_tokens"], completion_tokens ?? output_tokens];
  return [...counts, inner["reasoning_tokens"]].map(Number);
}

/** An annotation of a chat answer in the form of the other endpoint. */
function toFlat(annotation: unknown): Fields {
  const { type, ...rest } = annotation as { readonly type: string };
  return { type, ...(rest as Readonly<Record<string, Fields>>)[type] };
}

/** A message on either wire, as JSON or as a stream, as requested. */
export function says(text: string): Script {
  const message = item.message(text);
  const chunks = [chunk({ role: "assistant", content: text }), chunk({}, "stop")];
  const events = [textDelta(0, text), done(0, message), completed([message])];
  const forms = {
    chat: [answerEvents(...chunks), answerJson(whole({ content: text }))],
    responses: [answerEvents(...events), answerJson(responseOf([message]))],
  } as const;
  return (received, response) => {
    const [streamed, whole] = forms[received.path.includes("/responses") ? "responses" : "chat"];
    return (isStreamed(received) ? streamed : whole)(received, response);
  };
}

/** A whole chat completion of one message. */
export function whole(fields: Fields, finish_reason = "stop", more: Fields = {}): Fields {
  const message = { role: "assistant", ...fields };
  return { id: "chatcmpl-1", choices: [{ index: 0, message, finish_reason }], ...more };
}

export function isStreamed({ json }: Received): boolean {
  return (json as { readonly stream?: boolean }).stream === true;
}

/** Bytes as they are. */
export function sends(type: string, ...pieces: readonly (string | Uint8Array)[]): Script {
  return (_, response) => {
    response.writeHead(200, type === "" ? {} : { "content-type": type });
    for (const piece of pieces) response.write(piece);
    response.end();
  };
}

/** An event of the responses wire, by its name without `response.`. */
export function event(name: string, fields: Fields = {}): Fields {
  return { type: `response.${name}`, ...fields };
}

export function added(index: number, one: Fields): Fields {
  return event("output_item.added", { output_index: index, item: { ...one, status: "in_progress" } });
}

export function done(index: number, one: Fields): Fields {
  return event("output_item.done", { output_index: index, item: one });
}

export function responseOf(output: readonly Fields[], more: Fields = {}): Fields {
  return { id: "resp_1", object: "response", status: "completed", error: null, output, ...more };
}

export function completed(output: readonly Fields[], more: Fields = {}): Fields {
  return event("completed", { response: responseOf(output, more) });
}

export function textDelta(index: number, delta: string, more: Fields = {}): Fields {
  return event("output_text.delta", { output_index: index, content_index: 0, delta, logprobs: [], ...more });
}

const status = "completed";

/** Items as the responses wire has them. */
export const item = {
  message(text: string, more: Fields = {}): Fields {
    const content = [{ type: "output_text", text, annotations: [], logprobs: [], ...more }];
    return { type: "message", id: "msg_1", status, role: "assistant", content };
  },
  call(call_id: string, name: string | undefined, written: unknown, more: Fields = {}): Fields {
    return { type: "function_call", id: `fc_${call_id}`, status, call_id, name, arguments: written, ...more };
  },
  custom(call_id: string, name: string, input: string): Fields {
    return { type: "custom_tool_call", id: `ctc_${call_id}`, status, call_id, name, input };
  },
  reasoning(summary: readonly string[], more: Fields = {}): Fields {
    return { type: "reasoning", id: "rs_1", summary: summary.map((text) => ({ type: "summary_text", text })), ...more };
  },
};

/** What a server was sent, where two ways of writing the same are one: a text alone, or as the only part of a list. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    const { type, text, annotations = [], logprobs = [], ...more } = (value[0] ?? {}) as Fields;
    const isText = value.length === 1 && /^(input_|output_)?text$/.test(String(type));
    return isText && Object.keys(more).length === 0 && !String(annotations) && !String(logprobs)
      ? text
      : value.map(plain);
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

export function bodyOf({ json }: Received): Fields {
  return plain(json) as Fields;
}

/** What the server is sent for a request that is answered: its body without `model`. */
export async function send(scene: Scene, on: Endpoint, model: string, body: Fields): Promise<Fields> {
  scene.plays(says("fine"));
  const { status, raw } = await ask(scene, { on, model, stream: body["stream"] === true, more: body });
  assert.equal(status, 200, raw);
  const { model: _, ...sent } = bodyOf(scene.last());
  return sent;
}
