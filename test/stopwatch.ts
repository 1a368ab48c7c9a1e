/** Time as this process sees it: while the machine is suspended or busy with others, this clock stops too. */

const stepMs = 5;

/** Starts a clock; stopping it returns the milliseconds, to the step. */
export function startStopwatch(): { stop(): number } {
  let steps = 0;
  // However late a step is, it counts once.
  const timer = setInterval(() => (steps += 1), stepMs).unref();
  return {
    stop() {
      clearInterval(timer);
      return steps * stepMs;
    },
  };
}
