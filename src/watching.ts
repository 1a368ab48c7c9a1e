/** Who watches over a gateway: turns and attempts at adapters are counted, logged and traced, and the store's work is timed. */
import type { SessionStore } from "./core/store.ts";
import type { Witness } from "./core/witness.ts";
import { createAdapterJournal } from "./http/causes.ts";
import { createTurnJournal } from "./http/journal.ts";
import type { DoorLog } from "./http/lines.ts";
import type { Metrics } from "./http/metrics.ts";
import type { Spans } from "./spans.ts";

/** Tells all who want to know how turns go; without `spans` nobody gathers them. */
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

/** Attempts are counted, and followed by who gathers spans. */
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

/** The same store. Its commits are timed, and the log is told when it can keep turns again. */
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
      // Whoever could not be answered has told the log why; that it is over, nobody else would tell.
      if (isInTrouble) log.info({}, "The session store can keep turns again.");
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
