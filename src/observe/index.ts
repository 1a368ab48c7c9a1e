/** Watches a gateway: what is told of each request at its end is logged, counted and traced. */
import type { GatewayError } from "../core/errors.ts";
import type { Store } from "../core/store.ts";
import { createWatch } from "./attempts.ts";
import { createJournal } from "./journal.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import type { RequestRecord } from "./record.ts";
import { findSpans, readTrace } from "./spans.ts";

export { createLog, guardLog, type Log, type LogLevel, type OpenLog } from "./log.ts";
export type { Gauges } from "./metrics.ts";
export type { RequestRecord } from "./record.ts";

export interface ObserverParts {
  readonly log: Log;
  readonly now: () => number;
  readonly version: string;
}

export type Observer = Awaited<ReturnType<typeof createObserver>>;

export async function createObserver({ log, now, version }: ObserverParts) {
  const journal = createJournal(log, now);
  const metrics = createMetrics(version);
  const spans = await findSpans();

  function ended(record: RequestRecord): void {
    metrics.ended(record);
    spans?.ended(record);
    journal.ended(record);
  }

  return {
    /** What no caller is told in full: why the turn with this key failed. */
    report: journal.report,
    /** A request begins, or a turn of a connection: its place in its caller's trace, to be passed on. */
    begin: spans?.begin ?? readTrace,
    /** It is over. Told once of each request, and once of each turn that ended without one. */
    ended,
    /** What was refused before it was a request. */
    refused(failure: GatewayError, id: string, address: string | undefined): void {
      ended({ kind: "request", id, status: failure.status, address, failure, ms: 0 });
    },
    /** The same adapter, with its attempts counted and traced. */
    watchAdapter: createWatch(metrics, journal, spans),
    /** The same store, with its commits timed. */
    watchStore: <Kind extends Pick<Store, "commit">>(store: Kind): Kind => ({
      ...store,
      commit(turn) {
        const since = performance.now();
        return store.commit(turn).finally(() => metrics.committed(performance.now() - since));
      },
    }),
    /** What Prometheus reads. */
    read: metrics.read,
  };
}
