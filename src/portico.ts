/** The composition root: it makes every part of a gateway from a configuration, and closes them in reverse order. */
import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { Config } from "./config/config.ts";
import { createGateway, type Gateway } from "./core/gateway.ts";
import { createChangingRoute } from "./core/route/changing.ts";
import type { SessionStore } from "./core/store.ts";
import type { Observer } from "./core/observer.ts";
import { findFixed } from "./fixed.ts";
import type { GivenAdapters } from "./given.ts";
import { createDoor } from "./http/door.ts";
import type { DoorLog } from "./http/lines.ts";
import { createMetrics } from "./http/metrics.ts";
import type { Operator } from "./http/operator.ts";
import type { Decisions } from "./http/terms.ts";
import { createIds } from "./ids.ts";
import { type Keyring, openKeyring } from "./keyring.ts";
import { createAdapterRoute } from "./lanes.ts";
import { createLog, guardLog } from "./log.ts";
import { toHttpSettings, toLimits } from "./parts.ts";
import { createChatProtocol } from "./protocols/chat/index.ts";
import { createResponsesProtocol, type ResponsesProtocol } from "./protocols/responses/index.ts";
import { findSpans } from "./spans.ts";
import { createPruner, toPruneRules } from "./prune.ts";
import { openStore } from "./stores/index.ts";
import { createTokenCounter } from "./tokens.ts";
import { createObserver, observeStore } from "./observing.ts";

export interface Portico {
  /** Where it listens, e.g. `http://127.0.0.1:8600`; undefined if both endpoints are off. */
  readonly address: string | undefined;
  /** For channels other than HTTP: turns in the same sessions. */
  readonly gateway: Gateway;
  /** Logs a turn that no request asked for. */
  readonly note: Observer["endedWithoutCaller"];
  /** Logs a failure that nobody awaits. */
  readonly noteStray: (thrown: unknown) => void;
  /** The models that callers may choose from, as far as the adapters list them. */
  models(): Promise<readonly string[]>;
  /**
   * Switches to another configuration: new requests see all of it, and running ones finish under the old. Throws, and
   * changes nothing, if an adapter cannot be created or something differs that only a restart can change.
   */
  reload(config: Config): Promise<void>;
  /** Stops accepting, lets running turns finish, then closes everything. `endOthers` ends turns from outside HTTP. */
  close(endOthers?: Closer): Promise<void>;
}

/** Lets turns finish until `overdue` resolves. */
type Closer = (overdue: Promise<void>) => Promise<void>;

/** What an embedding program may pass in. */
export interface Surroundings {
  /** Gets every line, whatever `gateway.log.level` is; by default JSON lines on standard error. */
  readonly log?: DoorLog | undefined;
  /** Its own adapters, by the names that the settings use. */
  readonly adapters?: GivenAdapters | undefined;
  /** The time; by default the platform's clock. */
  readonly now?: (() => Date) | undefined;
}

/** Makes a gateway and opens its listener. */
export async function createPortico(config: Config, surroundings: Surroundings = {}): Promise<Portico> {
  const closers: Closer[] = [];
  try {
    return await open(config, surroundings, closers);
  } catch (thrown) {
    await closeParts(closers, config.http.limits.drainTimeoutMs);
    throw thrown;
  }
}

