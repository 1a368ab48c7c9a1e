/** Creates OpenTelemetry spans, one per request and one per attempt at an adapter, if the process has an SDK. */
import type { Attributes, Context, Span as OtelSpan } from "@opentelemetry/api";
import type { Trace, Turn } from "./core/turn.ts";
import type { AttemptObserver, Attempt, Observer } from "./core/observer.ts";
import { type RequestStart, type Ending, readTrace, type Span, type Tracer } from "./http/trace.ts";

export interface Spans extends Tracer, Pick<Observer, "asked"> {}

/**
 * Undefined if no SDK was registered before the gateway was created: then nobody listens, and neither the start nor a
 * request pays for it.
 */
export async function findSpans(): Promise<Spans | undefined> {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return undefined;
  const api = await import("@opentelemetry/api");
  const { context, createTraceState, isSpanContextValid, propagation, SpanKind, SpanStatusCode, trace } = api;
  const tracer = trace.getTracer("portico");
  /** The contexts of traces created here, so that their text need not be parsed. */
  const contexts = new WeakMap<Trace, Context>();

  /** An SDK without a tracer (only metrics, say) gives spans no valid ids. */
  function toTrace(span: OtelSpan, within: Context): Trace | undefined {
    if (!isSpanContextValid(span.spanContext())) return undefined;
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    const flags = traceFlags.toString(16).padStart(2, "0");
    const own = { parent: `00-${traceId}-${spanId}-${flags}`, state: traceState?.serialize() || undefined };
    contexts.set(own, trace.setSpan(within, span));
    return own;
  }

  function toContext({ parent, state }: Trace): Context {
    const [, traceId = "", spanId = "", flags = ""] = parent.split("-");
    const traceState = state === undefined ? undefined : createTraceState(state);
    const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    return trace.setSpanContext(context.active(), { ...remote, ...(traceState !== undefined && { traceState }) });
  }

  /** As the SDK reads it, which may know other headers; if it reads none, we read the trace ourselves. */
  function readContext(headers: RequestStart["headers"]): Context {
    const read = propagation.extract(context.active(), headers);
    const told = trace.getSpanContext(read) === undefined ? readTrace(headers) : undefined;
    return told === undefined ? read : toContext(told);
  }

  function contextOf({ trace: asked }: Turn): Context {
    return asked === undefined ? context.active() : (contexts.get(asked) ?? toContext(asked));
  }

  function fail(span: OtelSpan, type: string, message?: string): void {
    span.setAttribute("error.type", type);
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
  }

  return {
    begin({ id, method, path, headers }: RequestStart): Span {
      // If the SDK traces HTTP itself, our span is a child of its span.
      const isFirst = trace.getActiveSpan() === undefined;
      const within = isFirst ? readContext(headers) : context.active();
      const kind = isFirst ? SpanKind.SERVER : SpanKind.INTERNAL;
      const attributes = {
        "http.request.method": method,
        "portico.request.id": id,
        ...(path !== undefined && { "http.route": path }),
      };
      const span = tracer.startSpan(path === undefined ? method : `${method} ${path}`, { kind, attributes }, within);
      return {
        trace: toTrace(span, within),
        end(ending) {
          span.setAttributes(toAttributes(ending));
          const { status, failure } = ending;
          // A failed stream has a good status. A caller's mistake is no failure of the server.
          if ((failure?.status ?? status) >= 500) fail(span, failure?.code ?? String(status), failure?.message);
          else if (failure !== undefined) span.setAttribute("error.type", failure.code);
          span.end();
        },
      };
    },
    asked(adapter, turn): AttemptObserver {
      const within = contextOf(turn);
      const attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": adapter,
        "gen_ai.request.model": turn.model,
        "gen_ai.request.stream": turn.stream,
      };
      const span = tracer.startSpan(`chat ${turn.model}`, { kind: SpanKind.CLIENT, attributes }, within);
      return {
        trace: toTrace(span, within),
        ended(attempt) {
          span.setAttributes(toUsageAttributes(attempt));
          if (attempt.outcome === "failed") fail(span, attempt.code ?? "internal_error");
          span.end();
        },
      };
    },
  };
}

function toAttributes({ status, about }: Ending): Attributes {
  return {
    "http.response.status_code": status,
    ...(about !== undefined && { "gen_ai.request.model": about.model }),
    ...(about?.session !== undefined && { "gen_ai.conversation.id": about.session }),
    ...(about?.history !== undefined && { "portico.history": about.history }),
  };
}

function toUsageAttributes({ outcome, usage }: Attempt): Attributes {
  return {
    "portico.outcome": outcome,
    ...(usage !== undefined && {
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
    }),
  };
}
