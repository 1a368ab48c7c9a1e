/** The composition root: it makes every part of a gateway from a configuration, and closes them in reverse order. */
import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { adapterTypes } from "./adapters/index.ts";
import { type Place, toPlace } from "./adapters/type.ts";
import type { AdapterConfig, Config } from "./config/config.ts";
import { createGateway, type Gateway, type GatewayLimits } from "./core/gateway.ts";
import { createModelNames } from "./core/route/models.ts";
import { interrupted } from "./core/frame/replay.ts";
import type { Adapter } from "./core/ports.ts";
import { createRoute, type Lane, type Route } from "./core/route/route.ts";
import { toDigest, type Endpoint, type Token } from "./http/auth.ts";
import { createDoor } from "./http/door.ts";
import type { DoorLog } from "./http/journal.ts";
import type { Operator } from "./http/operator.ts";
import type { HttpSettings } from "./http/settings.ts";
import { createIds } from "./ids.ts";
import { createLog } from "./log.ts";
import { createChatProtocol } from "./protocols/chat/index.ts";
import { createResponsesProtocol } from "./protocols/responses/index.ts";
import { createSeal } from "./seal.ts";
import { createPruner, toPruneRules } from "./prune.ts";
import { openStore } from "./stores/index.ts";
import { createTokenCounter } from "./tokens.ts";

export interface Portico {
  /** Where it listens, e.g. `http://127.0.0.1:8600`; nothing when both endpoints are off. */
  readonly address: string | undefined;
  /** For channels beside HTTP: turns through the same sessions. */
  readonly gateway: Gateway;
  /** Stops accepting, lets running turns end, then closes everything. */
  close(): Promise<void>;
}

/** What a program that embeds a gateway may bring along. */
export interface Surroundings {
  readonly log?: DoorLog;
  readonly now?: () => Date;
}

