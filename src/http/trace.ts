/** The trace that a request is part of: what its headers say of it (W3C Trace Context), and who follows it here. */
import type { IncomingHttpHeaders } from "node:http";
import type { GatewayError } from "../core/errors.ts";
import type { About } from "../core/ports.ts";
import type { Trace } from "../core/turn.ts";

/** Who gathers spans. It neither throws nor holds anything up. */
export interface Tracer {
  /** A request has come, or a turn of a connection. */
  begin(coming: Coming): Span;
}

/** What is known of a request when it comes. */
export interface Coming {
  readonly method: string;
  /** Its route's own; nothing when there is none for it. */
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly id: string;
}

/** A request's own part of its trace. */
export interface Span {
  /** What follows from the request is called by this; nothing when it is followed nowhere. */
  readonly trace: Trace | undefined;
  end(ending: Ending): void;
}

/** What is known of a request when it is over. */
export interface Ending {
  readonly status: number;
  readonly about?: About | undefined;
  readonly failure?: GatewayError | undefined;
}

/** Nothing where the header is not of its form: half a trace leads nowhere. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): Trace | undefined {
  if (typeof traceparent !== "string" || !form.test(traceparent)) return undefined;
  const isBrief = typeof tracestate === "string" && tracestate.length <= maxStateLength;
  return { parent: traceparent, state: isBrief ? tracestate : undefined };
}

/** The part of it that all of a trace has in common. */
export function traceIdOf(trace: Trace | undefined): string | undefined {
  return trace?.parent.slice("00-".length, "00-".length + traceIdLength);
}

/** Version, trace, span and flags; a trace or a span of zeros is none. */
const form = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;
const traceIdLength = 32;
/** As much as everybody has to pass on. */
const maxStateLength = 512;
