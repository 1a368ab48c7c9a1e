/** Waits for code of others only as long as the caller stays and the limits allow, whether or not it notices an abort. */
import type { Reply } from "../core/adapter.ts";
import { GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Turn } from "../core/turn.ts";
import { createWatch } from "./http/watch.ts";

/** As configured; absent: any time. The last stands instead of the others where an answer is not streamed. */
export type Timeouts = { readonly [Key in Limit as `${Key}_timeout_ms`]?: number | undefined };

/** What others' code says. */
export interface Source {
  /** The next batch; undefined: the answer is complete. */
  next(): Promise<readonly Delta[] | undefined>;
  /** Nobody wants it any more, nor waits for its cleaning up. `late`: it was still wanted, but took too long or failed. */
  drop(late: boolean): void;
}

type Limit = "first_byte" | "idle" | "total";

/** By limit: what somebody did not do in time. */
export type Missed = Readonly<Record<Limit, string>>;

/** `start` gets a signal that aborts when the answer is no longer wanted. Resolves with the first word, or throws. */
export async function openSource(
  start: (signal: AbortSignal) => Source,
  { stream }: Turn,
  timeouts: Timeouts,
  caller: AbortSignal,
  missed: Missed,
): Promise<Reply> {
  caller.throwIfAborted();
  const inner = new AbortController();
  const source = start(inner.signal);
  const watch = createWatch<Limit>((limit, limitMs) => end(toLateness(missed[limit], limit, limitMs)));
  let silence: Limit = "first_byte";
  let isOver = false;
  let failure: unknown;
  let giveUp: ((reason: unknown) => void) | undefined;

  const leave = (): void => end(caller.reason);

  function end(reason?: unknown): void {
    if (isOver) return;
    isOver = true;
    failure = reason;
    watch.stop();
    caller.removeEventListener("abort", leave);
    if (reason === undefined) return;
    inner.abort();
    source.drop(!caller.aborted);
    giveUp?.(reason);
  }

  function expect(limit: Limit): void {
    const limitMs = timeouts[`${limit}_timeout_ms`];
    if (limitMs !== undefined) watch.enter(limit, limitMs);
  }

  async function next(): Promise<readonly Delta[] | undefined> {
    if (isOver && failure === undefined) return undefined;
    if (isOver) throw failure;
    // Silence counts only while somebody listens.
    if (stream) expect(silence);
    try {
      const batch = await new Promise<readonly Delta[] | undefined>((resolve, reject) => {
        giveUp = reject;
        source.next().then(resolve, reject);
      });
      silence = "idle";
      if (stream) watch.stop();
      if (batch === undefined) end();
      return batch;
    } catch (thrown) {
      end(thrown);
      throw failure;
    }
  }

  caller.addEventListener("abort", leave);
  if (!stream) expect("total");
  const first: Delta[] = [];
  for (let batch = await next(); batch !== undefined; batch = await next()) {
    for (const delta of batch) first.push(delta);
    if (batch.some(isWord)) break;
  }
  return { first, next };
}

/** What is only about the answer may come before it, and the answer still fail. */
function isWord({ type }: Delta): boolean {
  return type !== "notes" && type !== "usage" && type !== "message-extra" && type !== "finish";
}

function toLateness(what: string, limit: Limit, limitMs: number): GatewayError {
  const message = `Timed out: ${what} within ${limitMs} ms (${limit}_timeout_ms).`;
  return new GatewayError("adapter_timeout", message, { wireCode: `adapter_${limit}_timeout` });
}
