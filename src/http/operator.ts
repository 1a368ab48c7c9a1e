/** The operator's routes: list, show, delete, export, import and prune what is stored, whoever owns it. */
import { Readable } from "node:stream";
import type { IncomingMessage } from "node:http";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { ArchiveRecord, Pruned, SessionStore } from "../core/store.ts";
import { deleteWanted, exportWanted, findUnderHint, findWanted, type Wanted } from "../core/wanted.ts";
import { toTurnId } from "../protocols/chat/completion.ts";
import { bodyIncomplete, sendContinue, tooSlow } from "./body.ts";
import { exclusive, hintNames, missingHint, readHintOf, readLimit, readOutside, readQuery } from "./query.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";

/** What the operator's routes work on. */
export interface Operator {
  readonly store: SessionStore;
  /** Applies the configured retention now. */
  readonly prune: () => Promise<Omit<Pruned, "more">>;
  /** An archive as text, line by line. */
  readonly writeArchive: (records: AsyncIterable<ArchiveRecord>) => AsyncIterable<string>;
  /** The records of an archive's bytes. */
  readonly readArchive: (bytes: AsyncIterable<Uint8Array>) => AsyncIterable<ArchiveRecord>;
}

/** `GET /operator/sessions?owner=&user=&hint=&after=&limit=`, or with `outside=true` turns outside sessions. */
export async function listSessions(request: HttpRequest): Promise<unknown> {
  const query = readQuery(request, [...hintNames, "after", "limit", "outside"]);
  const { owner, after } = query;
  const limit = readLimit(query.limit);
  const hint = readHintOf(query);
  const isOutside = readOutside(query.outside);
  if (isOutside && hint !== undefined) throw exclusive("outside", "hint");
  const page = { owner, after, limit: limit + 1 };
  const { store } = request.terms.operator;
  const found = await (isOutside ? store.listSessionless(page) : store.listSessions({ ...page, hint }));
  return { object: "list", data: found.slice(0, limit), hasMore: found.length > limit };
}

/** `DELETE /operator/sessions?user=` or `?hint=`: all under the hint, of every owner or of one. */
export async function deleteSessions(request: HttpRequest): Promise<unknown> {
  const { store } = request.terms.operator;
  const query = readQuery(request, hintNames);
  const hint = readHintOf(query);
  if (hint === undefined) throw missingHint();
  const data: unknown[] = [];
  for (const wanted of await findUnderHint(store, hint, query.owner)) {
    if ((await deleteWanted(store, wanted)) > 0) data.push(toDeleted(wanted));
  }
  return { object: "list", data };
}

/** `GET /operator/sessions/{id}`, with all its turns; also for a turn outside of sessions. */
export async function showSession(request: HttpRequest, reply: HttpReply): Promise<HttpReply> {
  const wanted = await find(request);
  const records = request.terms.operator.store.exportRecords(wanted.id);
  return sendText(writeWanted(wanted, records), "application/json", reply);
}

/** `DELETE /operator/sessions/{id}`; a turn outside of sessions with all that follow it. */
export async function deleteSession(request: HttpRequest): Promise<unknown> {
  const wanted = await find(request);
  if ((await deleteWanted(request.terms.operator.store, wanted)) === 0) {
    throw new GatewayError("not_found", `Session with id '${wanted.id}' not found.`);
  }
  return toDeleted(wanted);
}

/** `GET /operator/export`, or with `?session=`, `?user=` or `?hint=` only those. */
export async function exportArchive(request: HttpRequest, reply: HttpReply): Promise<HttpReply> {
  const { store, writeArchive } = request.terms.operator;
  const query = readQuery(request, [...hintNames, "session"]);
  const { session } = query;
  const hint = readHintOf(query);
  if (hint !== undefined && session !== undefined) throw exclusive("session", "hint");
  if (hint === undefined && query.owner !== undefined) throw missingHint();
  const one = session === undefined ? undefined : [await findWanted(store, toTurnId(session))];
  const wanted = hint === undefined ? one : await findUnderHint(store, hint, query.owner);
  if (wanted?.length === 0) throw new GatewayError("not_found", "There is no session under this hint.");
  const records = wanted !== undefined ? exportWanted(store, wanted) : store.exportRecords();
  return sendText(writeArchive(records), "application/x-ndjson", reply);
}

