/** An OpenTelemetry span of every request, if the process has an SDK; and the trace that is passed on. */
import type { IncomingHttpHeaders } from "node:http";
import type { Span } from "@opentelemetry/api";
import type { Trace } from "../core/turn.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";

/** Undefined if no SDK was there before the gateway: then neither the start nor a request pays for spans. */
export async function findSpans() {
  if (!(Symbol.for("opentelemetry.js.api.1") in globalThis)) return undefined;
  const { context, createTraceState, isSpanContextValid, SpanKind, SpanStatusCode, trace } =
    await import("@opentelemetry/api");
  const tracer = trace.getTracer("portico");
  /** By the trace that stands for it. */
  const spans = new WeakMap<Trace, Span>();

  function toContext({ parent, state }: Trace) {
    const [, traceId = "", spanId = "", flags = ""] = parent.split("-");
    const traceState = state === undefined ? undefined : createTraceState(state);
    const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    return trace.setSpanContext(context.active(), traceState === undefined ? remote : { ...remote, traceState });
  }

  return {
    /** A request begins, or a turn of a connection. */
    begin(headers: IncomingHttpHeaders): Trace | undefined {
      const given = readTrace(headers);
      // If the SDK traces HTTP itself, our span is a child of its span.
      const isInner = given === undefined || trace.getActiveSpan() !== undefined;
      const span = tracer.startSpan(
        "request",
        { kind: SpanKind.SERVER },
        isInner ? context.active() : toContext(given),
      );
      const { traceId, spanId, traceFlags, traceState } = span.spanContext();
      // An SDK without a tracer (one for metrics, say) gives spans no valid ids.
      if (!isSpanContextValid(span.spanContext())) return undefined;
      const flags = traceFlags.toString(16).padStart(2, "0");
      const own = { parent: `00-${traceId}-${spanId}-${flags}`, state: traceState?.serialize() || undefined };
      spans.set(own, span);
      return own;
    },
    ended(record: RequestRecord): void {
      const { kind, id, method = "", route, status, heading, answer } = record;
      const span = record.trace && spans.get(record.trace);
      // A turn that goes on without its caller stands in the request's trace, whose span has ended.
      if (span === undefined || kind !== "request") return;
      const failure = failureOf(record);
      span.updateName(route === undefined ? method : `${method} ${route}`);
      span.setAttributes({
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "portico.request.id": id,
        "portico.history": heading?.told,
        "gen_ai.provider.name": askedOf(heading)?.adapter,
        "gen_ai.request.model": heading?.model,
        "gen_ai.conversation.id": heading?.session,
        "gen_ai.usage.input_tokens": answer?.usage?.inputTokens,
        "gen_ai.usage.output_tokens": answer?.usage?.outputTokens,
        "error.type": failure?.code,
      });
      // A caller's mistake is no failure of the server.
      if ((failure?.status ?? status ?? 0) >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
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
