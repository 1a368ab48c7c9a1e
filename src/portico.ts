/** The composition root: it makes every part of a gateway from a configuration, and closes them in reverse order. */
import { hash } from "node:crypto";
import { adapterTypes } from "./adapters/index.ts";
import type { AdapterConfig, Config } from "./config/config.ts";
import { createGateway, type Gateway } from "./core/gateway.ts";
import { createModelNames, type ModelNames } from "./core/models.ts";
import type { Adapter } from "./core/ports.ts";
import { toDigest, type Endpoint, type Token } from "./http/auth.ts";
import { createDoor } from "./http/door.ts";
import type { DoorLog } from "./http/journal.ts";
import type { HttpSettings } from "./http/settings.ts";
import { createIds } from "./ids.ts";
import { createLog } from "./log.ts";
import { createChatProtocol } from "./protocols/chat/index.ts";
import { createResponsesProtocol } from "./protocols/responses/index.ts";
import { openStore } from "./stores/index.ts";

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
  const closers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
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
    const { adapter, names } = createAdapter(config);
    closers.push(async () => adapter.close?.());
    const gateway = createGateway({
      adapter,
      store,
      resolveModel: names.resolve,
      limits: { maxItems: config.http.limits.maxMessages, maxQueuedPerThread: config.http.limits.maxQueuedPerThread },
      now,
      newSessionId: () => newId("conv"),
      digest: (text) => hash("sha256", text, "base64url").slice(0, 22),
    });
    const { compatChat, compatResponses } = config.http.endpoints;
    if (!compatChat && !compatResponses) return { address: undefined, gateway, close };
    const door = createDoor({
      settings: toHttpSettings(config),
      gateway,
      protocols: {
        chat: createChatProtocol({ exposeReasoning: config.http.exposeReasoning }),
        responses: createResponsesProtocol({ now }),
      },
      models: () => listModels(adapter, names),
      ready: () => store.check(),
      now,
      newId,
      log,
    });
    closers.push(() => door.close());
    return { address: await door.listen(), gateway, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** The names the operator has given; where there are none, what the adapter offers itself. */
async function listModels(adapter: Adapter, names: ModelNames): Promise<readonly string[]> {
  return names.known.length > 0 ? names.known : ((await adapter.models?.()) ?? []);
}

function createAdapter(config: Config): { readonly adapter: Adapter; readonly names: ModelNames } {
  const chosen: AdapterConfig | undefined = config.adapters[config.defaultAdapter];
  const type = adapterTypes[chosen?.type ?? ""];
  if (chosen === undefined || type === undefined)
    throw new Error(`the configuration has no usable adapter '${config.defaultAdapter}'`);
  return { adapter: type.create(chosen.options), names: createModelNames(chosen) };
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
