/** What a request says of the trace that it is part of, in the headers of W3C Trace Context. */
import type { IncomingHttpHeaders } from "node:http";
import type { Trace } from "../core/turn.ts";

/** Nothing where the header is not of its form: half a trace leads nowhere. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): Trace | undefined {
  if (typeof traceparent !== "string" || !form.test(traceparent)) return undefined;
  const isBrief = typeof tracestate === "string" && tracestate.length <= maxStateLength;
  return { parent: traceparent, state: isBrief ? tracestate : undefined };
}

/** The part of it that all of a trace has in common. */
export function traceIdOf(headers: IncomingHttpHeaders): string | undefined {
  return readTrace(headers)?.parent.slice("00-".length, "00-".length + traceIdLength);
}

/** Version, trace, span and flags; a trace or a span of zeros is none. */
const form = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;
const traceIdLength = 32;
/** As much as everybody has to pass on. */
const maxStateLength = 512;
