/** A gateway for tests: a scripted adapter, a memory store and HTTP, with or without a socket. */
import type { TestContext } from "node:test";
import type { Delta } from "../src/core/delta.ts";
import type { Adapter, Tell } from "../src/core/ports.ts";
import type { SessionStore } from "../src/core/store.ts";
import type { Turn } from "../src/core/turn.ts";
import { toDigest, type Token } from "../src/http/auth.ts";
import { createDoor, type Door } from "../src/http/door.ts";
import { createMetrics } from "../src/http/metrics.ts";
import type { HttpLimits, HttpSettings } from "../src/http/settings.ts";
import type { Decisions } from "../src/http/terms.ts";
import { createIds } from "../src/ids.ts";
import { createChatProtocol } from "../src/protocols/chat/index.ts";
import { createResponsesProtocol } from "../src/protocols/responses/index.ts";
import { createSeal } from "../src/seal.ts";
import { createMemoryStore } from "./stores/memory.ts";
import { endAfter } from "./gateway.ts";
import { makeGateway } from "./making.ts";

export const token = "sk-test-0123456789abcdef";
const sealOf = createSeal(new Uint8Array(32).fill(7));
/** Of the owner `default`. */
export const seal = sealOf("default");
export const authorization = `Bearer ${token}`;

/** What the adapter does with a turn: a list of batches, or a function that may wait, throw and see the signal. */
export type Script =
  | readonly (readonly Delta[])[]
  | ((turn: Turn, signal: AbortSignal, tell: Tell) => AsyncIterable<readonly Delta[]>);

export interface ScriptedAdapter extends Adapter {
  /** Every turn it has seen. */
  readonly turns: Turn[];
}

export function createScriptedAdapter(script: Script): ScriptedAdapter {
  const turns: Turn[] = [];
  return {
    turns,
    stream(turn, signal, tell = () => {}) {
      turns.push(turn);
      return typeof script === "function" ? script(turn, signal, tell) : replay(script);
    },
    models: async () => ["scripted"],
  };
}

async function* replay(batches: readonly (readonly Delta[])[]): AsyncIterable<readonly Delta[]> {
  yield* batches;
}

export function say(...words: string[]): Delta[] {
  return words.map((text) => ({ type: "text", text }));
}

export const usage = { inputTokens: 3, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 };

const defaultLimits: HttpLimits = {
  maxBodyBytes: 1024 * 1024,
  maxJsonDepth: 64,
  maxConcurrentTurns: 100,
  maxPipelinedRequests: 100,
  maxArrivingBytes: 256 * 1024 * 1024,
  maxHeldBytes: 512 * 1024 * 1024,
  headersTimeoutMs: 10_000,
  bodyIdleTimeoutMs: 30_000,
  keepAliveTimeoutMs: 130_000,
  heartbeatMs: 10_000,
  maxUnsentBytes: 1024 * 1024,
  stalledClientTimeoutMs: 60_000,
  maxAuthFailuresPerMinute: 10,
  drainTimeoutMs: 30_000,
  rate: undefined,
};

export function toToken(value: string, rest: Partial<Token> = {}): Token {
  return { owner: "default", sha256: toDigest(value), opens: new Set(["chat", "responses"]), ...rest };
}

/** The usual settings of a box, except for those given. */
export function decide(settings: Partial<HttpSettings> = {}, limits: Partial<HttpLimits> = {}): Decisions {
  return {
    settings: {
      bind: "127.0.0.1",
      port: 0,
      socketMode: "600",
      trustedProxies: [],
      endpoints: { chat: true, responses: true },
      tokens: [toToken(token)],
      hints: [{ type: "header", name: "x-session-id" }, { type: "user" }],
      console: false,
      corsOrigins: [],
      webSocket: { enabled: true, maxConnections: 100, maxMinutes: 60 },
      ...settings,
      limits: { ...defaultLimits, ...limits },
    },
    protocols: {
      chat: createChatProtocol({ exposeReasoning: false }),
      responses: createResponsesProtocol({ seal: sealOf }),
    },
  };
}

export interface BoxOptions {
  readonly settings?: Partial<Omit<HttpSettings, "limits">>;
  readonly limits?: Partial<HttpLimits>;
  readonly maxItems?: number;
  readonly maxTools?: number;
  readonly maxQueuedPerThread?: number;
  readonly store?: SessionStore;
  readonly now?: () => Date;
}

export interface Box extends Door {
  readonly adapter: ScriptedAdapter;
  readonly store: SessionStore;
  readonly logged: { level: string; fields: object; message: string }[];
}

export function createBox(context: TestContext, script: Script, options: BoxOptions = {}): Box {
  const now = options.now ?? (() => new Date());
  const newId = createIds(now);
  const store = options.store ?? createMemoryStore();
  const adapter = createScriptedAdapter(script);
  const logged: Box["logged"] = [];
  const write = (level: string) => (fields: object, message: string) => void logged.push({ level, fields, message });
  const gateway = makeGateway({
    adapter,
    store,
    limits: {
      maxItems: options.maxItems ?? 4096,
      maxTools: options.maxTools ?? 4096,
      maxQueuedPerThread: options.maxQueuedPerThread ?? 16,
    },
    now,
  });
  const door = createDoor({
    ...decide(options.settings, options.limits),
    gateway,
    models: async () => (await adapter.models?.()) ?? [],
    adapters: () => [{ name: "scripted", state: "closed" }],
    ready: () => store.check(),
    now,
    newId,
    log: { info: write("info"), error: write("error") },
    metrics: createMetrics(),
    operator: { store, prune: noArchive, writeArchive: noArchive, readArchive: noArchive },
  });
  endAfter(context, () => door.close());
  return { ...door, adapter, store, logged };
}

/** The operator's routes have their own tests and parts. */
function noArchive(): never {
  throw new Error("a box has no archive");
}

/** The data of a stream's events, in order. */
export function readEvents(text: string): string[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "" && !block.startsWith(":"))
    .map((block) => block.replace(/^event: .*\n/, "").replace(/^data: /, ""));
}
