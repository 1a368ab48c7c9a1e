/** The composition root: it makes every part of a gateway from a configuration, and closes them in reverse order. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import type { GivenAdapter } from "./adapters/module.ts";
import { type Config, findFixed, hasListener } from "./config/config.ts";
import { createGateway, type Gateway } from "./core/gateway.ts";
import { createChangingRoute } from "./core/route/changing.ts";
import { createRoute, type Route } from "./core/route/route.ts";
import type { Pruned } from "./core/store.ts";
import { createDoor } from "./http/door.ts";
import { createKeys } from "./ids.ts";
import { openLanes } from "./lanes.ts";
import { createLog, createObserver, guardLog, type Log, type Observer } from "./observe/index.ts";
import { createTokenCounter } from "./tokens.ts";
import { createSeal } from "./seal.ts";
import { openStore } from "./store/open.ts";
import { remember } from "./wires/again.ts";

/** What an embedding program may pass in. */
export interface Surroundings {
  /** Gets every line, whatever `gateway.log.level` is; by default JSON lines on standard error. */
  readonly log?: Log | undefined;
  /** Its own adapters, by the names that the settings use. */
  readonly adapters?: Readonly<Record<string, GivenAdapter>> | undefined;
  /** The time; by default the platform's clock. */
  readonly now?: (() => Date) | undefined;
}

export interface Portico {
  /** Where it listens; undefined if both endpoints are off. */
  readonly address: string | undefined;
  /** For channels other than HTTP: turns in the same sessions, told when they are over. */
  readonly gateway: Gateway;
  readonly ended: Observer["ended"];
  readonly log: Log;
  models(): Promise<readonly string[]>;
  /** What Prometheus reads of this process; nothing if it does not listen. */
  measure(): Promise<string>;
  /** New requests see all of it, running ones end as they began. Throws, and changes nothing, if it cannot be. */
  reload(config: Config): Promise<void>;
  /** Stops accepting, lets running turns end, then closes everything. */
  close(): Promise<void>;
}

const pruneEveryMs = 3_600_000;
const sweepEveryMs = 60_000;

interface StartOptions {
  /** Reads the metrics of all processes of this gateway. */
  readonly measureAll?: (() => Promise<string>) | undefined;
  /** A store of an older layout is migrated; else it is refused. */
  readonly mayMigrate: boolean;
}

export async function startPortico(
  first: Config,
  surroundings: Surroundings,
  { measureAll, mayMigrate }: StartOptions,
): Promise<Portico> {
  const { adapters: given = {}, now: clock } = surroundings;
  let now = clock === undefined ? Date.now : () => clock().getTime();
  const closers: (() => Promise<void> | void)[] = [];
  let config = first;
  try {
    const log = surroundings.log === undefined ? createLog(config.logLevel) : guardLog(surroundings.log);
    closers.push(() => log.close());
    const observer = await createObserver(log, readVersion());

    const stop = (message: string): void => {
      log.error({}, message);
      process.exitCode = 1;
      void close();
    };
    const bare = await openStore(config.store, stop, mayMigrate);
    if (bare.migratedFrom !== undefined)
      log.info(
        { from: bare.migratedFrom },
        `The session store was migrated from layout ${bare.migratedFrom} to the layout of this release.`,
      );
    const store = observer.watchStore(bare);
    const { others } = bare;
    if (clock === undefined && others !== undefined) ({ now } = others);
    closers.push(() => bare.close());

    const openRoute = async (settings: Config): Promise<Route> =>
      createRoute({
        lanes: await openLanes(settings, given, observer.watchAdapter),
        defaultLane: settings.defaultAdapter,
        byModel: settings.models,
        now,
        random: Math.random,
        wait: (ms, signal) => wait(ms, undefined, { signal }),
      });
    const route = createChangingRoute(await openRoute(config));
    closers.push(() => route.close());

    const newKey = createKeys(now, others?.slot);
    const gateway = createGateway({
      store,
      adapter: route,
      now,
      newKey,
      // 72 bits tell the turns of a session apart, and every index of them has two of these.
      hash: remember((text) => hash("sha1", text, "base64url").slice(0, 12)),
      countText: createTokenCounter(),
      maxWaiting: () => config.http.limits.maxQueuedPerThread,
      keyMs: () => config.sessions.idempotencyTtlMs ?? Infinity,
      maxBackground: () => config.sessions.maxBackgroundTurns,
      endedAlone: observer.ended,
    });
    closers.push(() => gateway.close());
    const pruneByItself = (): void =>
      void prune().catch((err: unknown) => log.error({ err }, "What is no longer kept could not be deleted."));
    const timers = [setInterval(gateway.sweep, sweepEveryMs), setInterval(pruneByItself, pruneEveryMs)];
    closers.push(() => {
      for (const timer of timers) clearInterval(timer);
    });

    const door = hasListener(config.http)
      ? createDoor(config.http, {
          gateway,
          store,
          route,
          observer,
          sealOf: createSeal(bare.sealKeys),
          now,
          newKey,
          prune,
          measureAll,
        })
      : undefined;
    if (door !== undefined) closers.push(() => door.close());
    const address = await door?.listen();

    async function prune(): Promise<Pruned> {
      const { ttlMs, idempotencyTtlMs, maxTurnsPerThread, maxSessionsPerOwner } = config.sessions;
      const before = (ageMs: number | undefined) => (ageMs === undefined ? undefined : now() - ageMs);
      const ages = { idleBefore: before(ttlMs), recordsBefore: before(idempotencyTtlMs) };
      return bare.prune({ ...ages, maxTurnsPerThread, maxSessionsPerOwner, inUse: () => gateway.continued }, now());
    }

    return {
      address,
      gateway,
      ended: observer.ended,
      log,
      models: () => route.models(),
      measure: async () => door?.measure() ?? "",
      async reload(next) {
        const fixed = findFixed(config, next);
        if (fixed.length > 0) throw new Error(`Only a restart can change ${fixed.join(", ")}.`);
        const other = await openRoute(next);
        // Nothing is awaited from here on, so that no request sees half of it.
        config = next;
        route.change(other).catch((err: unknown) => log.error({ err }, "The adapters before could not be closed."));
        door?.change(next.http);
        log.setLevel(next.logLevel);
      },
      close,
    };
  } catch (thrown) {
    // A failure to close must not hide why it could not be opened.
    await close().catch(() => {});
    throw thrown;
  }

  /** Newest first; a failure must not leave the rest open, least of all the store. */
  async function close(): Promise<void> {
    const failures: unknown[] = [];
    for (const end of closers.splice(0).toReversed()) {
      try {
        await end();
      } catch (thrown) {
        failures.push(thrown);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return String(version);
}
