/** What the operator has decided, complete: every default filled in, every reference resolved, every path absolute. */

export interface Config {
  /** The file that was read; none on a run without one. */
  readonly file: string | undefined;
  /** Where the database and the generated token live. */
  readonly dataDir: string;
  readonly auth: {
    /** The general token. */
    readonly token: string | undefined;
  };
  readonly http: HttpConfig;
  readonly adapters: Readonly<Record<string, AdapterConfig>>;
  /** The name of the adapter to which turns go; `adapters` has it. */
  readonly defaultAdapter: string;
  /** A model's name, or the beginning of names (`gpt-*`), to the name of an adapter. */
  readonly models: Readonly<Record<string, string>>;
  readonly sessions: SessionsConfig;
  readonly log: { readonly level: LogLevel };
}

export interface SessionsConfig {
  readonly store: StoreConfig;
  /** Where a request may name its session, in the order in which they are looked at. */
  readonly hints: readonly Hint[];
  /** Every session's callers are taken to show their history. */
  readonly alwaysResends: boolean;
  /** Nothing: for ever. */
  readonly ttlMs: number | undefined;
  readonly maxTurnsPerThread: number;
  readonly maxSessionsPerOwner: number;
  readonly pruneIntervalMs: number;
  readonly idempotencyMs: number | undefined;
  readonly eventsMs: number | undefined;
  readonly maxEventsPerTurn: number;
  readonly maxEventBytesPerTurn: number;
  readonly maxBackgroundTurns: number;
  readonly maxReplayBytes: number;
  readonly maxUnattendedMs: number;
}

interface WebSocketConfig {
  readonly enabled: boolean;
  readonly maxConnections: number;
  readonly maxMinutes: number;
}

export interface HttpConfig {
  /** An IP address, `localhost`, or `unix:` and an absolute path. */
  readonly bind: string;
  readonly port: number;
  /** The endpoints' own token; when it is there, the general one does not open them. */
  readonly authToken: string | undefined;
  readonly endpoints: { readonly compatChat: boolean; readonly compatResponses: boolean };
  /** The page for the browser is served. */
  readonly console: boolean;
  readonly tokens: readonly NamedToken[];
  readonly limits: Limits;
  readonly cors: { readonly origins: readonly string[] };
  readonly exposeReasoning: boolean;
  readonly webSocket: WebSocketConfig;
}

/** A token of its own for one app: its name is the owner of what it makes. */
export interface NamedToken {
  readonly name: string;
  /** The SHA-256 digest of the token, in lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly expiresAt: Date | undefined;
  /** The endpoints that it opens. */
  readonly endpoints: readonly EndpointName[];
  /** Its own rate in place of the general one. */
  readonly rate: Rate | undefined;
  /** None: as many as may run in all. */
  readonly maxConcurrentTurns: number | undefined;
}

type EndpointName = (typeof endpointNames)[number];

/** The endpoints that can be switched on, by their keys. */
export const endpointNames = ["compat_chat", "compat_responses"] as const;

/** A token bucket: so many requests a minute, and so many at once. */
export interface Rate {
  readonly requestsPerMinute: number;
  readonly burst: number;
}

export interface Limits {
  readonly maxBodyBytes: number;
  readonly maxJsonDepth: number;
  readonly maxMessages: number;
  readonly maxTools: number;
  readonly maxConcurrentTurns: number;
  /** Of all bodies that are on their way together. */
  readonly maxArrivingBytes: number;
  readonly maxQueuedPerThread: number;
  readonly headersTimeoutMs: number;
  readonly bodyIdleTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly maxUnsentBytes: number;
  readonly stalledClientTimeoutMs: number;
  /** None: as many as come. */
  readonly rate: Rate | undefined;
  readonly maxAuthFailuresPerMinute: number;
  readonly drainTimeoutMs: number;
}

export interface AdapterConfig {
  readonly type: string;
  readonly model: string | undefined;
  readonly models: Readonly<Record<string, string>>;
  /** In tokens. */
  readonly contextWindow: number | undefined;
  readonly maxAnswerCharacters: number;
  /** Names of adapters to ask when this one cannot answer. */
  readonly fallback: readonly string[];
  readonly retry: { readonly times: number; readonly baseMs: number; readonly maxWaitMs: number };
  /** Nothing: it is off. */
  readonly breaker: { readonly failures: number; readonly openMs: number } | undefined;
  /** The type's own options; they have passed its schema. */
  readonly options: Readonly<Record<string, unknown>>;
}

export type StoreConfig =
  | { readonly type: "memory" }
  | { readonly type: "sqlite"; readonly file: string }
  /** The URL may hold a password. */
  | { readonly type: "redis"; readonly url: string };

export type Hint =
  /** `name` is in lower case. */
  { readonly from: "header"; readonly name: string } | { readonly from: "user" };

type LogLevel = (typeof logLevels)[number];

/** From nothing to everything. */
export const logLevels = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
