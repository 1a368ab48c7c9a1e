/** Translates the configuration into the settings of each part of a gateway. */
import type { Config } from "./config/config.ts";
import type { GatewayLimits } from "./core/gateway.ts";
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
    maxEvents: sessions.maxEventsPerTurn,
    maxCharacters: sessions.maxEventBytesPerTurn,
    maxRunning: sessions.maxBackgroundTurns,
    maxUnattendedMs: sessions.maxUnattendedMs,
    keyMs: sessions.idempotencyMs ?? Infinity,
    maxRememberedCharacters: sessions.maxReplayBytes,
  };
}

/** The settings of the front door. */
export function toHttpSettings(config: Config): HttpSettings {
  const { http } = config;
  return {
    listen: http.bind.startsWith("unix:")
      ? { path: http.bind.slice("unix:".length), mode: Number.parseInt(http.socketMode, 8) }
      : { host: http.bind, port: http.port },
    endpoints: { chat: http.endpoints.compatChat, responses: http.endpoints.compatResponses },
    console: http.console,
    tokens: toTokens(config),
    hints: config.sessions.hints,
    corsOrigins: http.cors.origins,
    webSocket: http.webSocket,
    limits: http.limits,
  };
}

/** Changing an unnamed token loses no session: all of them share this owner. */
export const unnamedOwner = "default";

/** The configuration's names of endpoints. */
const endpointsOf = { compat_chat: "chat", compat_responses: "responses", metrics: "metrics" } as const;

function toTokens(config: Config): readonly Token[] {
  const { auth, http } = config;
  const tokens: Token[] = [];
  if (auth.token !== undefined) {
    const opens: readonly Endpoint[] = http.authToken === undefined ? ["operator", "chat", "responses"] : ["operator"];
    tokens.push({ owner: unnamedOwner, sha256: toDigest(auth.token), opens: new Set(opens) });
  }
  if (http.authToken !== undefined) {
    tokens.push({ owner: unnamedOwner, sha256: toDigest(http.authToken), opens: new Set(["chat", "responses"]) });
  }
  for (const { name, sha256, expiresAt, endpoints, rate, maxConcurrentTurns } of http.tokens) {
    const opens = endpoints.map((endpoint) => endpointsOf[endpoint]);
    const own = { expiresAt, rate, maxConcurrentTurns };
    tokens.push({ owner: name, sha256: Buffer.from(sha256, "hex"), opens: new Set(opens), ...own });
  }
  return tokens;
}
