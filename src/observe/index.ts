/** Watches a gateway: what is told of each request at its end is logged, counted and traced. */
import type { Adapter } from "../core/adapter.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Store } from "../core/store.ts";
import type { Usage } from "../core/turn.ts";
import { createJournal } from "./journal.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import type { Attempt, RequestRecord } from "./record.ts";
import { findSpans, readTrace } from "./spans.ts";

export { createLog, guardLog, type Log } from "./log.ts";
export type { RequestRecord } from "./record.ts";

export type Observer = Awaited<ReturnType<typeof createObserver>>;

export async function createObserver(log: Log, version: string) {
  const journal = createJournal(log);
  const metrics = createMetrics(version);
  const spans = await findSpans();
  /** The last failure of each turn, by its signal. */
  const failures = new WeakMap<AbortSignal, { readonly adapter: string; readonly failure: GatewayError }>();

  function ended(record: RequestRecord): void {
    metrics.ended(record);
    spans?.ended(record);
    journal.ended(record);
  }

  function standIn(adapter: string, signal: AbortSignal): void {
    const before = failures.get(signal);
    if (before === undefined) return;
    metrics.askedAgain(before.adapter, adapter);
    if (before.adapter !== adapter) journal.fellBack(before.adapter, before.failure);
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
    /** The same adapter under its name, with its attempts counted and traced; its words are not looked at. */
    watchAdapter<Kind extends Adapter>(name: string, adapter: Kind): Kind {
      return {
        ...adapter,
        async open(turn, signal, tell) {
          standIn(name, signal);
          const span = spans?.ask(name, turn);
          const since = performance.now();
          const end = (outcome: Attempt["outcome"], error?: GatewayError, usage?: Usage): void => {
            // Whoever is cancelled may end in any way.
            const said = error !== undefined && signal.aborted ? "cancelled" : outcome;
            const code = said === "failed" ? error?.code : undefined;
            const attempt = { outcome: said, code, usage, ms: performance.now() - since };
            metrics.attempted(name, attempt);
            span?.ended(attempt);
          };
          try {
            const asked = span?.trace === undefined ? turn : { ...turn, trace: span.trace };
            const reply = await adapter.open(asked, signal, tell);
            return {
              first: reply.first,
              next: () => reply.next(),
              close(answer) {
                end(answer.status, answer.error, answer.usage);
                reply.close?.(answer);
              },
            };
          } catch (thrown) {
            const failure = toGatewayError(thrown);
            failures.set(signal, { adapter: name, failure });
            end("failed", failure);
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
