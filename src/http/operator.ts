/** The operator's routes: list, show, delete, export, import and prune what is stored, whoever owns it. */
import { GatewayError, toWireError } from "../core/errors.ts";
import type { Erased, Operator, Pruned, SessionRecord, SessionSummary, TurnRecord } from "../core/store.ts";
import { readPieces } from "./body.ts";
import type { Call, Handler, Route } from "./call.ts";
import { exclusive, hintNames, readHintOf, readLimit, readQuery } from "./query.ts";
import type { Streams } from "./stream.ts";

export interface OperatorParts {
  readonly store: Operator;
  readonly streams: Streams;
  readonly now: () => number;
  readonly newKey: () => string;
  /** Applies the configured retention now. */
  readonly prune: () => Promise<Pruned>;
}

export function createOperatorRoutes({ store, streams, now, newKey, prune }: OperatorParts): readonly Route[] {
  const list: Handler = async ({ request }) => {
    const query = readQuery(request, [...hintNames, "after", "limit", "outside"]);
    const hint = readHintOf(query);
    const isOutside = query.outside === "true";
    if (isOutside && hint !== undefined) throw exclusive("outside", "hint");
    const wanted = { owner: query.owner, after: query.after, limit: readLimit(query.limit) };
    const found = isOutside ? store.listOutside(wanted) : store.listSessions({ ...wanted, hint });
    const { entries, hasMore } = await found;
    return { body: { object: "list", data: entries.map(toSummary), hasMore } };
  };

  const show: Handler = async (call) => {
    readQuery(call.request, []);
    const [id = ""] = call.names;
    const session = await store.readSession(id);
    return pour(call, writeSession(session, id, store.readTurns(session)), "application/json", streams);
  };

  const eraseOne: Handler = async ({ request, names: [id = ""] }) => {
    readQuery(request, []);
    return { body: toDeleted(await store.erase(id, newKey(), now())) };
  };

  const eraseUnderHint: Handler = async ({ request, settings }) => {
    const query = readQuery(request, hintNames);
    const hint = readHintOf(query);
    if (hint === undefined) throw missingHint();
    // They may have turns running, and nothing stored yet.
    const owners = settings.tokens.map(({ owner }) => owner);
    const erased = await store.eraseHint({ hint, owner: query.owner, owners }, newKey(), now());
    return { body: { object: "list", data: erased.map(toDeleted) } };
  };

  const exportAll: Handler = async (call) => {
    const { session, ...query } = readQuery(call.request, [...hintNames, "session"]);
    const hint = readHintOf(query);
    if (hint !== undefined && session !== undefined) throw exclusive("session", "hint");
    if (hint === undefined && query.owner !== undefined) throw missingHint();
    call.record.objectId = session;
    const one = session === undefined ? undefined : [session];
    const ids = hint === undefined ? one : await findUnder(hint, query.owner);
    return pour(call, store.exportLines(ids), "application/x-ndjson", streams);
  };

  async function findUnder(hint: string, owner: string | undefined): Promise<readonly string[]> {
    const { entries } = await store.listSessions({ hint, owner, limit: maxOwners });
    if (entries.length === 0) throw new GatewayError("not_found", "There is no session under this hint.");
    return entries.map(({ id }) => id);
  }

  const importAll: Handler = async (call) => {
    readQuery(call.request, []);
    const { "content-type": type = "" } = call.request.headers;
    if (!/^application\/x-ndjson\s*(;|$)/i.test(type)) {
      const message = "The body must be an archive: send the header 'Content-Type: application/x-ndjson'.";
      throw new GatewayError("unsupported_media_type", message);
    }
    return { body: { object: "import", ...(await store.importLines(readPieces(call))) } };
  };

  const pruneNow: Handler = async ({ request }) => {
    readQuery(request, []);
    const { sessions, turns } = await prune();
    return { body: { object: "prune", sessions, turns } };
  };

  const doors = ["operator"] as const;
  return [
    { method: "GET", path: "/operator/sessions", doors, handle: list },
    { method: "DELETE", path: "/operator/sessions", doors, handle: eraseUnderHint },
    { method: "GET", path: "/operator/sessions/:id", doors, handle: show },
    { method: "DELETE", path: "/operator/sessions/:id", doors, handle: eraseOne },
    { method: "GET", path: "/operator/export", doors, handle: exportAll },
    { method: "POST", path: "/operator/import", doors, handle: importAll },
    { method: "POST", path: "/operator/prune", doors, handle: pruneNow },
  ];
}

/** An owner has one session under a hint. */
const maxOwners = 10_000;

/** A missing hint must not mean everybody's sessions. */
function missingHint(): GatewayError {
  const message = "Specify whose sessions: 'user' or 'hint' is missing.";
  return new GatewayError("missing_required_parameter", message, { param: "user" });
}

const toDeleted = ({ id, type }: Erased) => ({ id, object: type, deleted: true });

const toDate = (at: number): string => new Date(at).toISOString();

/** What is outside of sessions is named by its first turn. */
function toSummary({ id, createdAt, updatedAt, ...rest }: SessionSummary): object {
  const name = id.startsWith("conv_") ? id : `resp_${id}`;
  return { id: name, ...rest, createdAt: toDate(createdAt), updatedAt: toDate(updatedAt) };
}

/** One JSON object, written while it is read: a session may be too long to hold in memory. */
async function* writeSession(
  { isHidden, owner, createdAt, updatedAt, metadata, tip }: SessionRecord,
  id: string,
  turns: AsyncIterable<TurnRecord>,
): AsyncGenerator<string, void, void> {
  const times = { createdAt: toDate(createdAt), updatedAt: toDate(updatedAt) };
  const head = { object: isHidden ? "thread" : "session", id, owner, ...times, metadata, tip: tip && `resp_${tip}` };
  yield `${JSON.stringify(head).slice(0, -1)},"turns":[`;
  let separator = "";
  for await (const turn of turns) {
    yield separator + JSON.stringify(toTurn(turn));
    separator = ",";
  }
  yield "]}";
}

function toTurn({ key, parent, model, createdAt, input, answer, told, record }: TurnRecord): object {
  const { status, usage, error } = told;
  return {
    id: `resp_${key}`,
    parent: parent && `resp_${parent}`,
    model,
    createdAt: toDate(createdAt),
    status,
    usage,
    input,
    output: answer,
    told: { history: record?.told, failure: error && toWireError(error) },
  };
}

/** Sends text as it comes. What fails before the first of it is told by a status, what fails later cuts the answer. */
async function pour(
  { id, response }: Call,
  texts: AsyncIterable<string>,
  type: string,
  streams: Streams,
): Promise<undefined> {
  const headers = { "content-type": `${type}; charset=utf-8`, "cache-control": "no-store", "x-request-id": id };
  const stream = streams.open(response, () => response.writeHead(200, headers), false);
  for await (const text of texts) {
    await stream.write(text);
    if (response.destroyed) return;
  }
  stream.end("");
}
