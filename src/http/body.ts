/** Reads a body as JSON, bounded in size, time and depth; what is wrong with it is said with its place. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Call } from "./call.ts";

export interface Body {
  readonly bytes: Buffer;
  readonly json: unknown;
}

/** A body is looked at so often, and may be quiet for three looks, or be on its way for 60. */
const lookMs = 10_000;
const maxQuietLooks = 3;
const maxLooks = 60;
const maxDepth = 64;

/** Of most requests it is here by the time that it is asked for. */
export function readBody(call: Call): Promise<Body> | Body {
  const { request, response, settings, share } = call;
  const { maxBodyBytes } = settings.limits;
  const length = checkHead(request.headers, maxBodyBytes);
  share.take(length ?? 0);
  sendContinue(request, response);
  if (length === undefined || !request.complete) return gatherBytes(call, length, maxBodyBytes).then(toBody);
  return toBody(request.read() ?? Buffer.alloc(0));
}

/** Whether a request announces a body that is not empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** A body as it comes: it may be of any length, as long as it moves. */
export function readPieces({ request, response }: Call): AsyncIterable<Uint8Array> {
  sendContinue(request, response);
  request.socket.setTimeout(lookMs * maxQuietLooks);
  request.once("end", () => request.socket.setTimeout(0));
  // Whoever refuses it still needs the connection.
  return request.iterator({ destroyOnReturn: false });
}

/** To a caller that waits for it, once nothing else speaks against its request. */
function sendContinue({ httpVersion, headers: { expect } }: IncomingMessage, response: ServerResponse): void {
  if (expect !== undefined && httpVersion === "1.1" && /\b100-continue\b/i.test(expect)) response.writeContinue();
}

/** Returns its length, if it is told. */
function checkHead(headers: IncomingHttpHeaders, maxBodyBytes: number): number | undefined {
  const { "content-type": type = "", "content-encoding": content = "identity" } = headers;
  const { "transfer-encoding": transfer, "content-length": length } = headers;
  if (length === undefined && transfer === undefined)
    throw new GatewayError("length_required", "The request has no body. Send Content-Length, or chunks.");
  const [isJson, charset = "utf-8"] =
    /^application\/json\s*(?:;.*charset\s*=\s*"?([^\s;"]+).*|;.*)?$/i.exec(type) ?? [];
  if (isJson === undefined) throw unsupported("Send the body as JSON, with 'Content-Type: application/json'.");
  if (!/^utf-?8$/i.test(charset)) throw unsupported(`The charset '${charset}' is not supported; send JSON in UTF-8.`);
  // A compressed body could be far larger than it looks.
  const other = [content, transfer].find((coding) => coding !== undefined && !/^(identity|chunked)$/i.test(coding));
  if (other !== undefined) throw unsupported(`The encoding '${other}' is not supported; send the body unencoded.`);
  if (length === undefined) return undefined;
  if (Number(length) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  return Number(length);
}

function unsupported(message: string): GatewayError {
  return new GatewayError("unsupported_media_type", message);
}

/** `length`: what is counted already. */
function gatherBytes({ request, signal, share }: Call, length: number | undefined, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let gathered: Buffer = Buffer.alloc(0);
    let size = 0;
    let looks = 0;
    let quietLooks = 0;
    const timer = setInterval(look, lookMs);

    function look(): void {
      looks += 1;
      quietLooks += 1;
      if (looks > maxLooks) fail(tooSlow());
      // Timers run before sockets: after a long tick of our own, what has come meanwhile is read first.
      else if (quietLooks > maxQuietLooks) setImmediate(() => quietLooks > maxQuietLooks && fail(tooSlow()));
    }
    function finish(): void {
      clearInterval(timer);
      signal.removeEventListener("abort", leave);
      request.off("data", take).off("end", end).off("close", leave);
    }
    function fail(error: unknown): void {
      finish();
      reject(error);
    }
    function take(chunk: Buffer): void {
      quietLooks = 0;
      try {
        if (size + chunk.length > maxBytes) throw tooLarge(maxBytes);
        if (length === undefined) share.take(chunk.length);
      } catch (thrown) {
        return fail(thrown);
      }
      gathered = append(gathered, size, chunk);
      size += chunk.length;
    }
    function end(): void {
      finish();
      resolve(gathered.subarray(0, size));
    }
    function leave(): void {
      const left = new GatewayError("client_closed", "The caller disconnected before the end of its body.");
      fail(signal.aborted ? signal.reason : left);
    }
    signal.addEventListener("abort", leave);
    request.on("data", take).on("end", end).on("close", leave);
  });
}

/** Adds a chunk to one growing buffer: a list of chunks of a byte each would take a hundred times their size. */
function append(gathered: Buffer, size: number, chunk: Buffer): Buffer {
  const needed = size + chunk.length;
  const room = needed > gathered.length ? Buffer.allocUnsafeSlow(2 * needed) : gathered;
  if (room !== gathered) gathered.copy(room, 0, 0, size);
  chunk.copy(room, size);
  return room;
}

const strict = new TextDecoder("utf-8", { fatal: true });

function toBody(bytes: Buffer): Body {
  if (bytes.length === 0) throw new GatewayError("invalid_json", "The request body is empty. Send a JSON object.");
  let text: string;
  try {
    // It drops a byte order mark.
    text = strict.decode(bytes);
  } catch {
    throw new GatewayError("invalid_json", "The request body is not UTF-8. Send JSON in UTF-8.");
  }
  return { bytes, json: parseJson(text) };
}

/** Whoever sends JSON otherwise than as a body has the same bound. */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new GatewayError("invalid_json", `The request body is not valid JSON: ${why}.`);
  }
  checkDepth(value, 0);
  return value;
}

function checkDepth(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null) return;
  if (depth === maxDepth)
    throw new GatewayError("json_too_deep", `The request body is nested deeper than ${maxDepth} levels.`);
  if (Array.isArray(value)) for (const entry of value) checkDepth(entry, depth + 1);
  else for (const key in value) checkDepth((value as Readonly<Record<string, unknown>>)[key], depth + 1);
}

function tooSlow(): GatewayError {
  const message = "No byte of the body came for 30 seconds, or it took longer than 10 minutes.";
  return new GatewayError("request_timeout", message);
}

function tooLarge(maxBodyBytes: number): GatewayError {
  const message = `The request body is larger than ${maxBodyBytes} bytes (gateway.http.limits.max_body_bytes). Send less, or references instead of inline files.`;
  return new GatewayError("body_too_large", message);
}
