/** Waits only as long as somebody wants the result. */

/** Settles like `pending`, but rejects with the signal's reason as soon as that aborts. */
export function unlessAborted<Value>(pending: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    const settled = () => signal.removeEventListener("abort", leave);
    signal.addEventListener("abort", leave);
    pending.then(resolve, reject).finally(settled);
    if (signal.aborted) leave();
  });
}
