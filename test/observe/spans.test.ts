/** Spans, as an OpenTelemetry SDK collects them, and the trace that is passed on with or without one. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { WebSocket } from "ws";
import { call, endpoints, paths, startServer, tell, tellWell } from "../harness/client.ts";
import { openGateway, token } from "../harness/house.ts";
import { answerJson } from "../harness/upstream.ts";
import { until } from "../store/aid.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const caller = "00f067aa0ba902b7";
const headers = { traceparent: `00-${traceId}-${caller}-01`, tracestate: "vendor=1" };

/** A gateway in front of a real server, in a process that collects spans. */
async function open(context: TestContext) {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  context.after(() => trace.disable());
  const server = await startServer(context, { retries: 1 });
  const gateway = await openGateway(context, { gateway: { adapters: server.adapters } });
  /** So many spans, as soon as they are there. */
  const spans = async (count: number): Promise<readonly ReadableSpan[]> => {
    await until(() => exporter.getFinishedSpans().length >= count);
    return exporter.getFinishedSpans();
  };
  return { ...gateway, server, spans };
}

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}: ${stream ? "a streamed" : "a whole"} turn is a span in its caller's trace, and its model's server stands below it`, async (context) => {
      const { address, server, spans, logged } = await open(context);
      const asked = await tellWell(address, { on, say: "a secret question", stream, headers, more: { user: "ann" } });
      const [request, ...others] = await spans(1);
      assert.equal(others.length, 0);
      assert.deepEqual([request!.kind, request!.name], [SpanKind.SERVER, `POST ${paths[on]}`]);
      assert.deepEqual([request!.spanContext().traceId, request!.parentSpanContext?.spanId], [traceId, caller]);
      assert.equal(request!.status.code, SpanStatusCode.UNSET);
      const seen = request!.attributes;
      assert.equal(seen["http.response.status_code"], 200);
      assert.equal(seen["portico.request.id"], asked.headers.get("x-request-id"));
      assert.equal(seen["portico.history"], "new");
      const { "gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": output } = seen;
      assert.deepEqual([seen["gen_ai.request.model"], input, output], ["any", 3, 2]);
      const sent = server.received.at(-1)?.headers;
      assert.equal(sent?.["traceparent"], `00-${traceId}-${request!.spanContext().spanId}-01`);
      assert.equal(sent?.["tracestate"], "vendor=1");
      const told = JSON.stringify([request!.name, seen, request!.events]);
      for (const word of ["secret question", "ann", token]) assert.ok(!told.includes(word), word);
      const record = logged.find(({ message }) => message === "request");
      assert.equal(record?.fields["traceId"], traceId);
    });
  }
}

test("without a caller's trace a request begins one", async (context) => {
  const { address, server, spans } = await open(context);
  await tellWell(address, { on: "chat", say: "hi" });
  const [request] = await spans(1);
  assert.equal(request!.parentSpanContext, undefined);
  assert.ok(server.received.at(-1)?.headers["traceparent"]?.includes(request!.spanContext().traceId));
});

test("a failure of ours is an error in its span, and a caller's mistake is not", async (context) => {
  const { address, server, spans } = await open(context);
  server.script = answerJson({ error: { message: "broken" } }, 500, { "retry-after": "0" });
  assert.equal((await tell(address, { on: "chat", say: "hi" })).status, 502);
  assert.equal((await tell(address, { on: "chat", say: [] })).status, 400);
  assert.equal((await call(address, "GET", `/unknown/${token}`)).status, 404);
  const found = await spans(3);
  const codes = found.map((span) => [span.attributes["http.response.status_code"], span.status.code]);
  assert.deepEqual(codes, [
    [502, SpanStatusCode.ERROR],
    [400, SpanStatusCode.UNSET],
    [404, SpanStatusCode.UNSET],
  ]);
  assert.ok(!JSON.stringify(found.map(({ name, attributes }) => [name, attributes])).includes(token));
});

test("each turn of a WebSocket is a span in the trace of its upgrade", async (context) => {
  const { address, spans } = await open(context);
  const sent = { authorization: `Bearer ${token}`, ...headers };
  const socket = new WebSocket(`${address.replace("http", "ws")}/v1/responses`, { headers: sent });
  context.after(() => socket.terminate());
  await new Promise((resolve) => socket.once("open", resolve));
  for (let turn = 0; turn < 2; turn += 1) {
    const over = new Promise<void>((resolve) => {
      const read = (data: unknown) => String(data).includes('"response.completed"') && resolve();
      socket.on("message", read);
    });
    socket.send(JSON.stringify({ type: "response.create", model: "any", input: "hi", store: false }));
    await over;
  }
  const found = await spans(2);
  for (const span of found) assert.equal(span.spanContext().traceId, traceId);
});

test("without an SDK the caller's trace is passed on as it is, and none is begun", async (context) => {
  const server = await startServer(context);
  const { address, logged } = await openGateway(context, { gateway: { adapters: server.adapters } });
  for (const on of endpoints) {
    await tellWell(address, { on, say: "hi", headers });
    const sent = server.received.at(-1)?.headers;
    assert.deepEqual([sent?.["traceparent"], sent?.["tracestate"]], [headers.traceparent, headers.tracestate]);
    await tellWell(address, { on, say: "hi" });
    assert.equal(server.received.at(-1)?.headers["traceparent"], undefined);
  }
  await until(() => logged.filter(({ message }) => message === "request").length >= 4);
  const traces = logged.map(({ fields }) => fields["traceId"]);
  assert.deepEqual(traces, [traceId, undefined, traceId, undefined]);
});
