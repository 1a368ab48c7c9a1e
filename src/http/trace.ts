/** The trace that a request is part of: what its headers say (W3C Trace Context), and who records it here. */
import type { IncomingHttpHeaders } from "node:http";
import type { GatewayError } from "../core/errors.ts";
import type { About } from "../core/ports.ts";
import type { Trace } from "../core/turn.ts";

/** Collects spans. It neither throws nor blocks. */
export interface Tracer {
  /** A request begins, or a turn of a connection. */
  begin(start: RequestStart): Span;
}

/** What is known of a request at its start. */
export interface RequestStart {
  readonly method: string;
  /** Its route's; undefined if there is no route. */
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly id: string;
}

/** A request's own part of its trace. */
export interface Span {
  /** The parent of what the request causes; undefined if it is not traced. */
  readonly trace: Trace | undefined;
  end(ending: Ending): void;
}

/** What is known of a request at its end. */
export interface Ending {
  readonly status: number;
  readonly about?: About | undefined;
  readonly failure?: GatewayError | undefined;
}

/** Undefined if the header is malformed: half a trace leads nowhere. */
export function readTrace({ traceparent, tracestate }: IncomingHttpHeaders): Trace | undefined {
  if (typeof traceparent !== "string" || !form.test(traceparent)) return undefined;
  const isBrief = typeof tracestate === "string" && tracestate.length <= maxStateLength;
  return { parent: traceparent, state: isBrief ? tracestate : undefined };
}

/** The id that all spans of a trace share. */
export function traceIdOf(trace: Trace | undefined): string | undefined {
  return trace?.parent.split("-")[1];
}

/** Version, trace id, span id and flags; an id of zeros is invalid. */
const form = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;
/** What everybody should propagate. */
const maxStateLength = 512;
