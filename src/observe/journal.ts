/** What of a record is written down: a line of it, and one with the cause of a failure that is not the caller's. */
import type { Remark } from "../core/adapter.ts";
import type { Log } from "./log.ts";
import { askedOf, failureOf, type RequestRecord } from "./record.ts";

/** Tells of a request, or of a turn, when it is over. */
export function createJournal(log: Log): (record: RequestRecord) => void {
  const isTold = createSampling();
  /** Refusals without a line, since the last line. */
  let unlogged = 0;

  return (record) => {
    const { kind, status, isQuiet, owner, address } = record;
    const failure = failureOf(record);
    const code = failure?.code ?? (status === 499 ? "client_closed" : undefined);
    if (isQuiet === true && code === undefined) return;
    if ((status === 401 || status === 429) && !isTold(`${code} ${owner ?? address}`)) {
      unlogged += 1;
      return;
    }
    const fields = toFields(record, code, unlogged || undefined);
    log.info(fields, kind === "request" ? "request" : "turn");
    unlogged = 0;
    if (failure === undefined) return;
    const { message, cause: err = failure } = failure;
    // An AggregateError holds two failures: the caller left, and the turn's partial answer could not be stored.
    if (failure.status < 500 && !(err instanceof AggregateError)) return;
    const { requestId, turnId } = fields;
    // Of a load that is shed the code says all.
    if (failure.status !== 503 || err !== failure) log.error({ requestId, turnId, code, err }, message);
  };
}

/** So many refusals of one kind and caller have lines within a minute; further ones each time their number has doubled. */
const maxAlike = 10;
const minuteMs = 60_000;
/** Further kinds and callers count as one: an attack from everywhere must fill neither the memory nor the log. */
const maxKinds = 100;

/** Whether a refusal has a line: a flood must not bury the rest of the log. */
function createSampling(): (kind: string) => boolean {
  const counts = new Map<string, number>();
  let since = -Infinity;
  return (kind) => {
    const now = performance.now();
    if (now - since >= minuteMs) {
      since = now;
      counts.clear();
    }
    const counted = counts.size < maxKinds || counts.has(kind) ? kind : "others";
    const count = (counts.get(counted) ?? 0) + 1;
    counts.set(counted, count);
    return count <= maxAlike || (count & (count - 1)) === 0;
  };
}

/** Nothing of what was said, no hint and no credential. */
function toFields(record: RequestRecord, code: string | undefined, unlogged: number | undefined) {
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
    turnId: record.key && `resp_${record.key}`,
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
    unlogged,
  };
}

/** Anybody may choose these, and names of tools in remarks, as long as a request may be. */
const maxLength = 200;

function shorten(text: string | undefined): string | undefined {
  return text === undefined || text.length <= maxLength ? text : text.slice(0, maxLength);
}

/** Who could not answer, and what was left out. Mostly the only remark is who was asked. */
function toWords(remarks: readonly Remark[] = []): { readonly tried?: string; readonly warning?: string } {
  if (remarks.length < 2) return nothing;
  const tried: string[] = [];
  const warning: string[] = [];
  for (const remark of remarks) {
    if (remark.type === "tried") tried.push(`${remark.adapter} (${remark.code})`);
    else if (remark.type === "left-out") warning.push(`${remark.what} left out`);
    else if (remark.type === "changed") warning.push(`${remark.what} changed to ${remark.to}`);
  }
  return { tried: shorten(tried.join(", ") || undefined), warning: shorten(warning.join(", ") || undefined) };
}

const nothing = {};
