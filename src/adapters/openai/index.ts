/** The openai adapter: speaks chat completions, or responses, to any compatible server. */
import { GatewayError } from "../../core/errors.ts";
import { toTraceHeaders } from "../trace.ts";
import type { Delta } from "../../core/delta.ts";
import type { Dialect } from "../../core/item.ts";
import type { Adapter, Tell } from "../../core/ports.ts";
import type { Complete } from "../../core/schema.ts";
import type { Turn } from "../../core/turn.ts";
import { createIsCustom } from "../custom.ts";
import { type Scrub, createScrubber } from "../http/refusal.ts";
import { readTarget } from "../http/target.ts";
import {
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
  createUpstream,
  headerOf,
} from "../http/upstream.ts";
import { readStart, readWhole } from "../http/whole.ts";
import { isCount, isObject, parseJson } from "../json.ts";
import type { Environment } from "../type.ts";
import * as chat from "./chat/reply.ts";
import { type ServerOptions, writeRequest as writeChatRequest } from "./chat/request.ts";
import { toCause, toRefusal } from "./failure.ts";
import { readModelNames, requireJson } from "./json.ts";
import * as responses from "./responses/reply.ts";
import { writeCountRequest, writeRequest as writeResponsesRequest } from "./responses/request.ts";
import type { ReplyReader } from "./stream.ts";
import type { options } from "./options.ts";
import { createWritten } from "./written.ts";

/** A dialect for talking to the upstream. */
interface Wire {
  readonly path: string;
  writeRequest(turn: Turn, tell: Tell | undefined, options: ServerOptions): Buffer;
  /** Absent: it has no way to count tokens. */
  readonly writeCountRequest?: (turn: Turn) => string;
  /** `isCustom`: that function stands in for a custom tool; `choices`: how many were requested. */
  createReplyReader(scrub: Scrub, isCustom?: IsCustom, choices?: number): ReplyReader;
  readWholeReply(body: string, scrub: Scrub, isCustom?: IsCustom, choices?: number): readonly Delta[];
}

type IsCustom = (name: string) => boolean;

const wires: Readonly<Record<Dialect, Wire>> = {
  chat: {
    path: "/chat/completions",
    writeRequest: (turn, _, options) => writeChatRequest(turn, options),
    createReplyReader: chat.createReplyReader,
    readWholeReply: chat.readWholeReply,
  },
  responses: {
    path: "/responses",
    writeRequest: writeResponsesRequest,
    writeCountRequest,
    createReplyReader: responses.createReplyReader,
    readWholeReply: responses.readWholeReply,
  },
};

export function create(chosen: Complete<typeof options>, environment: Environment): Adapter {
  const {
    base_url: baseUrl,
    wire: dialect,
    send_reasoning: sendsReasoning,
    custom_tools: customTools,
    max_tokens_field: maxTokensField,
    developer_role: developerRole,
    total_timeout_ms: totalMs,
    max_response_bytes: maxBytes,
  } = chosen;
  const wire = wires[dialect];
  const { writeCountRequest: writeCount } = wire;
  const headers = toHeaders(chosen);
  const { address, pathPrefix } = readTarget(baseUrl);
  // Gateways have the servers behind them under paths of their own.
  const source = `${address}${pathPrefix}`;
  const written = createWritten();
  const serverOptions = { sendsReasoning, customTools, maxTokensField, developerRole, source, written };
  const scrub = createScrubber([chosen.api_key ?? "", ...Object.values(chosen.headers ?? {})]);
  const upstream = createUpstream({
    baseUrl,
    proxy: chosen.proxy,
    environment,
    connectMs: chosen.connect_timeout_ms,
    firstByteMs: chosen.first_byte_timeout_ms,
    idleMs: chosen.idle_timeout_ms,
  });

  return {
    speaks: [dialect],
    async *stream(turn, signal, tell) {
      const response = await upstream.send(
        {
          method: "POST",
          path: wire.path,
          headers: turn.trace === undefined ? headers : { ...toTraceHeaders(turn.trace), ...headers },
          body: wire.writeRequest(turn, tell, serverOptions),
          totalMs: turn.stream ? undefined : totalMs,
        },
        signal,
      );
      const { choices, tools } = turn.settings;
      const isCustom = customTools === "function" ? createIsCustom(tools) : undefined;
      try {
        if (response.status < 200 || response.status > 299) throw await toRefusal(response, scrub);
        const { form, answer } = await toAnswer(response, scrub);
        if (form === "json") {
          const body = await readWhole(answer, maxBytes, scrub);
          const deltas = wire.readWholeReply(body, scrub, isCustom, choices);
          tellFewer(deltas, choices, tell);
          yield withSource(deltas, source);
          return;
        }
        const reader = wire.createReplyReader(scrub, isCustom, choices);
        while (!reader.isDone()) {
          const buffers = reader.isWhole() ? await pullRest(answer, signal) : await answer.pull();
          const deltas = buffers === undefined ? reader.end() : reader.read(buffers);
          if (deltas.length > 0) yield withSource(deltas, source);
          reader.check();
        }
      } finally {
        response.leave();
      }
    },
    countTokens:
      writeCount &&
      ((turn, signal) => {
        const path = `${wire.path}/input_tokens`;
        const body = writeCount(turn);
        return readCount(upstream, { method: "POST", path, headers, body, totalMs }, scrub, signal);
      }),
    models: () => readModels(upstream, headers, scrub),
    close() {
      written.clear();
      return upstream.close();
    },
  };
}

