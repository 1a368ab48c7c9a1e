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
  type StoreConfig,
} from "./config.ts";
import type { FileShape } from "./schema.ts";

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
      tokens: http.tokens.map(toNamedToken),
      limits: toLimits(http.limits),
      cors: { origins: http.cors.origins },
      exposeReasoning: http.expose_reasoning,
    },
    adapters: Object.fromEntries(Object.entries(gateway.adapters).map(([name, adapter]) => [name, toAdapter(adapter)])),
    defaultAdapter: gateway.default_adapter ?? "",
    sessions: { store: toStore(gateway.sessions.store ?? "memory:"), hints: gateway.sessions.hints.map(toHint) },
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
  };
}

function toLimits(limits: HttpShape["limits"]): Limits {
  return {
    maxBodyBytes: limits.max_body_bytes,
    maxJsonDepth: limits.max_json_depth,
    maxMessages: limits.max_messages,
    maxConcurrentTurns: limits.max_concurrent_turns,
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
  const { type, model, models, ...options } = adapter as {
    readonly type: string;
    readonly model?: string;
    readonly models: Readonly<Record<string, string>>;
  };
  return { type, model, models, options };
}

function toStore(url: string): StoreConfig {
  return url === "memory:" ? { type: "memory" } : { type: "sqlite", file: url.slice("sqlite:".length) };
}

function toHint(hint: string): Hint {
  return hint === "user" ? { from: "user" } : { from: "header", name: hint.slice("header:".length).toLowerCase() };
}
