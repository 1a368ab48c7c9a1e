/** What of a record is written down: a line of it, and one with the cause of a failure that is not the caller's. */
import type { Remark } from "../core/adapter.ts";
import { type ErrorCode, type GatewayError, toGatewayError } from "../core/errors.ts";
import { createCounts } from "./counts.ts";
import type { Log } from "./log.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";

export interface Journal {
  ended(record: RequestRecord): void;
  refused(error: GatewayError, requestId: string, address: string | undefined): void;
  report(thrown: unknown, key: string): void;
  fellBack(adapter: string, failure: GatewayError): void;
  breakerOpened(adapter: string, why: string): void;
  breakerClosed(adapter: string): void;
}

const messages = { request: "request", turn: "turn", talk: "turn" } as const;

/** Trouble that lasts fails every request alike: its cause is told once a minute. */
const lasting: ReadonlySet<ErrorCode> = new Set(["store_unavailable", "overloaded", "draining", "interrupted"]);

/** So many refusals of one kind and caller have lines of their own within a minute; of more, each time there are twice as many. */
const maxAlike = 10;

export function createJournal(log: Log, now: () => number): Journal {
  const countRefusal = createCounts(now);
  const countCause = createCounts(now);
  /** Several requests may fail for one reason, such as the callers of one idempotency key. */
  const told = new WeakSet<object>();
  let unlogged = 0;

  function tellCause(failure: GatewayError, requestId: string | undefined, turnId: string | undefined): void {
    const { code, status, message, cause: err = failure } = failure;
    if (status < 500 || (lasting.has(code) && countCause(message) > 1)) return;
    if (typeof err === "object" && err !== null) {
      if (told.has(err)) return;
      told.add(err);
    }
    log.error({ requestId, turnId, code, err }, message);
  }

  /** A flood of refusals must not bury the rest of the log. */
  function isFlood({ status, owner, address }: RequestRecord, code: string | undefined): boolean {
    if (status !== 401 && status !== 429) return false;
    const count = countRefusal(`${code} ${owner ?? address}`);
    return count > maxAlike && (count & (count - 1)) !== 0;
  }

  return {
    ended(record) {
      const { kind, id, key, status } = record;
      const failure = failureOf(record);
      const code = failure?.code ?? (status === 499 ? "client_closed" : undefined);
      const turnId = key && `resp_${key}`;
      if (isFlood(record, code)) {
        unlogged += 1;
        return;
      }
      if (record.isQuiet !== true || code !== undefined) {
        const isRefusal = status === 401 || status === 429;
        log.info(toFields(record, turnId, code, isRefusal && unlogged > 0 ? unlogged : undefined), messages[kind]);
        if (isRefusal) unlogged = 0;
      }
      if (failure !== undefined) tellCause(failure, id, turnId);
    },
    refused({ status, code }, requestId, address) {
      log.info({ requestId, status, address, code }, "request");
    },
    report: (thrown, key) => tellCause(toGatewayError(thrown), undefined, `resp_${key}`),
    fellBack(adapter, { code, message, cause }) {
      // Servers put varying numbers into their messages.
      if (countCause(`${adapter}: ${code}`) > 1) return;
      const words = `The adapter '${adapter}' could not answer, so another was asked: ${message}`;
      log.error({ adapter, code, err: cause }, words);
    },
    breakerOpened(adapter, why) {
      log.error({ adapter }, `The adapter '${adapter}' has failed too often, so its circuit breaker is open: ${why}`);
    },
    breakerClosed(adapter) {
      log.info({ adapter }, `The adapter '${adapter}' answers again.`);
    },
  };
}

/** Nothing of what was said, no hint and no credential. */
function toFields(
  record: RequestRecord,
  turnId: string | undefined,
  code: string | undefined,
  unlogged: number | undefined,
): object {
  const { heading, firstMs } = record;
  const usage = record.answer?.usage;
  const asked = askedOf(heading);
  // One says who was asked.
  const remarks = heading !== undefined && heading.remarks.length > 1 ? heading.remarks : undefined;
  return {
    requestId: record.id,
    clientRequestId: shorten(record.clientId),
    traceId: record.trace?.parent.slice(3, 35),
    method: record.method,
    path: record.route ?? shorten(record.path),
    status: record.status,
    ms: Math.round(record.ms),
    firstMs: firstMs === undefined ? undefined : Math.round(firstMs),
    owner: record.owner,
    address: record.address,
    objectId: shorten(record.objectId),
    turnId,
    model: heading?.model,
    adapter: asked?.adapter,
    upstreamModel: asked?.model,
    session: heading?.session,
    history: heading?.told,
    inputTokens: usage?.inputTokens,
    cachedTokens: usage?.cachedTokens,
    outputTokens: usage?.outputTokens,
    tried: remarks && toText(remarks, toTried),
    warning: remarks && toText(remarks, toWarning),
    code,
    unlogged,
  };
}

/** Anybody may choose these, as long as a request's head may be. */
const maxLength = 200;

function shorten(text: string | undefined): string | undefined {
  return text === undefined || text.length <= maxLength ? text : text.slice(0, maxLength);
}

function toText(remarks: readonly Remark[], toWord: (remark: Remark) => string | undefined): string | undefined {
  const words = remarks.flatMap((remark) => toWord(remark) ?? []);
  return words.length > 0 ? words.join(", ").slice(0, maxRemarksLength) : undefined;
}

/** Names of tools are the caller's own words. */
const maxRemarksLength = 1_000;

function toTried(remark: Remark): string | undefined {
  return remark.type === "tried" ? `${remark.adapter} (${remark.code})` : undefined;
}

function toWarning(remark: Remark): string | undefined {
  if (remark.type === "left-out") return `${remark.what} left out`;
  return remark.type === "changed" ? `${remark.what} changed to ${remark.to}` : undefined;
}
