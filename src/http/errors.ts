/** Failures over HTTP: one shape on every path and status, even where no request could be read. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, GatewayError, toWireError } from "../core/errors.ts";
import { hasBody } from "./body.ts";
import type { Call, Result } from "./call.ts";

/** To import it would load all that it has behind getters, fetch among it: a quarter of a start. */
const { STATUS_CODES: reasons } = process.getBuiltinModule("node:http");

export function draining(): GatewayError {
  const message =
    "The gateway is shutting down. Send the request again; another instance or the restarted one takes it.";
  return new GatewayError("draining", message, { retryAfterSeconds: 5 });
}

export function toErrorResult(error: GatewayError, more: Result["headers"] = {}): Result {
  const retryAfter = error.retryAfterSeconds ?? (error.status === 429 || error.status === 503 ? 1 : undefined);
  return {
    status: error.status,
    body: { error: toWireError(error) },
    headers: {
      ...more,
      ...(error.status === 401 && { "www-authenticate": "Bearer" }),
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
      ...(error.code === "draining" && { connection: "close" }),
    },
  };
}

/** The rest of a refused body must not be read as the next request: its connection is closed, but not before its sender can see why. */
export function closeUnread({ request, response }: Call): void {
  if (request.complete || !hasBody(request)) return;
  response.setHeader("connection", "close");
  const { socket } = response;
  // Node closes with this method once the answer is written.
  if (socket !== null) socket.destroySoon = () => closeAfterReading(socket);
}

/** If the connection were closed at once, a client that still sends would get a reset and lose the answer. */
function closeAfterReading(socket: Socket): void {
  socket.end();
  const overdue = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(overdue));
}

const lingerMs = 2_000;

type Refused = (error: GatewayError, id: string, address: string | undefined) => void;

/** Answers on the bare socket what is no HTTP request. */
export function refuseMalformed(server: Server, newId: () => string, refused: Refused): void {
  server.on("clientError", ({ code }: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket;
    // Node reports each chunk that it cannot parse: a client that was answered and still sends is waited for.
    if (socket.writableEnded && code !== "ECONNRESET") return;
    // One that asked for nothing is no failure.
    if (code === "ECONNRESET" || !socket.writable || socket.bytesRead === 0) socket.destroy();
    else refuse(socket, new GatewayError(...(socketErrors[code ?? ""] ?? malformed)));
  });
  server.on("connect", (_request, stream) => {
    stream.on("error", () => {});
    refuse(stream as Socket, new GatewayError("malformed_http", "The gateway is no proxy: it takes no CONNECT."));
  });

  function refuse(socket: Socket, error: GatewayError): void {
    // No public property tells the answer that is in progress on a socket; Node's own handler looks here too.
    const { _httpMessage: answer } = socket as { readonly _httpMessage?: ServerResponse | null };
    // Inside an answer that has begun, it would be taken for the rest of it.
    if (answer?.headersSent === true) return void socket.destroy();
    const id = newId();
    // A request that was read has its own end.
    if (!answer) refused(error, id, socket.remoteAddress);
    answerBare(error, socket, id);
  }
}

type Words = readonly [code: ErrorCode, message: string];

function answerBare(error: GatewayError, socket: Socket, id: string): void {
  const body = JSON.stringify({ error: toWireError(error) });
  socket.write(
    `HTTP/1.1 ${error.status} ${reasons[error.status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\nx-request-id: ${id}\r\n\r\n${body}`,
  );
  closeAfterReading(socket);
}

const socketErrors: Readonly<Record<string, Words>> = {
  HPE_HEADER_OVERFLOW: ["headers_too_large", "The request's headers are too large; the limit is 16 KiB."],
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "The request's headers did not arrive in 10 seconds."],
};
const malformed: Words = ["malformed_http", "This is not a well-formed HTTP request."];
