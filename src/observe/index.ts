/** Watches a gateway: what is told of each request at its end is logged, counted and traced. */
import type { Adapter } from "../core/adapter.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Store } from "../core/store.ts";
import { createJournal } from "./journal.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import type { RequestRecord } from "./record.ts";
import { findSpans, readTrace } from "./spans.ts";

export { createLog, guardLog, type Log } from "./log.ts";
export type { RequestRecord } from "./record.ts";

export type Observer = Awaited<ReturnType<typeof createObserver>>;

export async function createObserver(log: Log, version: string) {
  const journal = createJournal(log);
  const metrics = createMetrics(version);
  const spans = await findSpans();

  function ended(record: RequestRecord): void {
    metrics.ended(record);
    spans?.ended(record);
    journal(record);
  }

  return {
    /** A request begins, or a turn of a connection: its place in its caller's trace, to be passed on. */
    begin: spans?.begin ?? readTrace,
    /** It is over. Told once of each request, and once of each turn that ended without one. */
    ended,
    /** What was refused before it was a request. */
    refused(failure: GatewayError, id: string, address: string | undefined): void {
      ended({ kind: "request", id, status: failure.status, address, failure, ms: 0 });
    },
    /** The same adapter under its name, with its attempts counted; its words are not looked at. */
    watchAdapter<Kind extends Adapter>(name: string, adapter: Kind): Kind {
      const count = metrics.watch(name);
      return {
        ...adapter,
        async open(turn, signal, tell) {
          const since = performance.now();
          try {
            const reply = await adapter.open(turn, signal, tell);
            return {
              first: reply.first,
              next: () => reply.next(),
              close(answer) {
                count(since, signal, answer);
                reply.close?.(answer);
              },
            };
          } catch (thrown) {
            count(since, signal, { status: "failed", error: toGatewayError(thrown) });
            throw thrown;
          }
        },
      };
    },
    /** The same store, with its commits timed. */
    watchStore<Kind extends Pick<Store, "commit">>(store: Kind): Kind {
      return {
        ...store,
        commit(turn) {
          const since = performance.now();
          const measure = (): void => metrics.committed(performance.now() - since);
          const done = store.commit(turn);
          done.then(measure, measure);
          return done;
        },
      };
    },
    /** What Prometheus reads. */
    read: metrics.read,
  };
}
