/** Who asks for a turn, beside the body: the session that the request names, and the key by which it is known again. */
import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Caller } from "../core/gateway.ts";
import type { Ask } from "../core/turn.ts";
import type { Call } from "./call.ts";
import type { Hint } from "./settings.ts";

/** `body`: of a request that may have a key. */
export function toCaller(call: Call, ask: Pick<Ask, "user">, body?: Buffer): Caller {
  const { request, signal, record, settings, token, share } = call;
  const hint = readHint(settings.hints, request.headers, ask.user);
  return {
    owner: token.owner,
    hint,
    isByHeader: hint?.startsWith("header:") === true,
    userHint: ask.user === undefined || ask.user === "" ? undefined : toUserHint(ask.user),
    // Only applications that show their whole history with every request send that header.
    shows: (token.showsHistory ?? settings.showsHistory) || hint?.startsWith("header:x-openwebui-chat-id:") === true,
    signal,
    trace: record.trace,
    hold: () => share.hold(),
    idempotency: body && readIdempotency(request, hint, body),
  };
}

/** The first configured hint that it carries, its kind in front: a header and a `user` of the same value name two sessions. */
function readHint(hints: readonly Hint[], headers: IncomingHttpHeaders, user: string | undefined): string | undefined {
  for (const hint of hints) {
    const value = hint.type === "user" ? user : headers[hint.name];
    if (typeof value !== "string" || value === "") continue;
    return hint.type === "user" ? toUserHint(value) : `header:${hint.name}:${value}`;
  }
  return undefined;
}

const toUserHint = (user: string): string => `user:${user}`;

const maxKeyCharacters = 255;

/**
 * The same request has the same target, the same hint and the same bytes. The fingerprint is keyed with the key itself,
 * so that nobody can find out by guessing whose session it was.
 */
function readIdempotency(request: IncomingMessage, hint: string | undefined, body: Buffer): Caller["idempotency"] {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key !== "string" || key === "" || key.length > maxKeyCharacters) {
    const message = `The header 'Idempotency-Key' must have 1 to ${maxKeyCharacters} characters.`;
    throw new GatewayError("invalid_value", message, { param: "Idempotency-Key" });
  }
  const target = JSON.stringify([request.url, hint ?? null]);
  return { key, fingerprint: createHmac("sha256", key).update(target).update(body).digest("base64url") };
}
