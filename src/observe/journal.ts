/** What of a record is written down: a line of it, and one with the cause of a failure that is not the caller's. */
import type { Remark } from "../core/adapter.ts";
import { type ErrorCode, type GatewayError, toGatewayError } from "../core/errors.ts";
import { createCounts } from "./counts.ts";
import type { Log } from "./log.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";

/** Trouble that lasts fails every request alike: its cause is told once a minute. */
const lasting: ReadonlySet<ErrorCode> = new Set(["store_unavailable", "overloaded", "draining", "interrupted"]);
/** So many refusals of one kind and caller have lines within a minute; further ones each time their number has doubled. */
const maxAlike = 10;

export type Journal = ReturnType<typeof createJournal>;

export function createJournal(log: Log, now: () => number) {
  const countRefusal = createCounts(now);
  const countCause = createCounts(now);
  /** Several requests may fail for one reason, such as those with one idempotency key. */
  const told = new WeakSet<object>();
  /** Refusals since the last line. */
  let unlogged = 0;

  /** A flood of refusals must not bury the rest of the log. */
  function isFlood({ owner, address }: RequestRecord, code: string | undefined): boolean {
    const count = countRefusal(`${code} ${owner ?? address}`);
    return count > maxAlike && (count & (count - 1)) !== 0;
  }

  function tellCause(failure: GatewayError, requestId: string | undefined, turnId: string | undefined): void {
    const { code, status, message, cause: err = failure } = failure;
    if (status < 500 || (lasting.has(code) && countCause(message) > 1)) return;
    if (typeof err === "object" && err !== null) {
      if (told.has(err)) return;
      told.add(err);
    }
    log.error({ requestId, turnId, code, err }, message);
  }

  return {
    ended(record: RequestRecord): void {
      const { kind, id, key, status, isQuiet = false } = record;
      const failure = failureOf(record);
      const code = failure?.code ?? (status === 499 ? "client_closed" : undefined);
      if (isQuiet && code === undefined) return;
      if ((status === 401 || status === 429) && isFlood(record, code)) {
        unlogged += 1;
        return;
      }
      const turnId = key && `resp_${key}`;
      log.info(toFields(record, turnId, code, unlogged), kind === "request" ? "request" : "turn");
      unlogged = 0;
      if (failure !== undefined) tellCause(failure, id, turnId);
    },
    report: (thrown: unknown, key: string): void => tellCause(toGatewayError(thrown), undefined, `resp_${key}`),
    fellBack(adapter: string, { code, message, cause: err }: GatewayError): void {
      // Servers put varying numbers into their messages.
      if (countCause(`${adapter}: ${code}`) > 1) return;
      log.error({ adapter, code, err }, `The adapter '${adapter}' could not answer, so another was asked: ${message}`);
    },
  };
}

/** Nothing of what was said, no hint and no credential. */
function toFields(record: RequestRecord, turnId: string | undefined, code: string | undefined, unlogged: number) {
  const { heading, answer, firstMs } = record;
  const asked = askedOf(heading);
  const usage = answer?.usage;
  // One of them says who was asked.
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
    tried: remarks && toWords(remarks, "tried"),
    warning: remarks && toWords(remarks, "left-out", "changed"),
    code,
    unlogged: unlogged > 0 ? unlogged : undefined,
  };
}

/** Anybody may choose these, and names of tools in remarks, as long as a request may be. */
const maxLength = 200;

function shorten(text: string | undefined): string | undefined {
  return text === undefined || text.length <= maxLength ? text : text.slice(0, maxLength);
}

function toWords(remarks: readonly Remark[], ...types: readonly Remark["type"][]): string | undefined {
  const words = remarks.filter(({ type }) => types.includes(type)).map(toWord);
  return words.length > 0 ? shorten(words.join(", ")) : undefined;
}

function toWord(remark: Remark): string {
  switch (remark.type) {
    case "tried":
      return `${remark.adapter} (${remark.code})`;
    case "left-out":
      return `${remark.what} left out`;
    case "changed":
      return `${remark.what} changed to ${remark.to}`;
    case "asked":
      return remark.adapter;
  }
}
