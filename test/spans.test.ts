/** Spans, as an OpenTelemetry SDK collects them. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { Server } from "node:http";
import { after, before, beforeEach, test, type TestContext } from "node:test";
import {
  type Context,
  context as contexts,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { WebSocket } from "ws";
import { openPortico } from "../src/index.ts";
import { makeFolder, token } from "./gateway.ts";
import { startUpstream } from "./upstream.ts";

const exporter = new InMemorySpanExporter();
const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const caller = "00f067aa0ba902b7";
const traceparent = `00-${traceId}-${caller}-01`;
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const chat = { model: "m", messages: [{ role: "user", content: "Hello" }], user: "ann" };

before(() => {
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  trace.setGlobalTracerProvider(provider);
});
after(() => trace.disable());
beforeEach(() => exporter.reset());

test("a request is a span in its caller's trace, with a child span per attempt whose id the upstream receives", async (context) => {
  const { address, upstream, lines } = await open(context);
  const asked = await ask(address, { ...headers, traceparent, tracestate: "vendor=1" });
  assert.equal(asked.status, 200);
  const [request, attempt] = await spans(2);
  assert.equal(request?.name, "POST /v1/chat/completions");
  assert.equal(request.kind, SpanKind.SERVER);
  assert.equal(request.spanContext().traceId, traceId);
  assert.equal(request.parentSpanContext?.spanId, caller);
  assert.equal(request.status.code, SpanStatusCode.UNSET);
  assert.deepEqual(request.attributes, {
    "http.request.method": "POST",
    "http.route": "/v1/chat/completions",
    "http.response.status_code": 200,
    "portico.request.id": asked.headers.get("x-request-id"),
    "portico.history": "new",
    "gen_ai.request.model": "m",
    "gen_ai.conversation.id": asked.headers.get("x-portico-session"),
  });
  assert.equal(attempt?.name, "chat m");
  assert.equal(attempt.kind, SpanKind.CLIENT);
  assert.equal(attempt.parentSpanContext?.spanId, request.spanContext().spanId);
  assert.deepEqual(attempt.attributes, {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "up",
    "gen_ai.request.model": "m",
    "gen_ai.request.stream": false,
    "portico.outcome": "completed",
    "gen_ai.usage.input_tokens": 3,
    "gen_ai.usage.output_tokens": 2,
  });
  const sent = upstream.received.at(-1)?.headers;
  assert.equal(sent?.traceparent, `00-${traceId}-${attempt.spanContext().spanId}-01`);
  assert.equal(sent?.tracestate, "vendor=1");
  assert.equal(lines.find(({ path }) => path !== undefined)?.["traceId"], traceId);
});

test("without a caller's trace a request starts one, and its log line has the id", async (context) => {
  const { address, upstream, lines } = await open(context);
  assert.equal((await ask(address, headers)).status, 200);
  const [request, attempt] = await spans(2);
  assert.equal(request?.parentSpanContext, undefined);
  assert.equal(attempt?.spanContext().traceId, request?.spanContext().traceId);
  assert.match(String(upstream.received.at(-1)?.headers["traceparent"]), new RegExp(request!.spanContext().traceId));
  assert.equal(lines.find(({ path }) => path !== undefined)?.["traceId"], request?.spanContext().traceId);
});

test("every attempt is a separate span; a failure of the gateway is an error, and a caller's mistake is not", async (context) => {
  const { address } = await open(context, (count) => (count < 2 ? 500 : 200), { times: 1, base_ms: 1 });
  assert.equal((await ask(address, headers)).status, 200);
  const [, failed, answered] = await spans(3);
  assert.deepEqual(failed?.status, { code: SpanStatusCode.ERROR });
  assert.equal(failed.attributes["error.type"], "adapter_error");
  assert.equal(answered?.attributes["portico.outcome"], "completed");

  exporter.reset();
  assert.equal((await ask(address, headers, { model: "m" })).status, 400);
  const [refused] = await spans(1);
  assert.equal(refused?.status.code, SpanStatusCode.UNSET);
  assert.equal(refused.attributes["error.type"], "missing_required_parameter");

  const broken = await open(context, () => 500);
  exporter.reset();
  assert.equal((await ask(broken.address, headers)).status, 502);
  const [told] = await spans(2);
  assert.equal(told?.status.code, SpanStatusCode.ERROR);
  assert.equal(told.attributes["error.type"], "adapter_error");
});

test("an SDK that creates no spans leaves the caller's trace unchanged", async (context) => {
  const provider = trace.getTracerProvider();
  trace.disable();
  diag.setLogger({ verbose() {}, debug() {}, info() {}, warn() {}, error() {} });
  context.after(() => {
    diag.disable();
    trace.setGlobalTracerProvider(provider);
  });
  const { address, upstream, lines } = await open(context);
  assert.equal((await ask(address, { ...headers, traceparent })).status, 200);
  assert.equal(upstream.received.at(-1)?.headers["traceparent"], traceparent);
  assert.equal((await ask(address, headers)).status, 200);
  assert.equal(upstream.received.at(-1)?.headers["traceparent"], undefined);
  while (lines.length < 2) await new Promise((resolve) => void setImmediate(resolve));
  assert.deepEqual(
    lines.map(({ traceId: id }) => id),
    [traceId, undefined],
  );
});

test("the span of an unknown path has no name of its own", async (context) => {
  const { address } = await open(context);
  assert.equal((await fetch(`${address}/whatever/${token}`, { headers })).status, 404);
  const [span] = await spans(1);
  assert.equal(span?.name, "GET");
  assert.ok(!JSON.stringify(span.attributes).includes(token));
});

test("each turn of a WebSocket is a span in the trace of its upgrade", async (context) => {
  const { address } = await open(context);
  const socket = new WebSocket(`${address.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${token}`, traceparent },
  });
  await new Promise((resolve) => void socket.once("open", resolve));
  for (let turn = 0; turn < 2; turn += 1) {
    const over = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        if (String(data).includes('"response.completed"')) resolve();
      });
    });
    socket.send(JSON.stringify({ type: "response.create", model: "m", input: "Hello", store: false }));
    await over;
    socket.removeAllListeners("message");
  }
  const names = (await spans(4)).map(({ name }) => name);
  assert.equal(names.filter((name) => name === "response.create /v1/responses").length, 2);
  assert.equal(names.filter((name) => name === "chat m").length, 2);
  for (const span of exporter.getFinishedSpans()) assert.equal(span.spanContext().traceId, traceId);
  socket.close();
});

test("where the SDK already creates a span for the request, ours is its child", async (context) => {
  const { address } = await open(context);
  const undo = instrumentServers();
  context.after(undo);
  assert.equal((await ask(address, { ...headers, traceparent })).status, 200);
  undo();
  const request = (await spans(2)).find(({ name }) => name.startsWith("POST"));
  assert.equal(request?.kind, SpanKind.INTERNAL);
  assert.equal(request.parentSpanContext?.spanId, outer);
});

const outer = "1111111111111111";

/** What packages that instrument HTTP do: a span is active while a server handles a request. */
function instrumentServers(): () => void {
  const storage = new AsyncLocalStorage<Context>();
  contexts.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (within, work, self, ...rest) => storage.run(within, () => work.apply(self as never, rest)),
    bind: (_within, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  const { emit } = Server.prototype;
  const span = trace.wrapSpanContext({ traceId, spanId: outer, traceFlags: 1 });
  Server.prototype.emit = function instrumented(event: string | symbol, ...rest: unknown[]): boolean {
    const pass = () => Reflect.apply(emit, this, [event, ...rest]) as boolean;
    return event === "request" ? contexts.with(trace.setSpan(contexts.active(), span), pass) : pass();
  };
  return () => {
    Server.prototype.emit = emit;
    contexts.disable();
  };
}

/** A gateway in front of a server that answers with these statuses. */
async function open(context: TestContext, statusOf: (count: number) => number = () => 200, retry?: object) {
  let count = 0;
  const upstream = await startUpstream((_, response) => {
    count += 1;
    response.statusCode = statusOf(count);
    const message = { role: "assistant", content: "Hello" };
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const completion = { object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }], usage };
    response.setHeader("content-type", "application/json").end(JSON.stringify(completion));
  });
  context.after(() => upstream.close());
  const lines: Record<string, unknown>[] = [];
  const log = { info: (fields: object) => void lines.push({ ...fields }), error: () => {} };
  const http = { port: 0, auth_token: token, endpoints: { compat_chat: true, compat_responses: true } };
  const up = {
    type: "openai" as const,
    base_url: `${upstream.url}/v1`,
    api_key: "k",
    ...(retry !== undefined && { retry }),
  };
  const settings = { gateway: { http, adapters: { up }, sessions: { store: "memory:" } } };
  const portico = await openPortico(settings, { folder: makeFolder(context), env: {}, log });
  context.after(() => portico.close());
  assert.ok(portico.address);
  return { address: portico.address, upstream, lines };
}

function ask(address: string, sent: Record<string, string>, body: object = chat): Promise<Response> {
  return fetch(`${address}/v1/chat/completions`, { method: "POST", headers: sent, body: JSON.stringify(body) });
}

/**
 * So many spans, as soon as they are there, in the order of their start: within one millisecond, a request before its
 * attempts.
 */
async function spans(count: number) {
  while (exporter.getFinishedSpans().length < count) await new Promise((resolve) => void setImmediate(resolve));
  const toNumber = ([seconds, nanoseconds]: readonly [number, number]) => seconds * 1e9 + nanoseconds;
  return exporter
    .getFinishedSpans()
    .toSorted((one, other) => toNumber(one.startTime) - toNumber(other.startTime) || one.kind - other.kind);
}
