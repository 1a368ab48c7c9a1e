/** Logs requests (on routes without a token only failures), turns that ended without callers, and failures of ours. */
import { callerLeft, type GatewayError } from "../core/errors.ts";
import type { About } from "../core/ports.ts";
import type { Usage } from "../core/turn.ts";
import type { EndedTurn } from "../core/observer.ts";
import { createCauses } from "./causes.ts";
import type { DoorLog } from "./lines.ts";
import type { FirstByte, Metrics } from "./metrics.ts";
import { toPath } from "./paths.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import { toRemarkHeaders } from "./send.ts";
import { readTrace, type Span, traceIdOf, type Tracer } from "./trace.ts";

/** What becomes known of a request, or of one turn of a connection, until it is over. */
export interface RequestRecord {
  /** What is known of its turn, once placed. */
  about?: About | undefined;
  /** Why it failed, sent as a status or inside its stream. */
  failure?: GatewayError | undefined;
  /** When its turn said the first word. */
  firstByte?: FirstByte | undefined;
  /** Its turn's tokens. */
  usage?: Usage | undefined;
  /** Its part of a trace, if anybody collects spans. */
  span?: Span | undefined;
}

export interface Journal {
  /** Writes the request's line when its answer ends. */
  follow(request: HttpRequest, reply: HttpReply): void;
  /** Begins the span of a connection's turn, if anybody collects spans. */
  begin(request: HttpRequest, method: string): Span | undefined;
  /** Writes the line of one turn of a connection. */
  write(entry: Entry): void;
  /** Writes the line of what was refused before it was a request. */
  refuse(error: GatewayError, requestId: string, address: string | undefined): void;
  /**
   * Remembers a failure for that line; one that is not the caller's gets a line of its own, with its cause. A store in
   * trouble or an overload fails every request alike, and is logged once a minute: the log may be on the disk that is
   * full, and writing is work.
   */
  report(error: GatewayError, record: Pick<RequestRecord, "failure"> & { readonly id: string }): void;
}

interface Entry {
  readonly request: HttpRequest;
  readonly record: RequestRecord;
  readonly method: string;
  readonly status: number;
  readonly ms: number;
}

/** Every request is counted as well, and the tokens of its turn. */
export function createJournal(
  log: DoorLog,
  { count, used }: Pick<Metrics, "count" | "used">,
  tracer?: Tracer,
  nowMs = () => performance.now(),
): Journal {
  const logCause = createCauses(log, nowMs);

  function begin({ id, headers, route }: HttpRequest, method: string): Span | undefined {
    return tracer?.begin({ id, method, path: route?.path, headers });
  }

  function write({ request, record, method, status, ms }: Entry): void {
    const { about, failure, firstByte, span } = record;
    // Unknown paths must not become labels of their own.
    count(request.route?.path ?? "unknown", status, ms, firstByte, failure?.status);
    if (request.token !== undefined) used(request.token.owner, record);
    span?.end({ status, about, failure });
    // Health checks every few seconds would fill the log with the same news.
    if (request.route?.endpoints.length === 0 && status < 400) return;
    const fields = {
      requestId: request.id,
      traceId: traceIdOf(span?.trace ?? readTrace(request.headers)),
      method,
      path: request.route?.path ?? toPath(request.url).slice(0, maxPathLength),
      status,
      ms: Math.round(ms),
      firstMs: firstByte && Math.round(firstByte.ms),
      owner: request.token?.owner,
      // A caller without a token has only its address.
      address: request.token === undefined ? request.terms.addressOf(request) : undefined,
      turnId: about?.id,
      ...toTurnFields(record),
    };
    log.info(fields, "request");
  }

  return {
    begin,
    write,
    follow(request, reply) {
      request.span = begin(request, request.method);
      reply.raw.once("close", () => {
        // If we cut the stream, its failure is already set; otherwise the caller left, which no caller ever sees.
        if (!request.isUpgraded && !reply.raw.writableFinished) request.failure ??= callerLeft();
        write({
          request,
          record: request,
          method: request.method,
          status: toStatus(request, reply),
          ms: reply.elapsedMs,
        });
      });
    },
    refuse({ status, code }, requestId, address) {
      count("unknown", status, 0);
      log.info({ requestId, status, address, code }, "request");
    },
    report(error, record) {
      record.failure = error;
      logCause(error, { requestId: record.id });
    },
  };
}

/** Logs turns that ended without their callers, at the level and with the fields of requests. */
export function createTurnJournal(log: DoorLog): (turn: EndedTurn) => void {
  const logCause = createCauses(log, () => performance.now());
  return ({ turnId, owner, ms, ...turn }) => {
    log.info({ turnId, ms: Math.round(ms), owner, ...toTurnFields(turn) }, "turn");
    if (turn.failure !== undefined) logCause(turn.failure, { turnId });
  };
}

/** The fields of a turn. */
function toTurnFields({ about, usage, failure }: RequestRecord): object {
  return {
    model: about?.model,
    adapter: about?.adapter,
    upstreamModel: about?.upstreamModel,
    session: about?.session,
    history: about?.history,
    inputTokens: usage?.inputTokens,
    cachedTokens: usage?.cachedTokens,
    outputTokens: usage?.outputTokens,
    code: failure?.code,
    ...(about !== undefined && about.remarks.length > 0 && toRemarkFields(about.remarks)),
  };
}

/** Headers do not reach every caller: a stream's may already be sent, and a connection has none. */
function toRemarkFields(remarks: About["remarks"]): object {
  const { "x-portico-tried": tried, "x-portico-warning": warning } = toRemarkHeaders(remarks);
  return { tried, warning };
}

/** Of a path that is no route's: anybody may send one, as long as the headers may be. */
const maxPathLength = 200;

const switchingProtocols = 101;

function toStatus({ isUpgraded, failure }: HttpRequest, { raw }: HttpReply): number {
  if (isUpgraded) return switchingProtocols;
  return raw.writableFinished || failure === undefined ? raw.statusCode : failure.status;
}
