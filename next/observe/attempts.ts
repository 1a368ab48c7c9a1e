/** Watches an adapter: how each attempt at it ended, how long it took, and how many tokens it reported. */
import type { Adapter } from "../core/adapter.ts";
import { toGatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Finish, Usage } from "../core/turn.ts";
import type { Attempt, Metrics } from "./metrics.ts";
import type { AttemptSpan, Spans } from "./spans.ts";

/** The same adapter. What it costs is a promise for each read. */
export function watchAdapter(name: string, adapter: Adapter, metrics: Metrics, spans: Spans | undefined): Adapter {
  const counts = metrics.ofAdapter(name);
  return {
    ...adapter,
    async open(turn, signal, tell) {
      const span = spans?.ask(name, turn);
      const attempt = createAttempt(signal, counts.ended, span);
      try {
        const asked = span?.trace === undefined ? turn : { ...turn, trace: span.trace };
        const reply = await adapter.open(asked, signal, tell);
        attempt.heard(reply.first);
        return { first: reply.first, next: () => reply.next().then(attempt.heard, attempt.failed) };
      } catch (thrown) {
        return attempt.failed(thrown);
      }
    },
  };
}

function createAttempt(signal: AbortSignal, count: (attempt: Attempt) => void, span: AttemptSpan | undefined) {
  const since = performance.now();
  let usage: Usage | undefined;
  let finish: Finish = "stop";

  function end(outcome: Attempt["outcome"], code?: Attempt["code"]): void {
    const attempt = { outcome, code, usage, ms: performance.now() - since };
    count(attempt);
    span?.ended(attempt);
  }

  return {
    heard(batch: readonly Delta[] | undefined) {
      if (batch === undefined) end(finish === "length" || finish === "content-filter" ? "incomplete" : "completed");
      for (const delta of batch ?? []) {
        if (delta.type === "usage") usage = delta.usage;
        else if (delta.type === "finish") finish = delta.reason;
      }
      return batch;
    },
    failed(thrown: unknown): never {
      // Whoever is cancelled may end in any way.
      if (signal.aborted) end("cancelled");
      else end("failed", toGatewayError(thrown).code);
      throw thrown;
    },
  };
}
