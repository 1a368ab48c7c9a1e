/** OpenTelemetry spans of requests and of attempts at adapters, if the process has an SDK; and the trace that is passed on. */
import type { IncomingHttpHeaders } from "node:http";
import type { Context, Span } from "@opentelemetry/api";
import type { Trace, Turn } from "../core/turn.ts";
import { type Attempt, failureOf, type RequestRecord } from "./record.ts";

/** Undefined if no SDK was there before the gateway: then neither the start nor a request pays for spans. */
export async function findSpans() {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return undefined;
  const { context, createTraceState, isSpanContextValid, SpanKind, SpanStatusCode, trace } =
    await import("@opentelemetry/api");
  const tracer = trace.getTracer("portico");
  /** What was made here, by the trace that stands for it. */
  const known = new WeakMap<Trace, { readonly span: Span; readonly within: Context }>();

  /** An SDK without a tracer (one for metrics, say) gives spans no valid ids. */
  function toTrace(span: Span, parent: Context): Trace | undefined {
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    if (!isSpanContextValid(span.spanContext())) return undefined;
    const flags = traceFlags.toString(16).padStart(2, "0");
    const own = { parent: `00-${traceId}-${spanId}-${flags}`, state: traceState?.serialize() || undefined };
    known.set(own, { span, within: trace.setSpan(parent, span) });
    return own;
  }

  function toContext(given: Trace | undefined): Context {
    const active = context.active();
    if (given === undefined) return active;
    const [, traceId = "", spanId = "", flags = ""] = given.parent.split("-");
    const traceState = given.state === undefined ? undefined : createTraceState(given.state);
    const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    return trace.setSpanContext(active, traceState === undefined ? remote : { ...remote, traceState });
  }

  return {
    /** A request begins, or a turn of a connection. */
    begin(headers: IncomingHttpHeaders): Trace | undefined {
      // If the SDK traces HTTP itself, our span is a child of its span.
      const within = trace.getActiveSpan() === undefined ? toContext(readTrace(headers)) : context.active();
      return toTrace(tracer.startSpan("request", { kind: SpanKind.SERVER }, within), within);
    },
    ended(record: RequestRecord): void {
      const { kind, id, method = "", route, status, heading } = record;
      const span = record.trace && known.get(record.trace)?.span;
      // A turn that goes on without its caller stands in the request's trace, whose span has ended.
      if (span === undefined || kind !== "request") return;
      const failure = failureOf(record);
      span.updateName(route === undefined ? method : `${method} ${route}`);
      span.setAttributes({
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "portico.request.id": id,
        "gen_ai.request.model": heading?.model,
        "gen_ai.conversation.id": heading?.session,
        "portico.history": heading?.told,
        "error.type": failure?.code,
      });
      // A caller's mistake is no failure of the server.
      if ((failure?.status ?? status ?? 0) >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
    ask(adapter: string, { model, stream, trace: asked }: Turn) {
      const within = (asked && known.get(asked)?.within) ?? toContext(asked);
      const span = tracer.startSpan(`chat ${model}`, { kind: SpanKind.CLIENT }, within);
      return {
        /** What the model's server is told in place of the turn's own. */
        trace: toTrace(span, within),
        ended({ outcome, code, usage }: Attempt): void {
          span.setAttributes({
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": adapter,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": stream,
            "gen_ai.usage.input_tokens": usage?.inputTokens,
            "gen_ai.usage.output_tokens": usage?.outputTokens,
            "portico.outcome": outcome,
            "error.type": code,
          });
          if (outcome === "failed") span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
  };
}

/** Version, trace id, span id and flags; an id of zeros is invalid. */
const form = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;

/** Undefined if the header is malformed: half a trace leads nowhere. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): Trace | undefined {
  if (typeof traceparent !== "string" || !form.test(traceparent)) return undefined;
  return { parent: traceparent, state: tracestate?.toString() };
}
