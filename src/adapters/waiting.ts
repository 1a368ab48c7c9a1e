/** Waits for code of others only as long as the caller stays and the limits allow, whether or not it notices an abort. */
import { callerLeft, type GatewayError } from "../core/errors.ts";
import { createWatch, type Limit, type Watch } from "./watch.ts";

export interface Waiting {
  /** Its limits; a passed one ends the waiting. */
  readonly watch: Watch;
  /** For the code of others: aborted when the waiting has ended. */
  readonly signal: AbortSignal;
  /** Resolves like `pending`; rejects as soon as the waiting ends. */
  for<Value>(pending: Value | PromiseLike<Value>): Promise<Value>;
  /** Why it has ended, if it has. */
  why(): GatewayError | undefined;
  /** The caller's signal no longer matters. */
  leave(): void;
  abort(): void;
}

export function createWaiting(
  caller: AbortSignal,
  totalMs: number | undefined,
  toLateness: (limit: Limit, limitMs: number) => GatewayError,
): Waiting {
  if (caller.aborted) throw callerLeft();
  const inner = new AbortController();
  let why: GatewayError | undefined;
  let interrupt: ((why: GatewayError) => void) | undefined;

  function end(reason: GatewayError): void {
    why ??= reason;
    interrupt?.(why);
    inner.abort();
  }

  const watch = createWatch(totalMs, (limit, limitMs) => end(toLateness(limit, limitMs)));
  const leave = () => end(callerLeft());
  caller.addEventListener("abort", leave);
  return {
    watch,
    signal: inner.signal,
    /** One promise per step: a race against one for the whole answer would retain every step until its end. */
    for: (pending) =>
      new Promise((resolve, reject) => {
        interrupt = reject;
        Promise.resolve(pending).then(resolve, reject);
        if (why !== undefined) reject(why);
      }),
    why: () => why,
    leave: () => caller.removeEventListener("abort", leave),
    abort: () => inner.abort(),
  };
}
