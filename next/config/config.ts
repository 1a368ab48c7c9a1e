/** What the operator has decided, in whole words and units: complete, every reference resolved, every path absolute. */
import { hash } from "node:crypto";
import { adapterKinds, type commonKeys } from "./adapters.ts";
import type { Complete, Form, Keys, Value } from "./form.ts";
import type { toFileForm } from "./keys.ts";
import { isObject } from "./problem.ts";

/** The file as it was read, in its own words. */
export type FileShape = Value<ReturnType<typeof toFileForm>>;

export interface Config {
  /** Undefined in a run without one. */
  readonly file: string | undefined;
  readonly dataDir: string;
  readonly storeFile: string;
  readonly logLevel: "silent" | "error" | "info";
  readonly http: HttpConfig;
  readonly sessions: SessionsConfig;
  readonly adapters: Readonly<Record<string, AdapterConfig>>;
  readonly defaultAdapter: string;
  /** Which adapter answers for a model: its name, or a prefix like `gpt-*`. */
  readonly models: Readonly<Record<string, string>>;
}

/** The front door. */
export interface HttpConfig {
  readonly bind: string;
  readonly port: number;
  readonly socketMode: string;
  readonly endpoints: Readonly<Record<"chat" | "responses", boolean>>;
  /** The unnamed ones, too. */
  readonly tokens: readonly TokenConfig[];
  readonly hints: readonly Hint[];
  readonly showsHistory: boolean;
  readonly hasConsole: boolean;
  readonly hasWebSocket: boolean;
  readonly exposesReasoning: boolean;
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly limits: {
    readonly maxBodyBytes: number;
    readonly maxConcurrentTurns: number;
    readonly maxQueuedPerThread: number;
    readonly heartbeatMs: number;
    readonly stalledClientTimeoutMs: number;
    readonly drainTimeoutMs: number;
    readonly rate: Rate | undefined;
  };
}

export type Door = "chat" | "responses" | "metrics" | "operator";

export interface TokenConfig {
  readonly owner: string;
  readonly sha256: string;
  readonly opens: ReadonlySet<Door>;
  /** Names, or prefixes like `gpt-*`; absent: all. */
  readonly models?: readonly string[] | undefined;
  readonly expiresAt?: number | undefined;
  readonly showsHistory?: boolean | undefined;
  readonly rate?: Rate | undefined;
  readonly maxConcurrentTurns?: number | undefined;
}

export interface Rate {
  readonly requestsPerMinute: number;
  readonly burst: number;
}

/** A header's name in lower case, or the field of the body. */
export type Hint = { readonly type: "header"; readonly name: string } | { readonly type: "user" };

export interface SessionsConfig {
  /** Undefined: never. */
  readonly ttlMs: number | undefined;
  readonly idempotencyTtlMs: number | undefined;
  readonly maxTurnsPerThread: number;
  readonly maxSessionsPerOwner: number;
  readonly maxBackgroundTurns: number;
}

export interface AdapterConfig {
  readonly type: string;
  readonly model: string | undefined;
  readonly models: Readonly<Record<string, string>>;
  readonly contextWindow: number | undefined;
  readonly fallback: readonly string[];
  readonly retries: number;
  /** Undefined: any time. */
  readonly firstByteTimeoutMs: number | undefined;
  readonly idleTimeoutMs: number | undefined;
  readonly totalTimeoutMs: number | undefined;
  /** The keys of its type, as `adapterKinds` has them, in whole words: `baseUrl`. */
  readonly own: Readonly<Record<string, unknown>>;
}

export function toConfig({ gateway }: FileShape, file: string | undefined): Config {
  const { http, sessions, adapters, default_adapter: defaultAdapter = "", models, data_dir: dataDir, log } = gateway;
  return {
    file,
    dataDir,
    storeFile: (sessions.store ?? "").slice("sqlite:".length),
    logLevel: log.level,
    http: toHttp(gateway),
    sessions: {
      ttlMs: toMs(sessions.ttl),
      idempotencyTtlMs: toMs(sessions.idempotency_ttl),
      maxTurnsPerThread: sessions.max_turns_per_thread,
      maxSessionsPerOwner: sessions.max_sessions_per_owner,
      maxBackgroundTurns: sessions.max_background_turns,
    },
    adapters: Object.fromEntries(
      Object.entries(adapters).map(([name, adapter]) => [name, toAdapter(adapter as AdapterShape)]),
    ),
    defaultAdapter,
    models,
  };
}

