/** Adapters as modules and embedding programs write them, `async *stream(turn, signal, tell)`, as the gateway asks them. */
import type { Adapter, Reply, Tell } from "../../core/adapter.ts";
import { GatewayError, isErrorCode } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Dialect } from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";

/** What a module exports, and a program passes in. */
export interface GivenAdapter {
  stream(turn: Turn, signal: AbortSignal, tell?: Tell): AsyncIterable<readonly Delta[]>;
  readonly speaks?: readonly Dialect[] | undefined;
  contextWindow?(model: string): number | undefined;
  countTokens?(turn: Turn, signal: AbortSignal): Promise<number | undefined>;
  models?(): Promise<readonly string[]>;
  close?(): Promise<void>;
}

export function toAdapter(given: GivenAdapter): Adapter {
  return {
    speaks: given.speaks ?? [],
    async open(turn, signal, tell) {
      const batches = given.stream(turn, signal, tell)[Symbol.asyncIterator]();
      const left = whenAborted(signal);
      const next = async (): Promise<readonly Delta[] | undefined> => {
        try {
          const step = await Promise.race([batches.next(), left]);
          return step.done === true ? undefined : step.value;
        } catch (thrown) {
          // It may still wait for something that never comes: its own cleaning up is not waited for.
          batches.return?.().catch(() => {});
          throw toFailure(thrown);
        }
      };
      return { first: (await next()) ?? [], next } satisfies Reply;
    },
    ...(given.models && { models: () => given.models?.() ?? Promise.resolve([]) }),
    ...(given.close && { close: async () => given.close?.() }),
  };
}

function whenAborted(signal: AbortSignal): Promise<never> {
  const left = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  left.catch(() => {});
  return left;
}

/** An error with one of our codes is meant for the caller; anything else hides itself. */
function toFailure(thrown: unknown): unknown {
  if (thrown instanceof GatewayError) return thrown;
  const { code, message, retryAfterSeconds } = thrown as {
    code?: unknown;
    message?: string;
    retryAfterSeconds?: number;
  };
  if (isErrorCode(code)) return new GatewayError(code, message ?? "", { retryAfterSeconds, cause: thrown });
  return new GatewayError("adapter_error", "The adapter behind this model failed. The gateway's log has the cause.", {
    cause: thrown,
  });
}
