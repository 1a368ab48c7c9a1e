/** What of a record is written down: a line of it, and one with the cause of a failure that is not the caller's. */
import type { Remark } from "../core/adapter.ts";
import type { GatewayError } from "../core/errors.ts";
import type { Log } from "./log.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";

export function createJournal(log: Log) {
  return {
    ended(record: RequestRecord): void {
      const { kind, id: requestId, key, status, isQuiet = false } = record;
      const failure = failureOf(record);
      const code = failure?.code ?? (status === 499 ? "client_closed" : undefined);
      if (isQuiet && code === undefined) return;
      const turnId = key && `resp_${key}`;
      log.info(toFields(record, turnId, code), kind === "request" ? "request" : "turn");
      if (failure === undefined || failure.status < 500) return;
      const { message, cause: err = failure } = failure;
      // Of a load that is shed the code says all.
      if (failure.status !== 503 || err !== failure) log.error({ requestId, turnId, code, err }, message);
    },
    fellBack(adapter: string, { code, message, cause: err }: GatewayError): void {
      log.error({ adapter, code, err }, `The adapter '${adapter}' could not answer, so another was asked: ${message}`);
    },
  };
}

/** Nothing of what was said, no hint and no credential. */
function toFields(record: RequestRecord, turnId: string | undefined, code: string | undefined) {
  const { heading, answer, firstMs } = record;
  const asked = askedOf(heading);
  const usage = answer?.usage;
  const { tried, warning } = toWords(heading?.remarks);
  return {
    requestId: record.id,
    clientRequestId: shorten(record.clientId),
    traceId: record.trace?.parent.slice(3, 35),
    method: record.method,
    path: record.route ?? shorten(record.path),
    status: record.status,
    ms: Math.round(record.ms),
    firstMs: firstMs && Math.round(firstMs),
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
    tried,
    warning,
    code,
  };
}

/** Anybody may choose these, and names of tools in remarks, as long as a request may be. */
const maxLength = 200;

function shorten(text: string | undefined): string | undefined {
  return text === undefined || text.length <= maxLength ? text : text.slice(0, maxLength);
}

/** Who could not answer, and what was left out. */
function toWords(remarks: readonly Remark[] = []): { readonly tried?: string; readonly warning?: string } {
  const tried: string[] = [];
  const warning: string[] = [];
  for (const remark of remarks) {
    if (remark.type === "tried") tried.push(`${remark.adapter} (${remark.code})`);
    else if (remark.type === "left-out") warning.push(`${remark.what} left out`);
    else if (remark.type === "changed") warning.push(`${remark.what} changed to ${remark.to}`);
  }
  return { tried: shorten(tried.join(", ") || undefined), warning: shorten(warning.join(", ") || undefined) };
}
