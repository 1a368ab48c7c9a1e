/** Translates the configuration into the settings of each part of a gateway. */
import type { Config } from "./config/config.ts";
import type { GatewayLimits } from "./core/gateway.ts";
import { createModelSet } from "./core/route/models.ts";
import { type Endpoint, toDigest, type Token } from "./http/auth.ts";
import type { HttpSettings } from "./http/settings.ts";

/** The settings of the core. */
export function toLimits({ http, sessions }: Config): GatewayLimits {
  return {
    maxItems: http.limits.maxMessages,
    maxTools: http.limits.maxTools,
    maxReferencedCharacters: http.limits.maxBodyBytes,
    maxQueuedPerThread: http.limits.maxQueuedPerThread,
    maxTurnsPerThread: sessions.maxTurnsPerThread,
    maxCharactersPerThread: sessions.maxBytesPerThread,
    maxEvents: sessions.maxEventsPerTurn,
    maxCharacters: sessions.maxEventBytesPerTurn,
    maxRunning: sessions.maxBackgroundTurns,
    maxUnattendedMs: sessions.maxUnattendedMs,
    keyMs: sessions.idempotencyMs ?? Infinity,
    maxRememberedCharacters: sessions.maxReplayBytes,
  };
}

/** The settings of the front door. */
export function toHttpSettings({ auth, http: { authToken, ...http }, sessions }: Config): HttpSettings {
  // If the endpoints have a token of their own, the general one does not open them.
  const general = toUnnamed(auth.token, authToken === undefined ? ["operator", ...endpoints] : ["operator"]);
  const named = http.tokens.map((token): Token => ({ ...token, models: token.models && createModelSet(token.models) }));
  return { ...http, tokens: [...general, ...toUnnamed(authToken, endpoints), ...named], hints: sessions.hints };
}

const endpoints = ["chat", "responses"] as const;

/** Changing an unnamed token loses no session: all of them share this owner. */
export const unnamedOwner = "default";

/** Whether a token makes its callers this owner; a program may have any other. */
export function isTokenOwner({ http }: Pick<Config, "http">, owner: string): boolean {
  return owner === unnamedOwner || http.tokens.some((token) => token.owner === owner);
}

function toUnnamed(token: string | undefined, opens: readonly Endpoint[]): readonly Token[] {
  return token === undefined ? [] : [{ owner: unnamedOwner, sha256: toDigest(token), opens: new Set(opens) }];
}
