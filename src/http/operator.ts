/** The operator's routes: list, show, delete, export, import and prune what is stored, whoever owns it. */
import { GatewayError, toWireError } from "../core/errors.ts";
import type { Erased, Operator, Pruned, SessionRecord, SessionSummary, TurnRecord } from "../core/store.ts";
import { type Fields, missing, readInteger, readString } from "../wires/fields.ts";
import { readPieces } from "./body.ts";
import { behind, type Call, type Result, type Route } from "./call.ts";
import { toErasureHeaders } from "./deletion.ts";
import { checkExclusive, hintNames, readFilter, readHintOf } from "./query.ts";
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
  return [
    toRoute("GET", "/operator/sessions", [...hintNames, "after", "limit"], async (_call, query) => {
      const hint = readHintOf(query);
      const limit = readInteger(query, "limit", 1, maxLimit) ?? usualLimit;
      const wanted = { hint, owner: readString(query, "owner"), after: readString(query, "after"), limit };
      const page = await store.listSessions(wanted);
      return { body: { object: "list", data: page.entries.map(toSummary), hasMore: page.hasMore } };
    }),
    toRoute("DELETE", "/operator/sessions", hintNames, async ({ settings }, query) => {
      const hint = readHintOf(query) ?? missingHint();
      // They may have turns running, and nothing stored yet.
      const owners = settings.tokens.map(({ owner }) => owner);
      const erased = await store.eraseHint({ hint, owner: readString(query, "owner"), owners }, newKey(), now());
      return { body: { object: "list", data: erased.map(toDeleted) }, headers: toErasureHeaders(store) };
    }),
    toRoute("GET", "/operator/sessions/:id", [], async (call) => {
      const [id = ""] = call.names;
      const session = await store.readSession(id);
      return pour(call, writeSession(session, id, store.readTurns(session)), "application/json", streams);
    }),
    toRoute("DELETE", "/operator/sessions/:id", [], async ({ names: [id = ""] }) => ({
      body: toDeleted(await store.erase(id, newKey(), now())),
      headers: toErasureHeaders(store),
    })),
    toRoute("GET", "/operator/export", [...hintNames, "session"], async (call, query) => {
      const hint = readHintOf(query);
      const owner = readString(query, "owner");
      const session = readString(query, "session");
      checkExclusive(query, "session", "user");
      checkExclusive(query, "session", "hint");
      if (hint === undefined && owner !== undefined) missingHint();
      call.record.objectId = session;
      const one = session === undefined ? undefined : [session];
      const ids = hint === undefined ? one : await findUnder(hint, owner);
      return pour(call, store.exportLines(ids), "application/x-ndjson", streams);
    }),
    toRoute("POST", "/operator/import", [], async (call) => {
      const { "content-type": type = "" } = call.request.headers;
      if (!/^application\/x-ndjson\s*(;|$)/i.test(type)) {
        const message = "The body must be an archive: send the header 'Content-Type: application/x-ndjson'.";
        throw new GatewayError("unsupported_media_type", message);
      }
      return { body: { object: "import", ...(await store.importLines(readPieces(call))) } };
    }),
    toRoute("POST", "/operator/prune", [], async () => ({
      body: { object: "prune", ...(await prune()) },
      headers: toErasureHeaders(store),
    })),
  ];

  async function findUnder(hint: string, owner: string | undefined): Promise<readonly string[]> {
    const { entries } = await store.listSessions({ hint, owner, limit: maxOwners });
    if (entries.length === 0) throw new GatewayError("not_found", "There is no session under this hint.");
    return entries.map(({ id }) => id);
  }
}

type Answer = (call: Call, query: Fields) => Promise<Result | undefined>;

function toRoute(method: string, path: string, filters: readonly string[], answer: Answer): Route {
  return behind("operator")(method, path, (call) => answer(call, readFilter(call.request, filters)));
}

/** An owner has one session under a hint. */
const maxOwners = 10_000;

const usualLimit = 50;
const maxLimit = 1_000;

/** A missing hint must not mean everybody's sessions. */
function missingHint(): never {
  missing("user", "Specify whose sessions, by 'user' or 'hint'.");
}

const toDeleted = ({ id, type }: Erased) => ({ id, object: type, deleted: true });

const toDate = (at: number): string => new Date(at).toISOString();

function toSummary({ createdAt, updatedAt, ...rest }: SessionSummary): object {
  return { ...rest, createdAt: toDate(createdAt), updatedAt: toDate(updatedAt) };
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
  { record, response }: Call,
  texts: AsyncIterable<string>,
  type: string,
  streams: Streams,
): Promise<undefined> {
  const headers = { "content-type": `${type}; charset=utf-8`, "cache-control": "no-store", "x-request-id": record.id };
  const stream = streams.open(response, () => response.writeHead(200, headers), false);
  for await (const text of texts) {
    await stream.write(text);
    if (response.destroyed) return;
  }
  stream.end("");
}
