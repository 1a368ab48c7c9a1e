/** Waits for code of others only as long as the caller stays and the limits allow, whether or not it notices an abort. */
import { callerLeft, type GatewayError } from "../core/errors.ts";
import { unlessAborted } from "../core/unless-aborted.ts";
import type { AnswerLimits } from "./type.ts";
import { createWatch, type Limit } from "./watch.ts";

/**
 * The steps of others' code, one by one; silence counts only while one is awaited. `start` gets a signal to stop, whose
 * reason is a `TimeoutError` if a limit has passed, what was thrown if a step failed, or else an `AbortError`.
 */
export async function* pullSteps<Step>(
  start: (signal: AbortSignal) => AsyncIterator<Step>,
  limits: AnswerLimits,
  caller: AbortSignal,
  toLateness: (limit: Limit, limitMs: number) => GatewayError,
): AsyncGenerator<Step, void, void> {
  if (caller.aborted) throw callerLeft();
  const inner = new AbortController();
  /** Its reason is ours, that of the inner one is for others. */
  const ended = new AbortController();

  function end(reason: GatewayError, told?: DOMException): void {
    ended.abort(reason);
    inner.abort(told);
  }

  const watch = createWatch(limits.totalMs, (limit, limitMs) =>
    end(toLateness(limit, limitMs), new DOMException("The time limit has passed.", "TimeoutError")),
  );
  const leave = () => end(callerLeft());
  caller.addEventListener("abort", leave);
  let steps: AsyncIterator<Step> | undefined;
  try {
    steps = start(inner.signal);
    watch.enter("first_byte", limits.firstByteMs);
    for (;;) {
      const step = await unlessAborted(Promise.resolve(steps.next()), ended.signal);
      if (step.done === true) {
        steps = undefined;
        return;
      }
      watch.rest();
      yield step.value;
      watch.enter("idle", limits.idleMs);
    }
  } catch (thrown) {
    inner.abort(thrown);
    throw ended.signal.reason ?? thrown;
  } finally {
    watch.stop();
    caller.removeEventListener("abort", leave);
    if (steps !== undefined) {
      inner.abort();
      void dismiss(steps);
    }
  }
}

/** Nobody waits for its cleanup: it may hang, and nobody is left to hear what it throws. */
async function dismiss(steps: AsyncIterator<unknown>): Promise<void> {
  try {
    await steps.return?.();
  } catch {
    // See above.
  }
}
