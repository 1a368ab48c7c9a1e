/** Reads a request's body as JSON, bounded in size and time; errors say where the body is wrong. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import { watchClient } from "./client.ts";
import type { HttpReply } from "./reply.ts";
import { type ReadBody, readResent, readWhole } from "./resent.ts";
import type { HttpLimits } from "./settings.ts";
import type { Terms } from "./terms.ts";

interface JsonBody extends ReadBody {
  readonly bytes: Buffer;
}

/** How to read the body of a request. */
interface Reading {
  /** It may follow a turn rather than ask for one. */
  readonly onlyFollows?: boolean | undefined;
  /** The list that clients resend in it, each time longer. */
  readonly listName?: string | undefined;
}

export async function readJsonBody(reply: HttpReply, { onlyFollows, listName }: Reading = {}): Promise<JsonBody> {
  const { raw: incoming, token, terms } = reply.request;
  checkCharset(incoming.headers["content-type"]);
  checkEncoding(incoming.headers);
  checkLength(incoming.headers, terms.limits);
  terms.turns.check({ token, bytes: Number(incoming.headers["content-length"] ?? 0), onlyFollows });
  sendContinue(reply);
  const bytes = await readBytes(incoming, token.owner, terms);
  const { limits, beginnings } = terms;
  if (listName === undefined) return { ...readWhole(bytes, limits), bytes };
  return { ...readResent(bytes, { owner: token.owner, listName }, limits, beginnings), bytes };
}

/** Runs `work` on a request's body, in a turn's slot, until its caller leaves. `instead` replaces a missing body. */
export async function workOnBody<Result>(
  reply: HttpReply,
  work: (body: unknown, signal: AbortSignal) => Promise<Result>,
  instead?: unknown,
): Promise<Result> {
  const { token, terms } = reply.request;
  const client = watchClient(reply.raw);
  const isPresent = instead === undefined || hasBody(reply.request);
  const { value, heldBytes: bytes } = isPresent ? await readJsonBody(reply) : { value: instead, heldBytes: 0 };
  return terms.turns.run(client, { token, bytes }, () => work(value, client.signal));
}

/** Whether a request announces a body that is not empty. */
export function hasBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Sends 100 Continue to a caller that waits for it, once nothing else speaks against the request. */
export function sendContinue({ raw: response, request: { raw: incoming } }: HttpReply): void {
  if (incoming.httpVersion === "1.1" && /\b100-continue\b/i.test(incoming.headers.expect ?? ""))
    response.writeContinue();
}

function checkCharset(contentType = ""): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset === undefined || /^utf-?8$/i.test(charset)) return;
  throw new GatewayError("unsupported_media_type", `The charset '${charset}' is not supported; send JSON in UTF-8.`);
}

/** A compressed body could be far larger than it looks. */
function checkEncoding(headers: IncomingHttpHeaders): void {
  const { "content-encoding": content = "identity", "transfer-encoding": transfer = "chunked" } = headers;
  const isPlain = /^identity$/i.test(content);
  if (isPlain && /^chunked$/i.test(transfer)) return;
  const encoding = isPlain ? transfer : content;
  throw new GatewayError(
    "unsupported_media_type",
    `The encoding '${encoding}' is not supported; send the body unencoded.`,
  );
}

function checkLength({ "content-length": length = "0" }: IncomingHttpHeaders, { maxBodyBytes }: HttpLimits): void {
  if (Number(length) > maxBodyBytes) throw tooLarge(maxBodyBytes);
}

function readBytes(incoming: IncomingMessage, owner: string, { limits, arrivals }: Terms): Promise<Buffer> {
  const { maxBodyBytes, bodyIdleTimeoutMs } = limits;
  return new Promise((resolve, reject) => {
    const expected = Number(incoming.headers["content-length"] ?? maxBodyBytes);
    let gathered: Buffer = Buffer.alloc(0);
    let size = 0;
    const arrival = arrivals.begin(owner, finish);
    let late: NodeJS.Immediate | undefined;
    // Timers run before sockets: after a stall of our own, first read what has arrived.
    const idle = setTimeout(() => (late = setImmediate(finish, tooSlow(bodyIdleTimeoutMs))), bodyIdleTimeoutMs);

    function finish(error?: GatewayError): void {
      clearTimeout(idle);
      clearImmediate(late);
      arrival.end();
      incoming.off("data", take).off("end", finish).off("close", gone);
      if (error === undefined) resolve(gathered.subarray(0, size));
      else reject(error);
    }
    function take(chunk: Buffer): void {
      if (size + chunk.length > maxBodyBytes) return finish(tooLarge(maxBodyBytes));
      gathered = append(gathered, size, chunk, expected);
      size += chunk.length;
      arrival.hold(gathered.length);
      clearImmediate(late);
      idle.refresh();
    }
    function gone(): void {
      finish(bodyIncomplete());
    }
    incoming.on("data", take).on("end", finish).on("close", gone);
  });
}

/** Adds a chunk to one growing buffer: a list of one-byte chunks would take a hundred times their size. */
function append(gathered: Buffer, size: number, chunk: Buffer, expected: number): Buffer {
  // Most bodies arrive in one chunk, which is not copied.
  if (size === 0) return chunk;
  const needed = size + chunk.length;
  let room = gathered;
  if (needed > room.length) {
    room = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(2 * needed, expected)));
    gathered.copy(room, 0, 0, size);
  }
  chunk.copy(room, size);
  return room;
}

/** The rest of a body will never come. */
export function bodyIncomplete(cause?: unknown): GatewayError {
  return new GatewayError("client_closed", "The caller disconnected before the end of its body.", { cause });
}

export function tooSlow(idleMs: number, consequence = ""): GatewayError {
  return new GatewayError(
    "request_timeout",
    `No byte of the body arrived for ${idleMs} ms (gateway.http.limits.body_idle_timeout_ms).${consequence}`,
  );
}

function tooLarge(maxBodyBytes: number): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The request body is larger than ${maxBodyBytes} bytes (gateway.http.limits.max_body_bytes). Send less, or references instead of inline files.`,
  );
}
