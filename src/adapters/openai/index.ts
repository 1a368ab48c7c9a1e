/** The openai adapter: chat completions, or responses, of any compatible server. */
import type { Adapter } from "../../core/adapter.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Dialect } from "../../core/settings.ts";
import type { Trace, Turn } from "../../core/turn.ts";
import { back as chat } from "../../wires/chat/index.ts";
import { isObject, parseObject } from "../../wires/fields.ts";
import { back as responses } from "../../wires/responses/index.ts";
import type { Back, Habits, Reader } from "../../wires/wire.ts";
import { type Client, createClient } from "../http/client.ts";
import { ask, type Limits, type Question, type Reading } from "../http/exchange.ts";
import { createScrub, type Scrub } from "../http/secrets.ts";

/** The keys of such an adapter, checked and with their defaults. */
export interface OpenaiSettings {
  readonly base_url: string;
  readonly wire: Dialect;
  readonly api_key?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly proxy?: string | undefined;
  readonly send_reasoning: boolean;
  readonly custom_tools: "custom" | "function";
  readonly max_tokens_field?: Habits["maxTokensField"];
  readonly developer_role?: Habits["developerRole"];
  readonly first_byte_timeout_ms: number;
  readonly idle_timeout_ms: number;
  readonly total_timeout_ms: number;
}

/** Its readers are told of the turn too: functions may stand for custom tools in it. */
interface Wire extends Pick<Back, "path" | "writeRequest"> {
  readReply(text: string, habits: Habits, turn: Turn): readonly Delta[];
  createReader(habits: Habits, turn: Turn): Reader;
}

const wires: Readonly<Record<Dialect, Wire>> = { chat, responses };

export function createOpenai(settings: OpenaiSettings, environment: NodeJS.ProcessEnv): Adapter {
  const wire = wires[settings.wire];
  const client = createClient({ baseUrl: settings.base_url, proxy: settings.proxy, environment });
  const headers = toHeaders(settings);
  const scrub = createScrub([settings.api_key ?? "", ...Object.values(settings.headers)]);
  const habits: Habits = {
    source: client.source,
    sendsReasoning: settings.send_reasoning,
    hasCustomTools: settings.custom_tools === "custom",
    maxTokensField: settings.max_tokens_field,
    developerRole: settings.developer_role,
  };
  const streamed: Limits = { firstByteMs: settings.first_byte_timeout_ms, idleMs: settings.idle_timeout_ms };
  const whole: Limits = { ...streamed, totalMs: settings.total_timeout_ms };

  return {
    speaks: [settings.wire],
    open(turn, signal, tell) {
      const question: Question = {
        method: "POST",
        path: wire.path,
        headers: turn.trace === undefined ? headers : [...toTraceHeaders(turn.trace), ...headers],
        body: wire.writeRequest(turn, habits, tell),
        limits: turn.stream ? streamed : whole,
      };
      const reading: Reading = {
        readWhole: (text) => wire.readReply(text, habits, turn),
        createReader: () => wire.createReader(habits, turn),
        scrub,
      };
      return ask(client, question, reading, signal);
    },
    models: remember(() => readModels(client, headers, scrub)),
    close: () => client.close(),
  };
}

/** The operator's count more than ours. */
function toHeaders({ api_key: apiKey, headers }: OpenaiSettings): string[] {
  const all = new Map([
    ["content-type", "application/json"],
    ["accept", "application/json, text/event-stream"],
    ["user-agent", "portico"],
  ]);
  if (apiKey !== undefined) all.set("authorization", `Bearer ${apiKey}`);
  for (const [name, value] of Object.entries(headers)) all.set(name.toLowerCase(), value);
  return [...all].flat();
}

function toTraceHeaders({ parent, state }: Trace): readonly string[] {
  return state === undefined ? ["traceparent", parent] : ["traceparent", parent, "tracestate", state];
}

/** Some servers send the list alone. */
async function readModels(client: Client, headers: string[], scrub: Scrub): Promise<readonly string[]> {
  let names: readonly string[] = [];
  const reading: Reading = {
    readWhole(text) {
      names = toNames(text);
      return [];
    },
    createReader: () => {
      throw noList();
    },
    scrub,
  };
  const limits = { firstByteMs: modelsMs, idleMs: modelsMs, totalMs: modelsMs };
  await ask(client, { method: "GET", path: "/models", headers, limits }, reading, new AbortController().signal);
  return names;
}

const modelsMs = 5_000;

function toNames(text: string): readonly string[] {
  const list = parseObject(`{"list":${text}}`)?.["list"];
  const entries = isObject(list) ? list["data"] : list;
  if (!Array.isArray(entries)) throw noList();
  return entries.flatMap((entry: unknown) => (isObject(entry) && typeof entry["id"] === "string" ? entry["id"] : []));
}

function noList(): GatewayError {
  return new GatewayError("adapter_protocol", "The upstream sent something that is not a list of models.");
}

const memoryMs = 10_000;

/** For a moment, and for all who ask meanwhile; a failure is not remembered. */
function remember<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let known: Promise<Value> | undefined;
  let until = 0;
  return () => {
    if (known !== undefined && performance.now() < until) return known;
    until = performance.now() + memoryMs;
    const reading = read();
    known = reading;
    reading.catch(() => {
      if (known === reading) known = undefined;
    });
    return reading;
  };
}