/** If both endpoints are off, nothing listens. */
export function hasListener({ endpoints }: HttpConfig): boolean {
  return endpoints.chat || endpoints.responses;
}

type Gateway = FileShape["gateway"];

function toHttp({ http, sessions, auth }: Gateway): HttpConfig {
  const { endpoints, limits } = http;
  return {
    bind: http.bind,
    port: http.port,
    socketMode: http.socket_mode,
    endpoints: { chat: endpoints.compat_chat, responses: endpoints.compat_responses },
    tokens: [
      ...toUnnamed(http.auth_token, ["chat", "responses"]),
      ...toUnnamed(auth.token, ["chat", "responses", "metrics", "operator"]),
      ...http.tokens.map(toNamed),
    ],
    hints: sessions.hints.map((hint): Hint => {
      return hint === "user" ? { type: hint } : { type: "header", name: hint.slice("header:".length).toLowerCase() };
    }),
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
      rate: toRate(limits),
    },
  };
}

/** Both unnamed tokens are one owner's, so changing one loses no session. */
function toUnnamed(token: string | undefined, opens: readonly Door[]): readonly TokenConfig[] {
  return token === undefined ? [] : [{ owner: "default", sha256: hash("sha256", token), opens: new Set(opens) }];
}

const doors = { compat_chat: "chat", compat_responses: "responses", metrics: "metrics" } as const;

function toNamed(token: Gateway["http"]["tokens"][number]): TokenConfig {
  const { name, history, limits, expires_at: expiresAt } = token;
  const opened = token.endpoints ?? (["compat_chat", "compat_responses"] as const);
  return {
    owner: name,
    sha256: token.sha256?.toLowerCase() ?? hash("sha256", token.token ?? ""),
    opens: new Set(opened.map((key) => doors[key])),
    models: token.models,
    expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt),
    showsHistory: history === undefined ? undefined : history === "resent",
    rate: toRate(limits),
    maxConcurrentTurns: limits.max_concurrent_turns,
  };
}

type RateShape = Pick<Gateway["http"]["limits"], "requests_per_minute" | "burst">;

function toRate({ requests_per_minute: requestsPerMinute, burst = requestsPerMinute }: RateShape): Rate | undefined {
  return requestsPerMinute === undefined || burst === undefined ? undefined : { requestsPerMinute, burst };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `30d` in ms; undefined for `never`. */
function toMs(duration: string): number | undefined {
  return duration === "never" ? undefined : Number.parseInt(duration, 10) * (unitMs[duration.slice(-1)] ?? 0);
}

export type AdapterShape = { readonly type: string } & Complete<typeof commonKeys>;

function toAdapter(shape: AdapterShape): AdapterConfig {
  const kinds: Readonly<Record<string, Keys>> = adapterKinds;
  return {
    type: shape.type,
    model: shape.model,
    models: shape.models,
    contextWindow: shape.context_window,
    fallback: shape.fallback,
    retries: shape.retries,
    firstByteTimeoutMs: shape.first_byte_timeout_ms,
    idleTimeoutMs: shape.idle_timeout_ms,
    totalTimeoutMs: shape.total_timeout_ms,
    own: toWords(kinds[shape.type] ?? {}, shape),
  };
}

/** What the file calls `base_url` is `baseUrl` in the code; names that the operator chose stay as they are. */
function toWords(keys: Keys, values: object): Readonly<Record<string, unknown>> {
  const word = (key: string): string => key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const translate = (form: Form, value: unknown): unknown =>
    form.type === "section" && isObject(value) ? toWords(form.keys, value) : value;
  const all: Readonly<Record<string, unknown>> = { ...values };
  return Object.fromEntries(Object.entries(keys).map(([key, form]) => [word(key), translate(form, all[key])]));
}

/** The keys in which two configurations differ that only a restart can change: how it listens, and where it stores. */
export function findFixed(before: Config, after: Config): readonly string[] {
  return Object.entries(fixed).flatMap(([key, read]) => (read(before) === read(after) ? [] : [key]));
}

const fixed: Readonly<Record<string, (config: Config) => unknown>> = {
  "gateway.data_dir": ({ dataDir }) => dataDir,
  "gateway.http.bind": ({ http }) => http.bind,
  "gateway.http.port": ({ http }) => http.port,
  "gateway.http.socket_mode": ({ http }) => http.socketMode,
  "gateway.http.endpoints": ({ http }) => hasListener(http),
  "gateway.sessions.store": ({ storeFile }) => storeFile,
};
