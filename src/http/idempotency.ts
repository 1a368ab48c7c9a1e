/** Reads the key by which a repeated request is known. */
import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { IdempotencyKey } from "../core/store.ts";

const maxKeyLength = 255;

/**
 * The same request is the same path, the same session and the same bytes. The digest is keyed with the key itself, so that
 * nobody can find out by trying whose session it was.
 */
export function readIdempotencyKey(
  headers: IncomingHttpHeaders,
  path: string,
  hint: string | undefined,
  body: Buffer,
): IdempotencyKey | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || key === "" || key.length > maxKeyLength) {
    throw new GatewayError("invalid_value", `The header 'Idempotency-Key' must have 1 to ${maxKeyLength} characters.`, {
      param: "Idempotency-Key",
    });
  }
  const fingerprint = createHmac("sha256", key)
    .update(JSON.stringify([path, hint ?? null]))
    .update(body)
    .digest("base64url");
  return { key, fingerprint };
}
