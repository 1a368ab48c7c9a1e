/** Patience with a server that is silent: it ends after a time in which the event loop ran, however long it stood still in between. */
export interface Patience {
  /** A sign of life: it begins anew. */
  renew(): void;
  stop(): void;
}

/**
 * Timers come before sockets: who was held up itself has not yet read what was answered meanwhile. So the time is cut into rounds, after
 * each of which the sockets have their say, and none counts for more than its part.
 */
export function createPatience(ms: number, giveUp: () => void): Patience {
  let left = rounds;
  let reading: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => (reading = setImmediate(count)), ms / rounds).unref();

  function count(): void {
    left -= 1;
    if (left > 0) timer.refresh();
    else giveUp();
  }

  return {
    renew() {
      // Of the round that runs nobody knows how much is left.
      left = rounds + 1;
    },
    stop() {
      clearTimeout(timer);
      clearImmediate(reading);
    },
  };
}

/** More than a connection needs to be made and greeted: a name looked up, TLS agreed on. */
const rounds = 10;
