/** What the front door is told: all of it changes together, and a request keeps what was in force when it came. */

export interface HttpSettings {
  readonly bind: string;
  readonly port: number;
  readonly socketMode: string;
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly endpoints: Readonly<Record<Endpoint, boolean>>;
  readonly tokens: readonly Token[];
  readonly hints: readonly Hint[];
  readonly hasConsole: boolean;
  readonly hasWebSocket: boolean;
  readonly exposesReasoning: boolean;
  /** All callers are said to show their history. */
  readonly showsHistory: boolean;
  readonly limits: HttpLimits;
}

type Endpoint = "chat" | "responses";
/** What a token may open. */
export type Door = Endpoint | "metrics" | "operator";

export interface Token {
  /** Sessions belong to the owner, whatever the token's value is today. */
  readonly owner: string;
  /** SHA-256, in hexadecimal digits. */
  readonly sha256: string;
  readonly opens: ReadonlySet<Door>;
  /** Exact names, or prefixes like `gpt-*`; absent: all. */
  readonly models?: readonly string[] | undefined;
  readonly expiresAt?: number | undefined;
  readonly showsHistory?: boolean | undefined;
  readonly rate?: Rate | undefined;
  readonly maxConcurrentTurns?: number | undefined;
}

interface Rate {
  readonly requestsPerMinute: number;
  readonly burst: number;
}

/** A header's name in lower case, or the field of the body. */
export type Hint = { readonly type: "header"; readonly name: string } | { readonly type: "user" };

interface HttpLimits {
  readonly maxBodyBytes: number;
  readonly maxConcurrentTurns: number;
  readonly maxQueuedPerThread: number;
  readonly heartbeatMs: number;
  readonly stalledClientTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly maxConnections: number;
  readonly rate?: Rate | undefined;
}