/** `POST /operator/import`: all of the archive, or nothing. */
export async function importArchive(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  readQuery(request, []);
  const { operator, limits } = request.terms;
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/x-ndjson") {
    throw new GatewayError(
      "unsupported_media_type",
      "The body must be an archive: send the header 'Content-Type: application/x-ndjson'.",
    );
  }
  sendContinue(reply);
  const bytes = readChunks(request.raw, limits.bodyIdleTimeoutMs);
  return { object: "import", ...(await operator.store.importRecords(operator.readArchive(bytes))) };
}

/** `POST /operator/prune` */
export async function prune(request: HttpRequest): Promise<unknown> {
  readQuery(request, []);
  const { sessions, turns } = await request.terms.operator.prune();
  return { object: "prune", sessions, turns };
}

async function find(request: HttpRequest): Promise<Wanted> {
  readQuery(request, []);
  const { id } = request.params as { readonly id: string };
  return findWanted(request.terms.operator.store, toTurnId(id));
}

function toDeleted({ id, type }: Wanted): unknown {
  return { id, object: type, deleted: true };
}

/** One JSON object, written while it is read: a session may be too long to hold in memory. */
async function* writeWanted(
  { type, id, owner }: Wanted,
  records: AsyncIterable<ArchiveRecord>,
): AsyncGenerator<string, void, void> {
  if (type === "thread") yield openTurns({ object: type, id, owner });
  let separator = "";
  for await (const record of records) {
    if (record.type === "session") {
      const { type: object, hint: _hint, ...session } = record;
      yield openTurns({ object, ...session });
    } else if (record.type === "turn") {
      yield separator + JSON.stringify(record.turn);
      separator = ",";
    }
  }
  yield "]}";
}

function openTurns(head: object): string {
  return `${JSON.stringify(head).slice(0, -1)},"turns":[`;
}

/** Cuts off a caller that reads nothing for too long; a failure after the head was sent can only be logged. */
function sendText(text: AsyncIterable<string>, type: string, reply: HttpReply): HttpReply {
  const { limits, journal } = reply.request.terms;
  async function* gather(): AsyncGenerator<string, void, void> {
    let gathered = "";
    try {
      for await (const piece of text) {
        gathered += piece;
        if (gathered.length < writeLength) continue;
        yield gathered;
        gathered = "";
      }
    } catch (thrown) {
      if (reply.raw.headersSent) journal.report(toGatewayError(thrown), reply.request);
      throw thrown;
    }
    yield gathered;
  }

  reply.raw.socket?.setTimeout(limits.stalledClientTimeoutMs);
  return reply.header("content-type", `${type}; charset=utf-8`).send(Readable.from(gather()));
}

/** How many characters are sent per write. */
const writeLength = 64 * 1024;

/** The body as it arrives. An archive may be long, but it must keep moving. */
async function* readChunks(incoming: IncomingMessage, idleMs: number): AsyncGenerator<Uint8Array, void, void> {
  // Whoever reports an error still looks at the request, so it is not destroyed.
  const chunks = incoming.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const step = await within(chunks.next(), idleMs);
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    void chunks.return?.();
  }
}

async function within<T>(step: Promise<T>, idleMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  // Timers run before sockets: after a stall of our own, first read what has arrived.
  const timer = setTimeout(() => setImmediate(reject, tooSlow(idleMs, " Nothing was imported.")), idleMs);
  try {
    return await Promise.race([step, late]);
  } catch (thrown) {
    throw thrown instanceof GatewayError ? thrown : bodyIncomplete(thrown);
  } finally {
    clearTimeout(timer);
  }
}
