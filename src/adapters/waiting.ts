/** Waits for code of others only as long as the caller stays and the limits allow, whether or not it notices an abort. */
import type { Reply } from "../core/adapter.ts";
import { callerLeft, GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Turn } from "../core/turn.ts";
import { createWatch } from "./http/watch.ts";

/** What others' code says. */
export interface Source {
  /** The next batch; undefined: the answer is complete. */
  next(): Promise<readonly Delta[] | undefined>;
  /** It is not wanted any more: too late, failed, or (`isLeft`) its caller is gone. Nobody waits for its cleaning up. */
  drop(isLeft: boolean): void;
}

type Limit = "first_byte" | "idle" | "total";

/** As configured; absent: any time. The total is for answers that are not streamed, instead of the others. */
export type Timeouts = { readonly [Key in Limit as `${Key}_timeout_ms`]?: number | undefined };

/** `start` gets a signal that aborts when it is not wanted any more. Resolves with the first word, or throws. */
export async function openSource(
  who: string,
  start: (signal: AbortSignal) => Source,
  { stream }: Turn,
  timeouts: Timeouts,
  caller: AbortSignal,
): Promise<Reply> {
  caller.throwIfAborted();
  const inner = new AbortController();
  const source = start(inner.signal);
  const watch = createWatch<Limit>((limit, limitMs) => end(toLateness(who, limit, limitMs)));
  let silence: Limit = "first_byte";
  let isOver = false;
  let failure: unknown;
  let giveUp: ((reason: unknown) => void) | undefined;

  const leave = (): void => end(caller.reason, true);

  function end(reason?: unknown, isLeft = false): void {
    if (isOver) return;
    isOver = true;
    failure = reason;
    watch.stop();
    caller.removeEventListener("abort", leave);
    if (reason === undefined) return;
    inner.abort();
    source.drop(isLeft);
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
  return { first, next, close: () => end(callerLeft(), true) };
}

/** What is only about the answer may come before it, and the answer still fail. */
function isWord({ type }: Delta): boolean {
  return type !== "notes" && type !== "usage" && type !== "message-extra" && type !== "finish";
}

const missed = { first_byte: "said nothing", idle: "fell silent", total: "did not finish" } as const;

function toLateness(who: string, limit: Limit, limitMs: number): GatewayError {
  const message = `Timed out: ${who} ${missed[limit]} within ${limitMs} ms (${limit}_timeout_ms).`;
  return new GatewayError("adapter_timeout", message, { wireCode: `adapter_${limit}_timeout` });
}
