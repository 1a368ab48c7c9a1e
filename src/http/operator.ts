/** The operator's routes: what is kept is listed, shown, deleted, written out and taken in, whoever owns it. */
import { Readable } from "node:stream";
import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { ArchiveRecord, Pruned, SessionStore } from "../core/store.ts";
import { inviteBody } from "./body.ts";
import type { Journal } from "./journal.ts";
import type { HttpLimits } from "./settings.ts";

/** What the operator's routes work on. */
export interface Operator {
  readonly store: Pick<
    SessionStore,
    "listSessions" | "readSession" | "deleteSession" | "exportRecords" | "importRecords"
  >;
  /** Applies the configured retention now. */
  readonly prune: () => Promise<Omit<Pruned, "more">>;
  /** An archive as text, line by line. */
  readonly writeArchive: (records: AsyncIterable<ArchiveRecord>) => AsyncIterable<string>;
  /** The records of an archive's bytes. */
  readonly readArchive: (bytes: AsyncIterable<Uint8Array>) => AsyncIterable<ArchiveRecord>;
}

export interface OperatorParts {
  readonly operator: Operator;
  readonly limits: HttpLimits;
  readonly report: Journal["report"];
}

const usualLimit = 50;
const maxLimit = 1_000;

/** `GET /operator/sessions?owner=&after=&limit=` */
export async function listSessions({ operator }: OperatorParts, request: FastifyRequest): Promise<unknown> {
  const { owner, after, limit: wanted } = readQuery(request);
  const limit = readLimit(wanted);
  const found = await operator.store.listSessions({ owner, after, limit: limit + 1 });
  return { object: "list", data: found.slice(0, limit), hasMore: found.length > limit };
}

/** `GET /operator/sessions/{id}`, with all of its turns. */
export async function showSession(
  parts: OperatorParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { id } = await find(parts, request);
  return sendText(parts, tellSession(parts.operator.store.exportRecords(id)), "application/json", reply);
}

/** `DELETE /operator/sessions/{id}` */
export async function deleteSession(parts: OperatorParts, request: FastifyRequest): Promise<unknown> {
  const { id, owner } = await find(parts, request);
  if (!(await parts.operator.store.deleteSession(owner, id))) throw unknownSession(id);
  return { id, object: "session", deleted: true };
}

/** `GET /operator/export`, or with `?session=` of one session. */
export async function exportArchive(
  { operator, ...parts }: OperatorParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { session } = readQuery(request);
  const lines = operator.writeArchive(operator.store.exportRecords(session));
  return sendText(parts, lines, "application/x-ndjson", reply);
}

/** `POST /operator/import`: all of the archive, or nothing. */
export async function importArchive(
  { operator, limits }: OperatorParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/x-ndjson") {
    throw new GatewayError(
      "unsupported_media_type",
      "The body must be an archive: send the header 'Content-Type: application/x-ndjson'.",
    );
  }
  inviteBody(reply);
  const bytes = readChunks(request.raw, limits.bodyIdleTimeoutMs);
  return { object: "import", ...(await operator.store.importRecords(operator.readArchive(bytes))) };
}

/** `POST /operator/prune` */
export async function prune({ operator }: OperatorParts): Promise<unknown> {
  const { sessions, turns } = await operator.prune();
  return { object: "prune", sessions, turns };
}

/** A parameter that is there twice would come as a list. */
function readQuery({ query }: FastifyRequest): Readonly<Record<string, string | undefined>> {
  const entries = Object.entries(query as Readonly<Record<string, unknown>>);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (typeof value === "string") return [name, value];
      throw new GatewayError("invalid_value", `Invalid '${name}': it may be there only once.`, { param: name });
    }),
  );
}

function readLimit(text: string | undefined): number {
  if (text === undefined || text === "") return usualLimit;
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= maxLimit) return limit;
  throw new GatewayError("out_of_range", `Invalid 'limit': expected an integer from 1 to ${maxLimit}.`, {
    param: "limit",
  });
}

async function find({ operator }: OperatorParts, request: FastifyRequest) {
  const { id } = request.params as { readonly id: string };
  const session = await operator.store.readSession(id);
  if (session === undefined) throw unknownSession(id);
  return session;
}

function unknownSession(id: string): GatewayError {
  return new GatewayError("not_found", `Session with id '${id}' not found.`);
}

/** One JSON object, told while it is read: a session may be longer than it should ever be in memory. */
async function* tellSession(records: AsyncIterable<ArchiveRecord>): AsyncGenerator<string, void, void> {
  let separator = "";
  for await (const record of records) {
    if (record.type === "session") {
      const { type: object, hint: _hint, ...session } = record;
      yield `${JSON.stringify({ object, ...session }).slice(0, -1)},"turns":[`;
    } else if (record.type === "turn") {
      yield separator + JSON.stringify(record.turn);
      separator = ",";
    }
  }
  yield "]}";
}

/** A caller that takes nothing for too long is cut off; what fails after the head was sent can only be told to the log. */
function sendText(
  { limits, report }: Pick<OperatorParts, "limits" | "report">,
  text: AsyncIterable<string>,
  type: string,
  reply: FastifyReply,
): FastifyReply {
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
      if (reply.raw.headersSent) report(toGatewayError(thrown), reply.request);
      throw thrown;
    }
    yield gathered;
  }

  reply.raw.socket?.setTimeout(limits.stalledClientTimeoutMs);
  return reply.header("content-type", `${type}; charset=utf-8`).send(Readable.from(gather()));
}

/** So many characters go out in one write. */
const writeLength = 64 * 1024;

/** The body as it comes. An archive may be of any length, but it must move. */
async function* readChunks(incoming: IncomingMessage, idleMs: number): AsyncGenerator<Uint8Array, void, void> {
  // Whoever tells what was wrong still looks at the request, so it is left as it is.
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
  const timer = setTimeout(() => reject(tooLate(idleMs)), idleMs);
  try {
    return await Promise.race([step.catch(callerLeft), late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooLate(idleMs: number): GatewayError {
  return new GatewayError(
    "request_timeout",
    `No byte of the body came for ${idleMs} ms (gateway.http.limits.body_idle_timeout_ms). Nothing was taken in.`,
  );
}

function callerLeft(thrown: unknown): never {
  throw new GatewayError("client_closed", "The caller left before the end of its body.", { cause: thrown });
}
