/** The openai adapter: chat completions, or responses, of any compatible server. */
import type { Adapter } from "../core/adapter.ts";
import { GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Dialect } from "../core/settings.ts";
import type { Trace, Turn } from "../core/turn.ts";
import { back as chat } from "../wires/chat/index.ts";
import { isObject, parseObject } from "../wires/fields.ts";
import { back as responses } from "../wires/responses/index.ts";
import type { Back, Habits, Reader } from "../wires/wire.ts";
import { type Client, createClient, type Question } from "./http/client.ts";
import { ask } from "./http/exchange.ts";
import { createScrub, type Scrub } from "./http/secrets.ts";
import type { Timeouts } from "./waiting.ts";

/** The keys of such an adapter, checked and with their defaults. */
export interface OpenaiSettings extends Timeouts {
  readonly base_url: string;
  readonly wire: Dialect;
  readonly api_key?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly proxy?: string | undefined;
  readonly send_reasoning: boolean;
  readonly custom_tools: "custom" | "function";
  readonly max_tokens_field?: Habits["maxTokensField"];
  readonly developer_role?: Habits["developerRole"];
}

/** Its readers are told of the turn too: functions may stand for custom tools in it. */
interface Wire extends Pick<Back, "path" | "writeRequest"> {
  readReply(text: string, habits: Habits, turn: Turn): readonly Delta[];
  createReader(habits: Habits, turn: Turn): Reader;
}

const wires: Readonly<Record<Dialect, Wire>> = { chat, responses };

export function createOpenai(settings: OpenaiSettings, environment: NodeJS.ProcessEnv): Adapter {
  const { wire: dialect, base_url: baseUrl, proxy, api_key: apiKey, headers: own } = settings;
  const wire = wires[dialect];
  const client = createClient({ baseUrl, proxy, environment });
  const headers = toHeaders(apiKey, own);
  const scrub = createScrub([apiKey ?? "", ...Object.values(own)]);
  const habits: Habits = {
    source: client.source,
    sendsReasoning: settings.send_reasoning,
    hasCustomTools: settings.custom_tools === "custom",
    maxTokensField: settings.max_tokens_field,
    developerRole: settings.developer_role,
  };

  return {
    speaks: [dialect],
    open(turn, signal, tell) {
      const question: Question = {
        method: "POST",
        path: wire.path,
        headers: turn.trace === undefined ? headers : [...toTraceHeaders(turn.trace), ...headers],
        body: wire.writeRequest(turn, habits, tell),
      };
      const reading = {
        readWhole: (text: string) => wire.readReply(text, habits, turn),
        createReader: () => wire.createReader(habits, turn),
        scrub,
        timeouts: settings,
        stream: turn.stream,
      };
      return ask(client, question, reading, signal);
    },
    async countTokens(turn, signal) {
      if (dialect === "chat") return undefined;
      const written = parseObject(wire.writeRequest(turn, habits, () => {})) ?? {};
      const body = JSON.stringify(Object.fromEntries(counted.map((key) => [key, written[key]])));
      const path = `${wire.path}/input_tokens`;
      const { input_tokens: count } = await fetchObject(client, { method: "POST", path, headers, body }, scrub, signal);
      return typeof count === "number" ? count : undefined;
    },
    models: remember(() => readModels(client, headers, scrub)),
    close: () => client.close(),
  };
}

/** The operator's count more than ours. */
function toHeaders(apiKey: string | undefined, own: Readonly<Record<string, string>>): string[] {
  const all = new Map([
    ["content-type", "application/json"],
    ["accept", "application/json, text/event-stream"],
    ["user-agent", "portico"],
  ]);
  if (apiKey !== undefined) all.set("authorization", `Bearer ${apiKey}`);
  for (const [name, value] of Object.entries(own)) all.set(name.toLowerCase(), value);
  return [...all].flat();
}

function toTraceHeaders({ parent, state }: Trace): readonly string[] {
  return state === undefined ? ["traceparent", parent] : ["traceparent", parent, "tracestate", state];
}

/** What input_tokens takes of a create body. */
const counted = "model instructions input tools tool_choice parallel_tool_calls reasoning text truncation".split(" ");

async function readModels(client: Client, headers: string[], scrub: Scrub): Promise<readonly string[]> {
  const question = { method: "GET", path: "/models", headers } as const;
  const { data } = await fetchObject(client, question, scrub, new AbortController().signal);
  if (!Array.isArray(data)) throw unknownAnswer();
  return data.flatMap((entry: unknown) => (isObject(entry) && typeof entry["id"] === "string" ? entry["id"] : []));
}

type Fields = Readonly<Record<string, unknown>>;

/** Some servers send a list alone. */
async function fetchObject(client: Client, question: Question, scrub: Scrub, signal: AbortSignal): Promise<Fields> {
  let found: Fields | undefined;
  const reading = {
    readWhole(text: string) {
      found = parseObject(text.startsWith("[") ? `{"data":${text}}` : text);
      return [];
    },
    createReader: () => {
      throw unknownAnswer();
    },
    scrub,
    timeouts: { total_timeout_ms: 5_000 },
    stream: false,
  };
  await ask(client, question, reading, signal);
  return found ?? Promise.reject(unknownAnswer());
}

function unknownAnswer(): GatewayError {
  return new GatewayError("adapter_protocol", "The upstream sent something that is not what was asked for.");
}

const memoryMs = 10_000;

/** For a moment, and for all who ask meanwhile; a failure is not remembered. */
function remember<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let known: Promise<Value> | undefined;
  let until = 0;
  return () => {
    if (known !== undefined && performance.now() < until) return known;
    until = performance.now() + memoryMs;
    known = read();
    known.catch(() => (known = undefined));
    return known;
  };
}
