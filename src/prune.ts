/** Retention: periodically deletes what the operator's rules no longer keep, a little at a time. */
import { setTimeout as wait } from "node:timers/promises";
import type { SessionsConfig } from "./config/config.ts";
import type { Pruned, PruneRules, SessionStore } from "./core/store.ts";
import type { DoorLog } from "./http/lines.ts";

export interface Pruner {
  /** Applies the rules now. Calls during a run share its result. */
  run(): Promise<PruneResult>;
  /** Runs at another interval from now on. */
  retime(intervalMs: number): void;
  /** Stops after the current call. */
  close(): Promise<void>;
}

/** What was deleted. */
export type PruneResult = Omit<Pruned, "more">;

export interface PrunerParts {
  readonly store: Pick<SessionStore, "prune">;
  /** Ends old turns that nobody runs any more: running turns are not pruned. */
  readonly endLeft?: ((before: Date) => Promise<void>) | undefined;
  readonly rules: (now: Date) => PruneRules;
  readonly intervalMs: number;
  readonly now: () => Date;
  /** Counts on steadily, however the clock is set. */
  readonly elapsedMs: () => number;
  readonly log: DoorLog;
  /** How long after the start it runs for the first time. */
  readonly firstMs?: number | undefined;
}

/** How old a running turn must be to be checked: each check asks who runs it, and most are over by then. */
const abandonedMs = 3_600_000;

/** A gateway that has just started has better things to do. */
const usualFirstMs = 5_000;

/** A clock that is set by more than this was wrong. */
const maxStepMs = 60_000;

/**
 * Runs shortly after the start, then at every interval, never twice at once. For its age it then deletes only if the clock
 * has gone on steadily since the run before: a machine may have a wrong time until it learns the right one. Whoever asks
 * for a run vouches for the clock.
 */
export function createPruner(parts: PrunerParts): Pruner {
  const { store, endLeft, rules, now, elapsedMs, log, firstMs = usualFirstMs } = parts;
  let { intervalMs } = parts;
  const closing = new AbortController();
  let running: { readonly result: Promise<PruneResult>; readonly leavesOld: boolean } | undefined;
  /** How far the clock was ahead of what counts on steadily, at the last run. */
  let lead: number | undefined;

  function start(leavesOld: boolean): Promise<PruneResult> {
    const current = leavesOld ? withoutAges(rules(now())) : rules(now());
    const result = apply(current).finally(() => (running = undefined));
    running = { result, leavesOld };
    return result;
  }

  function run(): Promise<PruneResult> {
    if (running?.leavesOld === true) return running.result.then(run, run);
    return running?.result ?? start(false);
  }

  function isClockSteady(): boolean {
    const before = lead;
    lead = +now() - elapsedMs();
    return before !== undefined && Math.abs(lead - before) <= maxStepMs;
  }

  async function apply(current: PruneRules): Promise<PruneResult> {
    if (endLeft !== undefined) await endLeft(new Date(Math.max(+now() - abandonedMs, +(current.idleBefore ?? 0))));
    const gone = await pruneAll(store, current, closing.signal);
    if (gone.sessions > 0 || gone.turns > 0) log.info(gone, "pruned");
    return gone;
  }

  function runAtItsTime(): void {
    const result = running?.result ?? start(!isClockSteady());
    result.catch((thrown: unknown) => {
      log.error({ err: thrown }, "Expired data could not be deleted; the next pruning tries again.");
    });
  }

  const first = setTimeout(runAtItsTime, Math.min(firstMs, intervalMs)).unref();
  let timer = setInterval(runAtItsTime, intervalMs).unref();
  return {
    run,
    retime(otherMs) {
      // Repeated reloads with the same interval must not postpone it forever.
      if (otherMs === intervalMs) return;
      intervalMs = otherMs;
      clearInterval(timer);
      timer = setInterval(runAtItsTime, intervalMs).unref();
    },
    async close() {
      closing.abort();
      clearTimeout(first);
      clearInterval(timer);
      // Whoever began it gets the failure. Another may follow for those who asked for more than it deletes.
      for (let last = running; last !== undefined; last = running) await last.result.catch(() => {});
    },
  };
}

function withoutAges({ maxSessionsPerOwner, inUse }: PruneRules): PruneRules {
  return { maxSessionsPerOwner, inUse };
}

/** Between two calls, others proceed: requests of this process, and other processes on the same file. */
const pauseMs = 10;

/** Asks the store again while there is more to delete; the rules stay as they were at the start, so that it ends. */
export async function pruneAll(
  store: Pick<SessionStore, "prune">,
  rules: PruneRules,
  signal?: AbortSignal,
): Promise<PruneResult> {
  let [sessions, turns] = [0, 0];
  for (;;) {
    const pruned = await store.prune(rules);
    sessions += pruned.sessions;
    turns += pruned.turns;
    if (!pruned.more) return { sessions, turns };
    await wait(pauseMs);
    if (signal?.aborted === true) return { sessions, turns };
  }
}

/** The operator's rules as of a moment. */
export function toPruneRules(sessions: SessionsConfig, now: Date): PruneRules {
  const before = (ms: number | undefined): Date | undefined =>
    ms === undefined ? undefined : new Date(now.getTime() - ms);
  return {
    idleBefore: before(sessions.ttlMs),
    keysBefore: before(sessions.idempotencyMs),
    piecesBefore: before(sessions.eventsMs),
    maxSessionsPerOwner: sessions.maxSessionsPerOwner,
  };
}
