/** Reads a body as JSON, bounded in size, time and depth; what is wrong with it is said with its place. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Call } from "./call.ts";

export interface Body {
  readonly bytes: Buffer;
  readonly json: unknown;
}

const idleMs = 30_000;
const totalMs = 600_000;
const maxDepth = 64;

export async function readBody({ request, response, settings }: Call): Promise<Body> {
  const { maxBodyBytes } = settings.limits;
  checkHead(request.headers, maxBodyBytes);
  if (request.httpVersion === "1.1" && /\b100-continue\b/i.test(request.headers.expect ?? "")) response.writeContinue();
  const bytes = await readBytes(request, maxBodyBytes);
  return { bytes, json: parse(bytes) };
}

/** Whether a request announces a body that is not empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function checkHead(headers: IncomingHttpHeaders, maxBodyBytes: number): void {
  const { "content-type": type = "", "content-encoding": content = "identity" } = headers;
  const { "transfer-encoding": transfer, "content-length": length } = headers;
  if (length === undefined && transfer === undefined)
    throw new GatewayError("length_required", "The request has no body. Send Content-Length, or chunks.");
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new GatewayError("unsupported_media_type", "Send the body as JSON, with 'Content-Type: application/json'.");
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type)?.[1] ?? "utf-8";
  if (!/^utf-?8$/i.test(charset))
    throw new GatewayError("unsupported_media_type", `The charset '${charset}' is not supported; send JSON in UTF-8.`);
  // A compressed body could be far larger than it looks.
  if (!/^identity$/i.test(content) || (transfer !== undefined && !/^chunked$/i.test(transfer)))
    throw new GatewayError("unsupported_media_type", "Compressed bodies are not supported; send the body unencoded.");
  if (Number(length ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
}

function readBytes(request: IncomingMessage, maxBodyBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    let late: NodeJS.Immediate | undefined;
    // Timers run before sockets: after a long tick of our own, first read what has come meanwhile.
    const idle = setTimeout(() => (late = setImmediate(() => finish(tooSlow()))), idleMs);
    const total = setTimeout(() => finish(tooSlow()), totalMs);

    function finish(error?: GatewayError): void {
      clearTimeout(idle);
      clearTimeout(total);
      clearImmediate(late);
      request.off("data", take).off("end", end).off("close", gone);
      const [only] = parts;
      if (error !== undefined) reject(error);
      else resolve(parts.length === 1 && only !== undefined ? only : Buffer.concat(parts));
    }
    function take(part: Buffer): void {
      size += part.length;
      if (size > maxBodyBytes) return finish(tooLarge(maxBodyBytes));
      parts.push(part);
      clearImmediate(late);
      idle.refresh();
    }
    const end = (): void => finish();
    const gone = (): void =>
      finish(new GatewayError("client_closed", "The caller disconnected before the end of its body."));
    request.on("data", take).on("end", end).on("close", gone);
  });
}

function parse(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new GatewayError("invalid_json", "The request body is empty. Send a JSON object.");
  const text = toText(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new GatewayError("invalid_json", `The request body is not valid JSON: ${why}.`);
  }
  if (isTooDeep(value, maxDepth))
    throw new GatewayError("json_too_deep", `The request body is nested deeper than ${maxDepth} levels.`);
  return value;
}

const strict = new TextDecoder("utf-8", { fatal: true });

function toText(bytes: Buffer): string {
  try {
    // It drops a byte order mark.
    return strict.decode(bytes);
  } catch {
    throw new GatewayError("invalid_json", "The request body is not UTF-8. Send JSON in UTF-8.");
  }
}

function isTooDeep(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  for (const key in value) if (isTooDeep((value as Readonly<Record<string, unknown>>)[key], depth - 1)) return true;
  return false;
}

function tooSlow(): GatewayError {
  return new GatewayError(
    "request_timeout",
    `The body made no progress for ${idleMs} ms, or took longer than ${totalMs} ms.`,
  );
}

function tooLarge(maxBodyBytes: number): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The request body is larger than ${maxBodyBytes} bytes (gateway.http.limits.max_body_bytes). Send less, or references instead of inline files.`,
  );
}
