/** Watches a gateway: counts, logs and traces turns and attempts at adapters, and times the store's commits. */
import type { SessionStore } from "./core/store.ts";
import type { Observer } from "./core/observer.ts";
import { createAdapterJournal } from "./http/causes.ts";
import type { DoorLog } from "./http/lines.ts";
import type { Metrics } from "./http/metrics.ts";
import type { Spans } from "./spans.ts";

/** Reports turns to the metrics, the log and, if there are any, the spans. */
export function createObserver(
  log: DoorLog,
  metrics: Metrics,
  spans: Spans | undefined,
  endedWithoutCaller: Observer["endedWithoutCaller"],
): Observer {
  const journal = createAdapterJournal(log);
  return {
    ...metrics,
    ...journal,
    asked: spans === undefined ? metrics.asked : observeBoth(metrics, spans),
    fellBack(adapter, failure) {
      metrics.fellBack(adapter);
      journal.fellBack(adapter, failure);
    },
    endedWithoutCaller,
  };
}

/** Counts attempts, and traces them as spans. */
function observeBoth(counts: Pick<Observer, "asked">, spans: Pick<Observer, "asked">): Observer["asked"] {
  return (adapter, turn) => {
    const counted = counts.asked(adapter, turn);
    const { trace, ended: over } = spans.asked(adapter, turn);
    return {
      trace,
      ended(attempt) {
        counted.ended(attempt);
        over(attempt);
      },
    };
  };
}

/** The same store, with commits timed and a log line when it can store turns again. */
export function observeStore(store: SessionStore, log: DoorLog, committed: Metrics["committed"]): SessionStore {
  let isInTrouble = false;
  return {
    ...store,
    async check() {
      try {
        await store.check();
      } catch (thrown) {
        isInTrouble = true;
        throw thrown;
      }
      // Requests that failed have logged why; nobody else would log that the trouble is over.
      if (isInTrouble) log.info({}, "The session store can save turns again.");
      isInTrouble = false;
    },
    async commit(commit) {
      const since = performance.now();
      try {
        return await store.commit(commit);
      } finally {
        committed(performance.now() - since);
      }
    },
  };
}
