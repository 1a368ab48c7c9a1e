/** Watches a gateway: counts, logs and traces turns and attempts at adapters, and times the store's commits. */
import type { SessionStore } from "./core/store.ts";
import type { Witness } from "./core/witness.ts";
import { createAdapterJournal } from "./http/causes.ts";
import { createTurnJournal } from "./http/journal.ts";
import type { DoorLog } from "./http/lines.ts";
import type { Metrics } from "./http/metrics.ts";
import type { Spans } from "./spans.ts";

/** Reports turns to the metrics, the log and, if there are any, the spans. */
export function createWitness(log: DoorLog, metrics: Metrics, spans: Spans | undefined): Witness {
  const journal = createAdapterJournal(log);
  return {
    ...metrics,
    ...journal,
    asked: spans === undefined ? metrics.asked : tellBoth(metrics, spans),
    handedOn(adapter, failure) {
      metrics.handedOn(adapter);
      journal.handedOn(adapter, failure);
    },
    endedAlone: createTurnJournal(log),
  };
}

/** Counts attempts, and traces them as spans. */
function tellBoth(counts: Pick<Witness, "asked">, spans: Pick<Witness, "asked">): Witness["asked"] {
  return (adapter, turn) => {
    const counted = counts.asked(adapter, turn);
    const { trace, over } = spans.asked(adapter, turn);
    return {
      trace,
      over(attempt) {
        counted.over(attempt);
        over(attempt);
      },
    };
  };
}

/** The same store, with commits timed and a log line when it can store turns again. */
export function watchStore(store: SessionStore, log: DoorLog, committed: Metrics["committed"]): SessionStore {
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
