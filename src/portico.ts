/** The composition root: it makes every part of a gateway from a configuration, and closes them in reverse order. */
import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { type Config, hasListener } from "./config/config.ts";
import { createGateway, type Gateway } from "./core/gateway.ts";
import { createChangingRoute } from "./core/route/changing.ts";
import type { SessionStore } from "./core/store.ts";
import type { Observer } from "./core/observer.ts";
import { findFixed } from "./fixed.ts";
import type { GivenAdapters } from "./given.ts";
import { createDoor } from "./http/door.ts";
import { createTurnJournal } from "./http/journal.ts";
import type { DoorLog } from "./http/lines.ts";
import { createMetrics } from "./http/metrics.ts";
import type { Operator } from "./http/operator.ts";
import type { Decisions } from "./http/terms.ts";
import { createIds } from "./ids.ts";
import { type Keyring, openKeyring } from "./keyring.ts";
import { createAdapterRoute } from "./lanes.ts";
import { createLog, guardLog } from "./log.ts";
import { isTokenOwner, toHttpSettings, toLimits } from "./parts.ts";
import { createChatProtocol } from "./protocols/chat/index.ts";
import { createResponsesProtocol, type ResponsesProtocol } from "./protocols/responses/index.ts";
import { findSpans } from "./spans.ts";
import { createPruner, toPruneRules } from "./prune.ts";
import { openStore } from "./stores/index.ts";
import { createTokenCounter } from "./tokens.ts";
import { createObserver, observeStore } from "./observing.ts";
import { readVersion } from "./version.ts";

export interface Portico {
  /** Where it listens, e.g. `http://127.0.0.1:8600`; undefined if both endpoints are off. */
  readonly address: string | undefined;
  /** For channels other than HTTP: turns in the same sessions. */
  readonly gateway: Gateway;
  /** Logs a turn that no request asked for. */
  readonly note: Observer["endedWithoutCaller"];
  readonly log: DoorLog;
  /** The models that callers may choose from, as far as the adapters list them. */
  models(): Promise<readonly string[]>;
  /**
   * Switches to another configuration: new requests see all of it, and running ones finish under the old. Throws, and
   * changes nothing, if an adapter cannot be created or something differs that only a restart can change.
   */
  reload(config: Config): Promise<void>;
  /** Stops accepting, lets running turns finish, then closes everything. `endOthers` ends turns from outside HTTP. */
  close(endOthers?: Part["close"]): Promise<void>;
}

/** What is opened with a gateway and closed with it; turns in it may finish until `overdue` resolves. */
interface Part {
  close(overdue: Promise<void>): Promise<void> | void;
}

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
  const opened: Part[] = [];
  try {
    return await open(config, surroundings, opened);
  } catch (thrown) {
    // A failure to close must not hide why it could not be opened.
    await closeParts(opened, config.http.limits.drainTimeoutMs).catch(() => {});
    throw thrown;
  }
}

/** Counts on while the clock is set. */
const elapsedMs = (): number => performance.now();

/** Adds each part to `opened`, in order of opening. */
async function open(config: Config, surroundings: Surroundings, opened: Part[]): Promise<Portico> {
  const { now = () => new Date(), adapters: given = {} } = surroundings;
  const newId = createIds(now);
  let current = { ...config, limits: toLimits(config) };
  let isClosed = false;
  function keep<T extends Part>(part: T): T {
    opened.push(part);
    return part;
  }

  const logging = keep(surroundings.log === undefined ? createLog(config.log.level) : guardLog(surroundings.log));
  const { log } = logging;
  const metrics = createMetrics(elapsedMs, readVersion());
  const spans = await findSpans();
  const noteTurn = createTurnJournal(log);
  const observer = createObserver(log, metrics, spans, (turn) => {
    // A program may have any number of other owners.
    if (isTokenOwner(current, turn.owner)) metrics.used(turn.owner, turn);
    noteTurn(turn);
  });

  const bare = await openStore(config.sessions.store, (message) => log.error({}, message));
  const store = keep(observeStore(bare, log, metrics.committed));
  const adapter = keep(createChangingRoute(await createAdapterRoute(config, now, observer, given)));
  const tokenCounter = createTokenCounter();
  const gateway = createGateway({
    adapter,
    store,
    limits: () => current.limits,
    alwaysResends: () => current.sessions.alwaysResends,
    now,
    elapsedMs,
    newSessionId: () => newId("conv"),
    digest: (text) => hash("sha256", text, "base64url").slice(0, 22),
    tokenCounter,
    observer,
  });
  keep(gateway);
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
    rules: (moment) => ({ ...toPruneRules(current.sessions, moment), inUse: gateway.inUse }),
    intervalMs: config.sessions.pruneIntervalMs,
    now,
    elapsedMs,
    log,
  });
  keep(pruner);
  const keyring = keep(await openKeyring(store));

  const responses = createResponsesProtocol({ seal: keyring.sealOf });
  const openDoor = () =>
    createDoor({
      ...toDecisions(config, responses),
      gateway,
      models: () => adapter.models(),
      adapters: () => adapter.states(),
      ready: () => store.check(),
      now,
      elapsedMs,
      newId,
      log,
      metrics,
      tracer: spans,
      operator: { store: renewKeys(store, keyring), prune: pruner.run, ...archiving },
    });
  const door = hasListener(config.http) ? keep(openDoor()) : undefined;
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
    note: noteTurn,
    log,
    models: () => adapter.models(),
    reload: oneAfterTheOther(change),
    close(endOthers) {
      isClosed = true;
      return closeParts(opened, current.http.limits.drainTimeoutMs, endOthers);
    },
  };
}

/** Newest first, that one beside `others`; finally throws the first failure. */
async function closeParts(opened: Part[], drainTimeoutMs: number, others?: Part["close"]): Promise<void> {
  const over = new AbortController();
  const overdue = wait(drainTimeoutMs, undefined, { signal: over.signal }).catch(() => {});
  const failures: unknown[] = [];
  // A failure must not leave the rest open, least of all the store.
  const attempt = (part: Part | undefined) =>
    Promise.try(() => part?.close(overdue)).catch((thrown) => failures.push(thrown));
  await Promise.all([attempt(opened.pop()), attempt(others && { close: others })]);
  for (const part of opened.splice(0).toReversed()) await attempt(part);
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
      await keyring.renew();
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