/** Many servers ignore how many choices they are asked for, and give one. */
function tellFewer(deltas: readonly Delta[], choices = 1, tell?: Tell): void {
  if (choices === 1) return;
  const given = new Set(deltas.map(({ choice = 0 }) => choice)).size;
  if (given < choices) tell?.({ type: "changed", what: "n", to: String(given) });
}

/** Names the server in what signs its model's reasoning: it goes back to no other. */
function withSource(deltas: readonly Delta[], source: string): readonly Delta[] {
  if (!deltas.some(({ type }) => type === "reasoning-extra")) return deltas;
  return deltas.map((delta) =>
    delta.type === "reasoning-extra" ? { ...delta, extra: { ...delta.extra, source } } : delta,
  );
}

/** The wait for what may follow the finish: usage and [DONE]. */
const restMs = 5_000;

/** The rest of a complete answer; undefined if its connection breaks or falls silent, unless the caller broke it. */
async function pullRest(response: UpstreamResponse, signal: AbortSignal): Promise<readonly Buffer[] | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, restMs, undefined);
  try {
    return await Promise.race([response.pull(), late.promise]);
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function toHeaders(chosen: Complete<typeof options>): Readonly<Record<string, string>> {
  const headers = new Map([
    ["content-type", "application/json"],
    ["accept", "application/json, text/event-stream"],
    ["user-agent", "portico"],
  ]);
  if (chosen.api_key !== undefined) headers.set("authorization", `Bearer ${chosen.api_key}`);
  if (chosen.organization !== undefined) headers.set("openai-organization", chosen.organization);
  if (chosen.project !== undefined) headers.set("openai-project", chosen.project);
  for (const [name, value] of Object.entries(chosen.headers ?? {})) headers.set(name.toLowerCase(), value);
  return Object.fromEntries(headers);
}

async function readModels(
  upstream: Upstream,
  headers: Readonly<Record<string, string>>,
  scrub: Scrub,
): Promise<readonly string[]> {
  const request = { method: "GET", path: "/models", headers, totalMs: 5_000 } as const;
  const response = await upstream.send(request, new AbortController().signal);
  try {
    if (response.status !== 200) throw await toRefusal(response, scrub);
    const names = readModelNames(requireJson(await readWhole(response, 4 * 1024 * 1024, scrub), scrub));
    if (names === undefined)
      throw new GatewayError("adapter_protocol", "The upstream sent something that is not a list of models.");
    return names;
  } finally {
    response.leave();
  }
}

/** Undefined if the upstream cannot count, or not for this model. */
async function readCount(
  upstream: Upstream,
  request: UpstreamRequest,
  scrub: Scrub,
  signal: AbortSignal,
): Promise<number | undefined> {
  const response = await upstream.send(request, signal);
  try {
    if (withoutRoute.has(response.status)) return undefined;
    if (response.status !== 200) {
      const refusal = await toRefusal(response, scrub);
      if (refusal.wireCode === "model_not_found") return undefined;
      throw refusal;
    }
    // Some servers answer any path with 200, and an error.
    const body = parseJson(await readWhole(response, 64 * 1024, scrub));
    const tokens = isObject(body) ? body["input_tokens"] : undefined;
    return isCount(tokens) ? tokens : undefined;
  } finally {
    response.leave();
  }
}

/** 405: it takes `input_tokens` for the id of a response. */
const withoutRoute: ReadonlySet<number> = new Set([404, 405, 501]);

/** Some servers stream, or do not, whatever was requested; the content type tells which, or without one the start. */
async function toAnswer(response: UpstreamResponse, scrub: Scrub): Promise<Answer> {
  const [written = ""] = (headerOf(response, "content-type") ?? "").split(";", 1);
  const type = written.trim().toLowerCase();
  if (type === "text/event-stream") return { form: "events", answer: response };
  if (type === "application/json" || type.endsWith("+json")) return { form: "json", answer: response };
  const { start, answer } = type === "" ? await peek(response) : { start: "", answer: response };
  if (/^(data|event|id|retry)?:/.test(start)) return { form: "events", answer };
  if (start.startsWith("{")) return { form: "json", answer };
  const found = /^[\w.+/-]{1,80}$/.test(type) ? type : "an unknown content type";
  throw new GatewayError(
    "adapter_protocol",
    `The upstream answered with ${found} instead of JSON or server-sent events. Check the adapter's base_url.`,
    { cause: toCause(response.status, undefined, await readStart(answer), scrub) },
  );
}

interface Answer {
  readonly form: "json" | "events";
  readonly answer: UpstreamResponse;
}

/** How an answer begins, and the same answer. */
async function peek(
  response: UpstreamResponse,
): Promise<{ readonly start: string; readonly answer: UpstreamResponse }> {
  let first = await response.pull();
  const start = Buffer.concat(first ?? [])
    .toString("utf8", 0, 100)
    .trimStart();
  const pull = () => {
    const pulled = first;
    first = undefined;
    return pulled === undefined ? response.pull() : Promise.resolve(pulled);
  };
  return { start, answer: { ...response, pull } };
}
