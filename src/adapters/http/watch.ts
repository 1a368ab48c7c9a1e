/** The deadlines of one exchange on one timer: an arriving byte costs a timestamp, not a timer. */

export interface Watch<Limit> {
  /** Puts this limit in force, from now. */
  enter(limit: Limit, limitMs: number): void;
  /** No limit is in force until the next `enter`. */
  stop(): void;
}

/** Calls `late` when a limit has passed. */
export function createWatch<Limit>(late: (limit: Limit, limitMs: number) => void): Watch<Limit> {
  let current: { readonly limit: Limit; readonly limitMs: number } | undefined;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Infinity;

  function arm(): void {
    const now = performance.now();
    const due = since + (current?.limitMs ?? Infinity);
    // A timer that fires too early looks again; only one that would fire too late is replaced.
    if (due >= firesAt) return;
    clearTimeout(timer);
    firesAt = due;
    timer = setTimeout(look, Math.max(1, Math.ceil(due - now)));
  }

  function look(): void {
    firesAt = Infinity;
    if (current === undefined) return;
    if (performance.now() < since + current.limitMs) return arm();
    // Timers run before sockets: after a long tick what came in time is still unread.
    const seen = since;
    setImmediate(() => {
      if (current !== undefined && since === seen) late(current.limit, current.limitMs);
      else arm();
    });
  }

  return {
    enter(limit, limitMs) {
      if (current?.limit !== limit || current.limitMs !== limitMs) current = { limit, limitMs };
      since = performance.now();
      if (since + limitMs < firesAt) arm();
    },
    stop() {
      current = undefined;
      clearTimeout(timer);
      firesAt = Infinity;
    },
  };
}
