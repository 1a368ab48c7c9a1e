/** Reads the key by which a repeated request is known. */
import { createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Caller } from "../core/gateway.ts";

const maxCharacters = 255;
const param = "Idempotency-Key";

/**
 * The same request has the same target, the same hint and the same bytes. The fingerprint is keyed with the key itself,
 * so that nobody can find out by guessing whose session it was.
 */
export function readIdempotency(
  { headers, url }: IncomingMessage,
  hint: string | undefined,
  body: Buffer,
): Caller["idempotency"] {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || key === "" || key.length > maxCharacters)
    throw new GatewayError("invalid_value", `The header '${param}' must have 1 to ${maxCharacters} characters.`, {
      param,
    });
  const target = JSON.stringify([url, hint ?? null]);
  return { key, fingerprint: createHmac("sha256", key).update(target).update(body).digest("base64url") };
}
