/** A timeout for a silent server that counts only time in which the event loop runs, not while it is blocked. */
export interface Deadline {
  /** A sign of life: it starts again. */
  renew(): void;
  stop(): void;
}

/**
 * Timers come before sockets: after being blocked, we have not yet read what was answered meanwhile. So the time is cut
 * into rounds, after each of which the sockets are read, and none counts for more than its part.
 */
export function createDeadline(ms: number, onTimeout: () => void): Deadline {
  let left = rounds;
  let reading: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => (reading = setImmediate(count)), ms / rounds).unref();

  function count(): void {
    left -= 1;
    if (left > 0) timer.refresh();
    else onTimeout();
  }

  return {
    renew() {
      // It is unknown how much of the current round is left.
      left = rounds + 1;
    },
    stop() {
      clearTimeout(timer);
      clearImmediate(reading);
    },
  };
}

/** More than setting up a connection needs: DNS, TLS, greeting. */
const rounds = 10;
