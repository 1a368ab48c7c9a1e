/** What the operator has decided, in whole words and units: complete, every reference resolved, every path absolute. */
import { hash } from "node:crypto";
import type { Complete, Value } from "./form.ts";
import type { commonKeys, toFileForm } from "./keys.ts";

/** The file as it was read, in its own words. */
export type FileShape = Value<ReturnType<typeof toFileForm>>;
type Gateway = FileShape["gateway"];

export type Config = ReturnType<typeof toConfig>;

export type SessionsConfig = Config["sessions"];

/** `folder` is where packages are looked for; `file` is undefined in a run without one. */
export function toConfig({ gateway }: FileShape, folder: string, file: string | undefined) {
  const { sessions, adapters, default_adapter: defaultAdapter = "", models, data_dir: dataDir, log, workers } = gateway;
  return {
    file,
    folder,
    dataDir,
    store: sessions.store ?? "",
    logLevel: log.level,
    workers,
    http: toHttp(gateway),
    sessions: {
      ttlMs: toMs(sessions.ttl),
      idempotencyTtlMs: toMs(sessions.idempotency_ttl),
      maxTurnsPerThread: sessions.max_turns_per_thread,
      maxSessionsPerOwner: sessions.max_sessions_per_owner,
      maxBackgroundTurns: sessions.max_background_turns,
    },
    adapters: Object.fromEntries(
      Object.entries(adapters).map(([name, shape]) => [name, toAdapter(shape as AdapterShape)]),
    ) as Readonly<Record<string, AdapterConfig>>,
    defaultAdapter,
    /** Which adapter answers for a model: its name, or a prefix like `gpt-*`. */
    models,
  } as const;
}

/** Of all callers together. */
const maxConnections: number = 10_000;

/** The front door. */
export type HttpConfig = ReturnType<typeof toHttp>;

function toHttp({ http, sessions, auth }: Gateway) {
  const { endpoints, limits } = http;
  const clients = toUnnamed(http.auth_token, "chat", "responses");
  const operators = toUnnamed(auth.token, "chat", "responses", "metrics", "operator");
  return {
    bind: http.bind,
    port: http.port,
    socketMode: http.socket_mode,
    endpoints: { chat: endpoints.compat_chat, responses: endpoints.compat_responses },
    tokens: [...clients, ...operators, ...http.tokens.map(toNamed)],
    hints: sessions.hints.map(toHint),
    showsHistory: sessions.history === "resent",
    hasConsole: http.console,
    hasWebSocket: http.websocket,
    exposesReasoning: http.expose_reasoning,
    trustedProxies: http.trusted_proxies,
    corsOrigins: http.cors.origins,
    limits: {
      maxBodyBytes: limits.max_body_bytes,
      maxConcurrentTurns: limits.max_concurrent_turns,
      maxQueuedPerThread: limits.max_queued_per_thread,
      heartbeatMs: limits.heartbeat_ms,
      stalledClientTimeoutMs: limits.stalled_client_timeout_ms,
      drainTimeoutMs: limits.drain_timeout_ms,
      maxConnections,
      rate: toRate(limits),
    },
  } as const;
}

/** If both endpoints are off, nothing listens. */
export function hasListener({ endpoints }: Pick<HttpConfig, "endpoints">): boolean {
  return endpoints.chat || endpoints.responses;
}

/** A header's name in lower case, or the field of the body. */
type Hint = { readonly type: "header"; readonly name: string } | { readonly type: "user" };

function toHint(hint: string): Hint {
  return hint === "user" ? { type: hint } : { type: "header", name: hint.slice("header:".length).toLowerCase() };
}

type Door = "chat" | "responses" | "metrics" | "operator";

/** Both unnamed tokens are one owner's, so changing one loses no session. */
function toUnnamed(token: string | undefined, ...opens: readonly Door[]) {
  const sha256 = hash("sha256", token ?? "");
  return token === undefined ? [] : [{ owner: "default", sha256, opens: new Set(opens) as ReadonlySet<Door> }];
}

const doors = { compat_chat: "chat", compat_responses: "responses", metrics: "metrics" } as const;
const bothEndpoints = ["compat_chat", "compat_responses"] as const;

function toNamed(token: Gateway["http"]["tokens"][number]) {
  const { name = "", history, limits, expires_at: expiresAt, endpoints = bothEndpoints } = token;
  return {
    owner: name,
    sha256: token.sha256?.toLowerCase() ?? hash("sha256", token.token ?? ""),
    opens: new Set(endpoints.map((key) => doors[key])) as ReadonlySet<Door>,
    models: token.models,
    expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt),
    showsHistory: history === undefined ? undefined : history === "resent",
    rate: toRate(limits),
    maxConcurrentTurns: limits.max_concurrent_turns,
  };
}

type RateShape = Pick<Gateway["http"]["limits"], "requests_per_minute" | "burst">;

/** A bucket that holds `burst`; undefined: no limit. */
function toRate({ requests_per_minute: requestsPerMinute, burst = requestsPerMinute }: RateShape) {
  return requestsPerMinute === undefined || burst === undefined ? undefined : { requestsPerMinute, burst };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `30d` in ms; undefined for `never`. */
function toMs(duration: string): number | undefined {
  return duration === "never" ? undefined : Number.parseInt(duration, 10) * (unitMs[duration.slice(-1)] ?? 0);
}

/** An adapter as it was read; beside these keys it has those of its type. */
export type AdapterShape = { readonly type: string } & Complete<typeof commonKeys>;
export type AdapterConfig = ReturnType<typeof toAdapter>;

function toAdapter(shape: AdapterShape) {
  const { type, model, models, fallback, retries, context_window: contextWindow } = shape;
  /** All of its keys, in the file's words: its maker knows them. */
  return { type, model, models, contextWindow, fallback, retries, own: shape } as const;
}

/** The keys in which two configurations differ that only a restart can change: how it listens, where it stores, how many run. */
export function findFixed(before: Config, after: Config): readonly string[] {
  return fixed.filter(([, read]) => read(before) !== read(after)).map(([key]) => key);
}

const fixed: readonly (readonly [key: string, read: (config: Config) => unknown])[] = [
  ["gateway.data_dir", ({ dataDir }) => dataDir],
  ["gateway.http.bind", ({ http }) => http.bind],
  ["gateway.http.port", ({ http }) => http.port],
  ["gateway.http.socket_mode", ({ http }) => http.socketMode],
  ["gateway.http.endpoints", ({ http }) => hasListener(http)],
  ["gateway.sessions.store", ({ store }) => store],
  ["gateway.workers", ({ workers }) => workers],
];
