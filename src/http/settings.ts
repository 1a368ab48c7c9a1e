/** The settings of the front door: what it reads of the configuration, which it may not import. */
import type { Token } from "./auth.ts";

export interface HttpSettings {
  /** An address, or `unix:` and the path of a socket. */
  readonly bind: string;
  readonly port: number;
  /** Octal digits. */
  readonly socketMode: string;
  /** Whose `X-Forwarded-For` is believed: addresses, networks like `10.1.0.0/16`, `unix`. */
  readonly trustedProxies: readonly string[];
  readonly endpoints: { readonly chat: boolean; readonly responses: boolean };
  /** Whether the page for the browser is served. */
  readonly console: boolean;
  readonly tokens: readonly Token[];
  /** Where a request may name its session, in order of precedence. */
  readonly hints: readonly Hint[];
  readonly corsOrigins: readonly string[];
  readonly webSocket: WebSocketSettings;
  readonly limits: HttpLimits;
}

/** Settings of the responses endpoint's WebSocket form. */
interface WebSocketSettings {
  readonly enabled: boolean;
  readonly maxConnections: number;
  /** How long a connection may last. */
  readonly maxMinutes: number;
}

/** A header, by its lower-case name, or the body's `user`. */
export type Hint = { readonly type: "header"; readonly name: string } | { readonly type: "user" };

export interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxJsonDepth: number;
  readonly maxConcurrentTurns: number;
  /** On one connection, unanswered. */
  readonly maxPipelinedRequests: number;
  /** Of all bodies still arriving, together. */
  readonly maxArrivingBytes: number;
  /** Of all requests in progress and unread answers, together. */
  readonly maxHeldBytes: number;
  readonly headersTimeoutMs: number;
  readonly bodyIdleTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly maxUnsentBytes: number;
  readonly stalledClientTimeoutMs: number;
  readonly maxAuthFailuresPerMinute: number;
  readonly drainTimeoutMs: number;
  /** For tokens without a rate of their own; absent: no limit. */
  readonly rate: Rate | undefined;
}

export interface Rate {
  readonly requestsPerMinute: number;
  /** How many may come at once after a pause. */
  readonly burst: number;
}
