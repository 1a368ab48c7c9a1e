/** Time as this process sees it: while the machine stands still, or works for others, this clock stands still too. */

const stepMs = 5;

/** Starts a clock; stopping it tells the milliseconds, to the step. */
export function startStopwatch(): { stop(): number } {
  let steps = 0;
  // However long a step was kept waiting, it comes once.
  const timer = setInterval(() => (steps += 1), stepMs).unref();
  return {
    stop() {
      clearInterval(timer);
      return steps * stepMs;
    },
  };
}
