/** Watches a gateway: what is told of each request at its end is logged, counted and traced. */
import type { IncomingHttpHeaders } from "node:http";
import type { Adapter } from "../core/adapter.ts";
import type { GatewayError } from "../core/errors.ts";
import type { Store } from "../core/store.ts";
import type { Trace } from "../core/turn.ts";
import { watchAdapter } from "./attempts.ts";
import { createJournal, type Journal } from "./journal.ts";
import type { Log } from "./log.ts";
import { createMetrics, type Gauges, type Metrics } from "./metrics.ts";
import type { RequestRecord } from "./record.ts";
import { findSpans, readTrace } from "./spans.ts";

export type { Log } from "./log.ts";
export { createLog, guardLog, type LogLevel, type OpenLog } from "./log.ts";
export type { Gauges } from "./metrics.ts";
export type { RequestRecord } from "./record.ts";

export interface Observer extends Pick<Journal, "report" | "breakerOpened" | "breakerClosed"> {
  /** A request begins, or a turn of a connection: its place in its caller's trace, to be passed on. */
  begin(headers: IncomingHttpHeaders): Trace | undefined;
  /** It is over. Told once of each request, and once of each turn that ended without one. */
  ended(record: RequestRecord): void;
  /** What was refused before it was a request. */
  refused(error: GatewayError, requestId: string, address: string | undefined): void;
  /** The same adapter, with its attempts counted and traced. */
  watchAdapter(name: string, adapter: Adapter): Adapter;
  /** An adapter is asked again: its failure may have passed. */
  retried(adapter: string): void;
  /** It could not answer, and the turn goes to a fallback. */
  fellBack(adapter: string, failure: GatewayError): void;
  /** The same store, with its commits timed. */
  watchStore<Kind extends Pick<Store, "commit">>(store: Kind): Kind;
  /** What Prometheus reads. */
  read(gauges: Gauges): ReturnType<Metrics["read"]>;
}

export interface ObserverParts {
  readonly log: Log;
  readonly now: () => number;
  readonly version: string;
}

export async function createObserver({ log, now, version }: ObserverParts): Promise<Observer> {
  const journal = createJournal(log, now);
  const metrics = createMetrics(version);
  const spans = await findSpans();
  return {
    begin: spans?.begin ?? readTrace,
    ended(record) {
      metrics.ended(record);
      spans?.ended(record);
      journal.ended(record);
    },
    refused(error, requestId, address) {
      metrics.refused(error.status);
      journal.refused(error, requestId, address);
    },
    report: journal.report,
    breakerOpened: journal.breakerOpened,
    breakerClosed: journal.breakerClosed,
    watchAdapter: (name, adapter) => watchAdapter(name, adapter, metrics, spans),
    retried: (adapter) => void (metrics.ofAdapter(adapter).retries.count += 1),
    fellBack(adapter, failure) {
      metrics.ofAdapter(adapter).fallbacks.count += 1;
      journal.fellBack(adapter, failure);
    },
    watchStore: (store) => watchStore(store, log, metrics),
    read: metrics.read,
  };
}

/** Turns that failed have told why; nobody else would tell that the trouble is over. */
function watchStore<Kind extends Pick<Store, "commit">>(store: Kind, log: Log, metrics: Metrics): Kind {
  let isInTrouble = false;
  return {
    ...store,
    async commit(turn) {
      const since = performance.now();
      try {
        await store.commit(turn);
        if (isInTrouble) log.info({}, "The session store can save turns again.");
        isInTrouble = false;
      } catch (thrown) {
        isInTrouble = true;
        throw thrown;
      } finally {
        metrics.committed(performance.now() - since);
      }
    },
  };
}
