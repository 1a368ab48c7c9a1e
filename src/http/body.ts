/** Reads a body as JSON, bounded in size, time, depth and parts; what is wrong with it is said with its place. */
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
/** Objects, lists, and members of objects: a few bytes can be one, which takes far more memory. */
const maxParts = 1_000_000;

/** Whoever has sent one has a turn's place from then on, until it is answered. */
export async function readBody(call: Call): Promise<Body> {
  const { request, response, settings, share } = call;
  const { maxBodyBytes } = settings.limits;
  const { "content-length": length = 0, "idempotency-key": key } = request.headers;
  checkHead(request.headers, maxBodyBytes);
  // It may join the turn of an earlier request: whether it begins one is known when the key is looked up.
  share.check(key !== undefined);
  share.checkBytes(Number(length));
  sendContinue(request, response);
  const bytes = await readBytes(call, maxBodyBytes);
  const json = parseBody(bytes);
  share.enter(key !== undefined);
  return { bytes, json };
}

/** Whether a request announces a body that is not empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** To a caller that waits for it, once nothing else speaks against its request. */
function sendContinue({ httpVersion, headers: { expect } }: IncomingMessage, response: ServerResponse): void {
  if (expect !== undefined && httpVersion === "1.1" && /\b100-continue\b/i.test(expect)) response.writeContinue();
}

function checkHead(headers: IncomingHttpHeaders, maxBodyBytes: number): void {
  const { "content-type": type = "", "content-encoding": content = "identity" } = headers;
  const { "transfer-encoding": transfer = "chunked", "content-length": length } = headers;
  if (length === undefined && headers["transfer-encoding"] === undefined)
    throw new GatewayError("length_required", "The request has no body. Send Content-Length, or chunks.");
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new GatewayError("unsupported_media_type", "Send the body as JSON, with 'Content-Type: application/json'.");
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type)?.[1] ?? "utf-8";
  if (!/^utf-?8$/i.test(charset))
    throw new GatewayError("unsupported_media_type", `The charset '${charset}' is not supported; send JSON in UTF-8.`);
  const isPlain = /^identity$/i.test(content);
  // A compressed body could be far larger than it looks.
  if (!isPlain || !/^chunked$/i.test(transfer)) {
    const message = `The encoding '${isPlain ? transfer : content}' is not supported; send the body unencoded.`;
    throw new GatewayError("unsupported_media_type", message);
  }
  if (Number(length ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
}

async function readBytes(call: Call, maxBodyBytes: number): Promise<Buffer> {
  const { request, share } = call;
  // Most bodies are here by now.
  if (!request.complete || request.readableLength > maxBodyBytes) return gatherBytes(call, maxBodyBytes);
  const bytes: Buffer = request.read() ?? Buffer.alloc(0);
  share.addBytes(bytes.length);
  return bytes;
}

function gatherBytes({ request, signal, share }: Call, maxBodyBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const expected = Number(request.headers["content-length"] ?? maxBodyBytes);
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
      if (size + chunk.length > maxBodyBytes) return fail(tooLarge(maxBodyBytes));
      try {
        share.checkBytes(chunk.length);
      } catch (thrown) {
        return fail(thrown);
      }
      share.addBytes(chunk.length);
      gathered = append(gathered, size, chunk, expected);
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

/** A body as it comes: it may be of any length, as long as it moves. */
export function readPieces({ request, response }: Call): AsyncIterable<Uint8Array> {
  sendContinue(request, response);
  request.socket.setTimeout(lookMs * maxQuietLooks);
  request.once("end", () => request.socket.setTimeout(0));
  // Whoever refuses it still needs the connection.
  return request.iterator({ destroyOnReturn: false });
}

/** Adds a chunk to one growing buffer: a list of chunks of a byte each would take a hundred times their size. */
function append(gathered: Buffer, size: number, chunk: Buffer, expected: number): Buffer {
  // Most bodies come in one chunk, which is not copied.
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

const strict = new TextDecoder("utf-8", { fatal: true });

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new GatewayError("invalid_json", "The request body is empty. Send a JSON object.");
  let text: string;
  try {
    // It drops a byte order mark.
    text = strict.decode(bytes);
  } catch {
    throw new GatewayError("invalid_json", "The request body is not UTF-8. Send JSON in UTF-8.");
  }
  return parseJson(text);
}

/** Whoever sends JSON otherwise than as a body has the same bounds. */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new GatewayError("invalid_json", `The request body is not valid JSON: ${why}.`);
  }
  if (countParts(value, 0) > maxParts) {
    const message = `The request body has more than ${maxParts} objects, lists and members of objects in it. Send less.`;
    throw new GatewayError("body_too_large", message);
  }
  return value;
}

/** Throws if they are nested too deeply. */
function countParts(value: unknown, depth: number): number {
  if (typeof value !== "object" || value === null) return 0;
  if (depth === maxDepth)
    throw new GatewayError("json_too_deep", `The request body is nested deeper than ${maxDepth} levels.`);
  let parts = 1;
  if (Array.isArray(value)) for (const entry of value) parts += countParts(entry, depth + 1);
  else for (const key in value) parts += 1 + countParts((value as Readonly<Record<string, unknown>>)[key], depth + 1);
  return parts;
}

function tooSlow(): GatewayError {
  const seconds = (lookMs * maxQuietLooks) / 1_000;
  const minutes = (lookMs * maxLooks) / 60_000;
  const message = `No byte of the body came for ${seconds} seconds, or it took longer than ${minutes} minutes.`;
  return new GatewayError("request_timeout", message);
}

function tooLarge(maxBodyBytes: number): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The request body is larger than ${maxBodyBytes} bytes (gateway.http.limits.max_body_bytes). Send less, or references instead of inline files.`,
  );
}