/** Makes a gateway and opens its listener. */
export async function createPortico(config: Config, surroundings: Surroundings = {}): Promise<Portico> {
  const now = surroundings.now ?? (() => new Date());
  const newId = createIds(now);
  const closers: ((overdue: Promise<void>) => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    const overdue = wait(config.http.limits.drainTimeoutMs, undefined, { ref: false });
    const failures: unknown[] = [];
    for (const closer of closers.splice(0).toReversed()) {
      // One that fails must not leave the others open: the store comes last.
      await closer(overdue).catch((thrown: unknown) => failures.push(thrown));
    }
    if (failures.length > 0) throw failures[0];
  };

  function openLog(): DoorLog {
    const { log, close } = createLog(config.log.level);
    closers.push(async () => close());
    return log;
  }

  try {
    const log = surroundings.log ?? openLog();
    const store = openStore(toStoreUrl(config));
    closers.push(() => store.close());
    const adapter = await createAdapterRoute(config, now);
    closers.push(() => adapter.close());
    const { ready: tokenCounter } = createTokenCounter();
    const gateway = createGateway({
      adapter,
      store,
      limits: toLimits(config),
      alwaysResends: config.sessions.alwaysResends,
      now,
      newSessionId: () => newId("conv"),
      digest: (text) => hash("sha256", text, "base64url").slice(0, 22),
      tokenCounter,
    });
    closers.push((overdue) => gateway.close(overdue));
    await store.claim();
    await store.endRunning(interrupted, now());
    const pruner = createPruner({
      store,
      rules: (moment) => toPruneRules(config.sessions, moment),
      intervalMs: config.sessions.pruneIntervalMs,
      now,
      log,
    });
    closers.push(() => pruner.close());
    const { compatChat, compatResponses } = config.http.endpoints;
    let address: string | undefined;
    if (compatChat || compatResponses) {
      const door = createDoor({
        settings: toHttpSettings(config),
        gateway,
        protocols: {
          chat: createChatProtocol({ exposeReasoning: config.http.exposeReasoning }),
          responses: createResponsesProtocol({ seal: createSeal(await store.secret("seal")) }),
        },
        models: () => adapter.models(),
        adapters: () => adapter.states(),
        ready: () => store.check(),
        now,
        newId,
        log,
        operator: { store, prune: pruner.run, ...archiving },
      });
      closers.push(() => door.close());
      address = await door.listen();
    }
    // Loading takes a fifth of a second, which neither the start nor the first long conversation should have to wait for.
    if (Object.values(config.adapters).some(({ contextWindow }) => contextWindow !== undefined)) void tokenCounter();
    return { address, gateway, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

async function createAdapterRoute(config: Config, now: () => Date): Promise<Route> {
  const lanes: Lane[] = [];
  for (const [name, chosen] of Object.entries(config.adapters)) {
    const { contextWindow, fallback, retry, breaker } = chosen;
    const adapter = await createAdapter(name, chosen, toPlace(config.file));
    lanes.push({ name, adapter, models: createModelNames(chosen), contextWindow, fallback, retry, breaker });
  }
  const { defaultAdapter: defaultLane, models: byModel } = config;
  return createRoute({ lanes, defaultLane, byModel, now, random: Math.random, wait: pause });
}

async function createAdapter(name: string, { type, options }: AdapterConfig, place: Place): Promise<Adapter> {
  const found = adapterTypes[type];
  if (found === undefined) throw new Error(`the configuration has an adapter of the unknown type '${type}'`);
  const maker = await found.load();
  try {
    return maker.create(options, place);
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new Error(`The adapter '${name}' cannot be used: ${reason}`, { cause: thrown });
  }
}

/** Archives are rare, and what judges their lines takes a quarter of a second to load. */
const archiving: Pick<Operator, "writeArchive" | "readArchive"> = {
  async *writeArchive(records) {
    yield* (await import("./archive.ts")).writeArchive(records);
  },
  async *readArchive(bytes) {
    yield* (await import("./archive.ts")).readArchive(bytes);
  },
};

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return wait(milliseconds, undefined, { signal });
}

const forEver = Number.POSITIVE_INFINITY;

function toLimits({ http, sessions }: Config): GatewayLimits {
  return {
    maxItems: http.limits.maxMessages,
    maxReferencedCharacters: http.limits.maxBodyBytes,
    maxQueuedPerThread: http.limits.maxQueuedPerThread,
    maxTurnsPerThread: sessions.maxTurnsPerThread,
    maxEvents: sessions.maxEventsPerTurn,
    maxCharacters: sessions.maxEventBytesPerTurn,
    maxRunning: sessions.maxBackgroundTurns,
    maxUnattendedMs: sessions.maxUnattendedMs,
    keyMs: sessions.idempotencyMs ?? forEver,
    maxRememberedCharacters: sessions.maxReplayBytes,
  };
}

function toStoreUrl(config: Config): string {
  const { store } = config.sessions;
  return store.type === "memory" ? "memory:" : `sqlite:${store.file}`;
}

function toHttpSettings(config: Config): HttpSettings {
  const { http } = config;
  return {
    listen: http.bind.startsWith("unix:")
      ? { path: http.bind.slice("unix:".length) }
      : { host: http.bind, port: http.port },
    endpoints: { chat: http.endpoints.compatChat, responses: http.endpoints.compatResponses },
    tokens: toTokens(config),
    hints: config.sessions.hints.map((hint) =>
      hint.from === "user" ? { type: "user" } : { type: "header", name: hint.name },
    ),
    corsOrigins: http.cors.origins,
    webSocket: http.webSocket,
    limits: http.limits,
  };
}

/** Changing an unnamed token loses no session: they are all the owner `default`. */
const unnamed = "default";

function toTokens(config: Config): readonly Token[] {
  const { auth, http } = config;
  const tokens: Token[] = [];
  if (auth.token !== undefined) {
    const opens: readonly Endpoint[] = http.authToken === undefined ? ["operator", "chat", "responses"] : ["operator"];
    tokens.push({ owner: unnamed, sha256: toDigest(auth.token), opens: new Set(opens) });
  }
  if (http.authToken !== undefined) {
    tokens.push({ owner: unnamed, sha256: toDigest(http.authToken), opens: new Set(["chat", "responses"]) });
  }
  for (const { name, sha256, expiresAt, endpoints, rate } of http.tokens) {
    const opens = endpoints.map((endpoint) => (endpoint === "compat_chat" ? "chat" : "responses"));
    tokens.push({ owner: name, sha256: Buffer.from(sha256, "hex"), opens: new Set(opens), expiresAt, rate });
  }
  return tokens;
}
