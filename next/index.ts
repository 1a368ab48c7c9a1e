/** What a program that embeds Portico imports. */
import { hash } from "node:crypto";
import { join } from "node:path";
import { type GivenAdapter, toAdapter } from "./adapters/module/given.ts";
import type { Door, HttpSettings, Token } from "./http/settings.ts";
import { type Log, startPortico } from "./portico.ts";

export class ConfigError extends Error {}

interface Around {
  readonly folder?: string;
  readonly adapters?: Readonly<Record<string, GivenAdapter>>;
  readonly now?: () => Date;
  readonly log?: Log;
}

type Json = Readonly<Record<string, unknown>>;
const at = (value: unknown, key: string): unknown => (value as Json | undefined)?.[key];

/** For now only what the front door needs; the configuration has a room of its own. */
export async function openPortico(settings: unknown, around: Around = {}) {
  const { folder = process.cwd(), adapters = {}, now = () => new Date(), log = { info() {}, error() {} } } = around;
  const gateway = at(settings, "gateway");
  const http = at(gateway, "http");
  const limits = at(http, "limits");
  const number = (key: string, usual: number): number => (at(limits, key) as number | undefined) ?? usual;
  const toToken = (value: string, owner: string, opens: readonly Door[], more: Partial<Token> = {}): Token => ({
    owner,
    sha256: hash("sha256", value),
    opens: new Set(opens),
    ...more,
  });
  const named = ((at(http, "tokens") as readonly Json[] | undefined) ?? []).map((token) =>
    toToken(String(token["token"]), String(token["name"]), ["chat", "responses"], {
      ...(token["history"] === "resent" && { showsHistory: true }),
    }),
  );
  const general = at(at(gateway, "auth"), "token");
  const own = at(http, "auth_token");
  const doors: HttpSettings = {
    bind: "127.0.0.1",
    port: 0,
    socketMode: "600",
    trustedProxies: [],
    corsOrigins: [],
    endpoints: { chat: true, responses: true },
    tokens: [
      ...(typeof own === "string" ? [toToken(own, "default", ["chat", "responses"])] : []),
      ...(typeof general === "string"
        ? [toToken(general, "default", ["chat", "responses", "metrics", "operator"])]
        : []),
      ...named,
    ],
    hints: [
      { type: "header", name: "x-session-id" },
      { type: "header", name: "x-openwebui-chat-id" },
      { type: "header", name: "x-conversation-id" },
      { type: "user" },
    ],
    hasConsole: false,
    hasWebSocket: true,
    exposesReasoning: at(http, "expose_reasoning") === true,
    showsHistory: at(at(gateway, "sessions"), "history") === "resent",
    limits: {
      maxBodyBytes: number("max_body_bytes", 20 * 1024 * 1024),
      maxConcurrentTurns: number("max_concurrent_turns", 1000),
      maxQueuedPerThread: number("max_queued_per_thread", 32),
      heartbeatMs: number("heartbeat_ms", 10_000),
      stalledClientTimeoutMs: number("stalled_client_timeout_ms", 60_000),
      drainTimeoutMs: number("drain_timeout_ms", 30_000),
    },
  };
  const [given] = Object.values(adapters);
  if (given === undefined) throw new ConfigError("There is no adapter.");
  const config = { http: doors, storeFile: join(folder, ".portico", "portico.db") };
  return startPortico(config, { adapter: toAdapter(given), log, now: () => now().getTime() });
}
