/** Sends failures over HTTP: one shape on every path and status, even if no request could be read. */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, GatewayError, toWireError } from "../core/errors.ts";
import { hasBody } from "./body.ts";
import type { HttpReply } from "./reply.ts";

export function sendError(error: GatewayError, reply: HttpReply): void {
  if (error.status === 401) reply.header("www-authenticate", "Bearer");
  const retryAfter = toRetryAfter(error);
  if (retryAfter !== undefined) reply.header("retry-after", retryAfter);
  const { raw: incoming } = reply.request;
  const isUnread = !incoming.complete && hasBody(incoming);
  // The rest of a refused body must not be read as the next request.
  if (isUnread || error.code === "draining") reply.header("connection", "close");
  const { socket } = reply.raw;
  // Node closes with this method once the answer is written.
  if (isUnread && socket !== null) socket.destroySoon = () => closeAfterReading(socket);
  reply.code(error.status).header("content-type", "application/json; charset=utf-8").send(toBody(error));
}

/** The value of `Retry-After`, in seconds; a refusal that only lasts for a while always has one. */
export function toRetryAfter({ status, retryAfterSeconds }: GatewayError): string | undefined {
  const seconds = retryAfterSeconds ?? (status === 429 || status === 503 ? 1 : undefined);
  return seconds?.toString();
}

/**
 * If the connection were closed at once, a client that still sends would get a reset and lose the answer. So what it
 * sends is discarded for a moment; a client that never ends is not waited for.
 */
function closeAfterReading(socket: Socket): void {
  socket.end();
  const overdue = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(overdue));
}

const lingerMs = 2_000;

type Words = readonly [code: ErrorCode, message: string];

/** Answers on the bare socket what is not an HTTP request. Returns what it has said, unless it was about a request. */
export function answerMalformed(
  failure: Error & { code?: string },
  socket: Socket,
  requestId: string,
): GatewayError | undefined {
  // Node reports each chunk it cannot parse: a client that was answered and still sends is waited for.
  if (socket.writableEnded && failure.code !== "ECONNRESET") return undefined;
  if (failure.code === "ECONNRESET" || !socket.writable) socket.destroy();
  else if (socket.bytesRead === 0) closeUnused(socket);
  else return answerBare(socketErrors.get(failure.code) ?? malformed, socket, requestId);
  return undefined;
}

/**
 * A connection that was opened in advance has asked for nothing: what it gets could be taken for its first answer. But
 * after a long tick its time is over before what it has sent meanwhile is read; its time then begins with that, or
 * never, if that is blank lines alone.
 */
function closeUnused(socket: Socket): void {
  setImmediate(() => {
    if (socket.bytesRead === 0) socket.destroy();
  });
}

/** Answers CONNECT, which Node leaves to us, in the same way: the client takes us for a proxy. */
export function answerTunnel(socket: Socket, requestId: string): GatewayError | undefined {
  // Nobody else handles its errors now.
  socket.on("error", () => {});
  return answerBare(
    ["malformed_http", "The gateway is not a proxy, so it does not support CONNECT. Send the request itself."],
    socket,
    requestId,
  );
}

function answerBare(words: Words, socket: Socket, requestId: string): GatewayError | undefined {
  const answer = answerOn(socket);
  // Inside an answer that has begun, it would be taken for the rest of it.
  if (answer?.headersSent) {
    socket.destroy();
    return undefined;
  }
  const error = new GatewayError(...words);
  const body = toBody(error);
  // Importing node:http loads all its exports, even fetch and WebSocket, which no start should wait for.
  const { STATUS_CODES } = process.getBuiltinModule("node:http");
  socket.write(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\nx-request-id: ${requestId}\r\n\r\n${body}`,
  );
  closeAfterReading(socket);
  // Half a request is one too, and has its own line in the log.
  return answer === undefined ? error : undefined;
}

/** The answer to the request that is in progress on a socket, if any. */
function answerOn(socket: Socket): ServerResponse | undefined {
  // No public property says it; Node's own handler of such requests looks here too.
  const { _httpMessage: answer } = socket as { readonly _httpMessage?: ServerResponse | null };
  return answer ?? undefined;
}

const socketErrors = new Map<unknown, Words>([
  ["HPE_HEADER_OVERFLOW", ["headers_too_large", "The request's headers are too large; the limit is 16 KiB."]],
  [
    "ERR_HTTP_REQUEST_TIMEOUT",
    ["request_timeout", "The request's headers did not arrive in time (gateway.http.limits.headers_timeout_ms)."],
  ],
]);

const malformed: Words = ["malformed_http", "This is not a well-formed HTTP request."];

function toBody(error: GatewayError): string {
  return JSON.stringify({ error: toWireError(error) });
}
