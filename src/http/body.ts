/** Reads a request's body: bounded in size and patience, as JSON, or an error that says where it is wrong. */
import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import { findJsonError } from "./json.ts";
import type { HttpLimits } from "./settings.ts";

export interface JsonBody {
  readonly value: unknown;
  readonly bytes: Buffer;
}

export async function readJsonBody(incoming: IncomingMessage, limits: HttpLimits): Promise<JsonBody> {
  checkCharset(incoming.headers["content-type"]);
  checkEncoding(incoming.headers);
  const bytes = await readBytes(incoming, limits);
  if (!isUtf8(bytes)) throw new GatewayError("invalid_json", "The request body is not valid UTF-8.");
  return { value: parseBody(bytes.toString("utf8", startsWithMark(bytes) ? 3 : 0), limits), bytes };
}

/** The value of a body's text, unless it is not JSON or nested too deeply. */
export function parseBody(text: string, { maxJsonDepth }: Pick<HttpLimits, "maxJsonDepth">): unknown {
  const value = parseJson(text);
  if (!isDeeper(value, maxJsonDepth)) return value;
  throw new GatewayError(
    "json_too_deep",
    `The request body is nested deeper than ${maxJsonDepth} levels (gateway.http.limits.max_json_depth).`,
  );
}

function checkCharset(contentType = ""): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset === undefined || /^utf-?8$/i.test(charset)) return;
  throw new GatewayError("unsupported_media_type", `The charset '${charset}' is not supported; send JSON in UTF-8.`);
}

/** A body that we would have to unpack first could be far larger than it looks. */
function checkEncoding(headers: IncomingHttpHeaders): void {
  const { "content-encoding": content = "identity", "transfer-encoding": transfer = "chunked" } = headers;
  if (content === "identity" && transfer === "chunked") return;
  const encoding = content === "identity" ? transfer : content;
  throw new GatewayError(
    "unsupported_media_type",
    `The encoding '${encoding}' is not supported; send the body as it is.`,
  );
}

/** Some clients put a byte order mark before UTF-8 text. */
function startsWithMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

function readBytes(incoming: IncomingMessage, limits: HttpLimits): Promise<Buffer> {
  const { maxBodyBytes, bodyIdleTimeoutMs } = limits;
  return new Promise((resolve, reject) => {
    if (Number(incoming.headers["content-length"] ?? 0) > maxBodyBytes) return reject(tooLarge(maxBodyBytes));
    const chunks: Buffer[] = [];
    let size = 0;
    const idle = setTimeout(() => {
      finish(
        new GatewayError(
          "request_timeout",
          `No byte of the body came for ${bodyIdleTimeoutMs} ms (gateway.http.limits.body_idle_timeout_ms).`,
        ),
      );
    }, bodyIdleTimeoutMs);

    function finish(error?: GatewayError): void {
      clearTimeout(idle);
      incoming.off("data", take).off("end", end).off("close", gone);
      if (error !== undefined) return reject(error);
      const [first] = chunks;
      resolve(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, size));
    }
    function take(chunk: Buffer): void {
      size += chunk.length;
      if (size > maxBodyBytes) return finish(tooLarge(maxBodyBytes));
      chunks.push(chunk);
      idle.refresh();
    }
    function end(): void {
      finish();
    }
    function gone(): void {
      finish(new GatewayError("client_closed", "The caller left before the end of its body."));
    }
    incoming.on("data", take).on("end", end).on("close", gone);
  });
}

function tooLarge(maxBodyBytes: number): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The request body is larger than ${maxBodyBytes} bytes (gateway.http.limits.max_body_bytes). Send less, or references instead of inline files.`,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (text.trim() === "") throw new GatewayError("invalid_json", "The request body is empty; send a JSON object.");
    throw new GatewayError("invalid_json", `The request body is not valid JSON: ${findJsonError(text)}.`);
  }
}

/** Walks the values rather than the text: a long body has few of them. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const name in value) if (isDeeper((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}
