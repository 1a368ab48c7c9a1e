/** Watches adapters: how each attempt at one ended, how long it took, what it reported, and who stood in for it. */
import type { Adapter } from "../core/adapter.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Finish, Turn, Usage } from "../core/turn.ts";
import type { Journal } from "./journal.ts";
import type { Attempt, Metrics } from "./metrics.ts";
import type { Spans } from "./spans.ts";

/** The same adapter, asked under its name. What it costs is a promise for each read. */
export type Watch = <Kind extends Adapter>(name: string, adapter: Kind) => Kind;

type AdapterCounts = ReturnType<Metrics["ofAdapter"]>;

export function createWatch(metrics: Metrics, journal: Journal, spans: Spans | undefined): Watch {
  /** The last failure of each turn, by its signal. */
  const failures = new WeakMap<AbortSignal, { readonly name: string; readonly failure: GatewayError }>();

  function begin(name: string, counts: AdapterCounts, turn: Turn, signal: AbortSignal) {
    const span = spans?.ask(name, turn);
    const since = performance.now();
    let usage: Usage | undefined;
    let finish: Finish = "stop";
    let isOver = false;

    function end(outcome: Attempt["outcome"], code?: Attempt["code"]): void {
      if (isOver) return;
      isOver = true;
      const attempt = { outcome, code, usage, ms: performance.now() - since };
      counts.ended(attempt);
      span?.ended(attempt);
    }

    return {
      asked: span?.trace === undefined ? turn : { ...turn, trace: span.trace },
      end,
      heard(batch: readonly Delta[] | undefined) {
        if (batch === undefined) end(finish === "length" || finish === "content-filter" ? "incomplete" : "completed");
        for (const delta of batch ?? []) {
          if (delta.type === "usage") usage = delta.usage;
          else if (delta.type === "finish") finish = delta.reason;
        }
        return batch;
      },
      failed(thrown: unknown): never {
        const failure = toGatewayError(thrown);
        // Whoever is cancelled may end in any way.
        end(signal.aborted ? "cancelled" : "failed", failure.code);
        failures.set(signal, { name, failure });
        throw thrown;
      },
    };
  }

  function standIn(name: string, signal: AbortSignal): void {
    const before = failures.get(signal);
    if (before === undefined) return;
    const counts = metrics.ofAdapter(before.name);
    if (before.name === name) counts.retries.value += 1;
    else {
      counts.fallbacks.value += 1;
      journal.fellBack(before.name, before.failure);
    }
  }

  return (name, adapter) => {
    const counts = metrics.ofAdapter(name);
    return {
      ...adapter,
      async open(turn, signal, tell) {
        standIn(name, signal);
        const { asked, heard, failed, end } = begin(name, counts, turn, signal);
        try {
          const reply = await adapter.open(asked, signal, tell);
          heard(reply.first);
          return {
            first: reply.first,
            next: () => reply.next().then(heard, failed),
            close() {
              reply.close?.();
              end("cancelled");
            },
          };
        } catch (thrown) {
          return failed(thrown);
        }
      },
    };
  };
}
