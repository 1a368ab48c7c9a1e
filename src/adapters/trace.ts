/** A trace as the headers by which other services go on with it. */
import type { Trace } from "../core/turn.ts";

export function toTraceHeaders({ parent, state }: Trace): Readonly<Record<string, string>> {
  return { traceparent: parent, ...(state !== undefined && { tracestate: state }) };
}
