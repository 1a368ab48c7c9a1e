/** Says a validated file in the gateway's own words. */
import { createHash } from "node:crypto";
import {
  type AdapterConfig,
  type Config,
  endpointNames,
  type Hint,
  type Limits,
  type NamedToken,
  type Rate,
  type SessionsConfig,
  type StoreConfig,
} from "./config.ts";
import type { FileShape } from "./schema.ts";
import type { AdapterShape } from "./schema/adapter.ts";

type HttpShape = FileShape["gateway"]["http"];

/** The file has passed the schema and every rule, names its default adapter, and its paths are absolute. */
export function toConfig({ gateway }: FileShape, file: string | undefined): Config {
  const { http } = gateway;
  return {
    file,
    dataDir: gateway.data_dir,
    auth: { token: gateway.auth.token },
    http: {
      bind: http.bind,
      port: http.port,
      authToken: http.auth_token,
      endpoints: { compatChat: http.endpoints.compat_chat, compatResponses: http.endpoints.compat_responses },
      console: http.console,
      tokens: http.tokens.map(toNamedToken),
      limits: toLimits(http.limits),
      cors: { origins: http.cors.origins },
      exposeReasoning: http.expose_reasoning,
      webSocket: {
        enabled: http.websocket.enabled,
        maxConnections: http.websocket.max_connections,
        maxMinutes: http.websocket.max_minutes,
      },
    },
    adapters: Object.fromEntries(Object.entries(gateway.adapters).map(([name, adapter]) => [name, toAdapter(adapter)])),
    defaultAdapter: gateway.default_adapter ?? "",
    models: gateway.models,
    sessions: toSessions(gateway.sessions),
    log: { level: gateway.log.level },
  };
}

function toNamedToken(token: HttpShape["tokens"][number]): NamedToken {
  return {
    name: token.name,
    sha256:
      token.sha256?.toLowerCase() ??
      createHash("sha256")
        .update(token.token ?? "")
        .digest("hex"),
    expiresAt: token.expires_at === undefined ? undefined : new Date(token.expires_at),
    endpoints: token.endpoints ?? endpointNames,
    rate: toRate(token.limits),
    maxConcurrentTurns: token.limits.max_concurrent_turns,
  };
}

function toLimits(limits: HttpShape["limits"]): Limits {
  return {
    maxBodyBytes: limits.max_body_bytes,
    maxJsonDepth: limits.max_json_depth,
    maxMessages: limits.max_messages,
    maxTools: limits.max_tools,
    maxConcurrentTurns: limits.max_concurrent_turns,
    maxArrivingBytes: limits.max_arriving_bytes,
    maxQueuedPerThread: limits.max_queued_per_thread,
    headersTimeoutMs: limits.headers_timeout_ms,
    bodyIdleTimeoutMs: limits.body_idle_timeout_ms,
    heartbeatMs: limits.heartbeat_ms,
    maxUnsentBytes: limits.max_unsent_bytes,
    stalledClientTimeoutMs: limits.stalled_client_timeout_ms,
    rate: toRate(limits),
    maxAuthFailuresPerMinute: limits.max_auth_failures_per_minute,
    drainTimeoutMs: limits.drain_timeout_ms,
  };
}

function toRate(rate: {
  readonly requests_per_minute?: number | undefined;
  readonly burst?: number | undefined;
}): Rate | undefined {
  if (rate.requests_per_minute === undefined) return undefined;
  return { requestsPerMinute: rate.requests_per_minute, burst: rate.burst ?? rate.requests_per_minute };
}

function toAdapter(adapter: unknown): AdapterConfig {
  const { type, model, models, context_window, max_answer_characters, fallback, retry, breaker, ...options } =
    adapter as AdapterShape;
  return {
    type,
    model,
    models,
    contextWindow: context_window,
    maxAnswerCharacters: max_answer_characters,
    fallback,
    retry: { times: retry.times, baseMs: retry.base_ms, maxWaitMs: retry.max_wait_ms },
    breaker: breaker.failures === 0 ? undefined : { failures: breaker.failures, openMs: breaker.open_ms },
    options,
  };
}

function toSessions(sessions: FileShape["gateway"]["sessions"]): SessionsConfig {
  return {
    store: toStore(sessions.store ?? "memory:"),
    hints: sessions.hints.map(toHint),
    alwaysResends: sessions.history === "resent",
    ttlMs: toMs(sessions.ttl),
    maxTurnsPerThread: sessions.max_turns_per_thread,
    maxSessionsPerOwner: sessions.max_sessions_per_owner,
    pruneIntervalMs: sessions.prune_interval_ms,
    idempotencyMs: toMs(sessions.idempotency_ttl),
    eventsMs: toMs(sessions.events_ttl),
    maxEventsPerTurn: sessions.max_events_per_turn,
    maxEventBytesPerTurn: sessions.max_event_bytes_per_turn,
    maxBackgroundTurns: sessions.max_background_turns,
    maxReplayBytes: sessions.max_replay_bytes,
    maxUnattendedMs: sessions.max_unattended_ms,
  };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time like `30d` in milliseconds; nothing for `never`. */
function toMs(duration: string): number | undefined {
  return duration === "never" ? undefined : Number.parseInt(duration, 10) * (unitMs[duration.slice(-1)] ?? 0);
}

function toStore(url: string): StoreConfig {
  if (url === "memory:") return { type: "memory" };
  return url.startsWith("redis") ? { type: "redis", url } : { type: "sqlite", file: url.slice("sqlite:".length) };
}

function toHint(hint: string): Hint {
  return hint === "user" ? { from: "user" } : { from: "header", name: hint.slice("header:".length).toLowerCase() };
}