/** Adds the closer of each opened part to `closers`, in order of opening. */
async function open(config: Config, surroundings: Surroundings, closers: Closer[]): Promise<Portico> {
  const now = surroundings.now ?? (() => new Date());
  const { adapters: given = {} } = surroundings;
  const newId = createIds(now);
  let current = { ...config, limits: toLimits(config) };
  let isClosed = false;

  const logging = surroundings.log === undefined ? createLog(config.log.level) : guardLog(surroundings.log);
  const { log } = logging;
  closers.push(() => logging.close());
  const metrics = createMetrics();
  const spans = await findSpans();
  const observer = createObserver(log, metrics, spans);

  const bare = await openStore(config.sessions.store, (message) => log.error({}, message));
  const store = observeStore(bare, log, metrics.committed);
  closers.push(() => store.close());
  const adapter = createChangingRoute(await createAdapterRoute(config, now, observer, given));
  closers.push(() => adapter.close());
  const tokenCounter = createTokenCounter();
  const gateway = createGateway({
    adapter,
    store,
    limits: () => current.limits,
    alwaysResends: () => current.sessions.alwaysResends,
    now,
    newSessionId: () => newId("conv"),
    digest: (text) => hash("sha256", text, "base64url").slice(0, 22),
    tokenCounter,
    observer,
  });
  closers.push((overdue) => gateway.close(overdue));
  await store.claim();
  await gateway.endLeft();

  const pruner = createPruner({
    endLeft: gateway.endLeft,
    store: {
      prune(rules) {
        gateway.forgetOld();
        return store.prune(rules);
      },
    },
    rules: (moment) => toPruneRules(current.sessions, moment),
    intervalMs: config.sessions.pruneIntervalMs,
    now,
    log,
  });
  closers.push(() => pruner.close());
  const keyring = await openKeyring(store);
  closers.push(async () => keyring.close());

  const responses = createResponsesProtocol({ seal: keyring.sealOf });
  const { endpoints } = config.http;
  const door =
    endpoints.chat || endpoints.responses
      ? createDoor({
          ...toDecisions(config, responses),
          gateway,
          models: () => adapter.models(),
          adapters: () => adapter.states(),
          ready: () => store.check(),
          now,
          newId,
          log,
          metrics,
          tracer: spans,
          operator: { store: renewKeys(store, keyring), prune: pruner.run, ...archiving },
        })
      : undefined;
  closers.push(async () => door?.close());
  const address = await door?.listen();

  async function change(next: Config): Promise<void> {
    const fixed = findFixed(current, next);
    if (fixed.length > 0) throw new Error(`Only a restart can change ${fixed.join(", ")}.`);
    const route = await createAdapterRoute(next, now, observer, given);
    if (isClosed) {
      await route.close();
      throw new Error("The gateway is closed.");
    }
    // Nothing is awaited from here on, so that no request sees half of it.
    current = { ...next, limits: toLimits(next) };
    adapter.change(route).catch((thrown: unknown) => {
      log.error({ err: thrown }, "The adapters from before the reload could not be closed.");
    });
    door?.change(toDecisions(next, responses));
    pruner.retime(next.sessions.pruneIntervalMs);
    logging.setLevel(next.log.level);
    prepareCounting(next, tokenCounter);
  }

  prepareCounting(config, tokenCounter);
  return {
    address,
    gateway,
    note: observer.endedWithoutCaller,
    noteStray: (err) => log.error({ err }, "Something failed that nobody was waiting for. The gateway continues."),
    models: () => adapter.models(),
    reload: oneAfterTheOther(change),
    close(endOthers) {
      isClosed = true;
      return closeParts(closers, current.http.limits.drainTimeoutMs, endOthers);
    },
  };
}

/** Newest first, that one beside `others`; finally throws the first failure. */
async function closeParts(closers: Closer[], drainTimeoutMs: number, others?: Closer): Promise<void> {
  const over = new AbortController();
  const overdue = wait(drainTimeoutMs, undefined, { signal: over.signal }).catch(() => {});
  const failures: unknown[] = [];
  // A failure must not leave the rest open, least of all the store.
  const attempt = async (closer: Closer | undefined) => closer?.(overdue).catch((thrown) => failures.push(thrown));
  await Promise.all([attempt(closers.pop()), attempt(others)]);
  for (const closer of closers.splice(0).toReversed()) await attempt(closer);
  over.abort();
  if (failures.length > 0) throw failures[0];
}

/** Loading takes a fifth of a second, for which neither the start nor the first long conversation should wait. */
function prepareCounting({ adapters }: Config, tokenCounter: () => Promise<unknown>): void {
  const isCounted = Object.values(adapters).some(({ contextWindow }) => contextWindow !== undefined);
  // Whoever counts gets the error.
  if (isCounted) tokenCounter().catch(() => {});
}

function toDecisions(config: Config, responses: ResponsesProtocol): Decisions {
  const chat = createChatProtocol({ exposeReasoning: config.http.exposeReasoning });
  return { settings: toHttpSettings(config), protocols: { chat, responses } };
}

/** Texts sealed by an archive's own gateway can be opened once it is imported. */
function renewKeys(store: SessionStore, keyring: Keyring): SessionStore {
  return {
    ...store,
    async importRecords(records) {
      const taken = await store.importRecords(records);
      // If this fails, its timer tries again.
      await keyring.renew().catch(() => {});
      return taken;
    },
  };
}

/** Reloads run in order, however long each takes, so the newest wins. */
function oneAfterTheOther(change: (config: Config) => Promise<void>): (config: Config) => Promise<void> {
  let last = Promise.resolve();
  return (config) => {
    const changed = last.then(() => change(config));
    last = changed.catch(() => {});
    return changed;
  };
}

/** Archives are rare, and their validators take a quarter of a second to load. */
const archiving: Pick<Operator, "writeArchive" | "readArchive"> = {
  async *writeArchive(records) {
    yield* (await import("./archive/write.ts")).writeArchive(records);
  },
  async *readArchive(bytes) {
    yield* (await import("./archive/read.ts")).readArchive(bytes);
  },
};
