/** The headers that propagate a trace to other services. */
import type { Trace } from "../core/turn.ts";

export function toTraceHeaders({ parent, state }: Trace): Readonly<Record<string, string>> {
  return { traceparent: parent, ...(state !== undefined && { tracestate: state }) };
}
