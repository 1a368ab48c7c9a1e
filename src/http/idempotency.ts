/** Reads the key that identifies a repeated request. */
import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { AskedKey } from "../core/gateway.ts";

const maxKeyLength = 255;
const param = "Idempotency-Key";

/**
 * The same request has the same path, the same hint and the same bytes. The digest is keyed with the key itself, so
 * that nobody can find out by guessing whose session it was.
 */
export function readIdempotencyKey(
  headers: IncomingHttpHeaders,
  path: string,
  hint: string | undefined,
  body: Buffer,
): AskedKey | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || key === "" || key.length > maxKeyLength) {
    const message = `The header '${param}' must have 1 to ${maxKeyLength} characters.`;
    throw new GatewayError("invalid_value", message, { param });
  }
  const fingerprint = createHmac("sha256", key)
    .update(JSON.stringify([path, hint ?? null]))
    .update(body)
    .digest("base64url");
  return { key, fingerprint, param };
}
