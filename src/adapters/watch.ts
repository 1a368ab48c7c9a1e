/** The deadlines of one exchange, kept by one timer: a byte that arrives costs a timestamp, not a timer. */

export type Limit = "connect" | "first_byte" | "idle" | "total" | "leave";

export interface Watch {
  /** From now on this limit counts, from the last sign of life. */
  enter(limit: Exclude<Limit, "total">, limitMs: number): void;
  /** A sign of life. */
  touch(): void;
  /** No limit counts until the next `enter`, except the total one. */
  rest(): void;
  stop(): void;
}

/**
 * `late` is called at most once, with the limit that was passed. Where the whole has a limit, silence has none: who does not
 * stream says its first byte when it is done.
 */
export function createWatch(totalMs: number | undefined, late: (limit: Limit, limitMs: number) => void): Watch {
  const total = totalMs ?? Infinity;
  const endsAt = performance.now() + total;
  let current: Limit = "connect";
  let currentMs = Infinity;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Infinity;
  /** The silence, or the end of the whole, that was given a second look. */
  let doubted = -1;

  function check(): void {
    const now = performance.now();
    const tardyMs = now - firesAt;
    timer = undefined;
    firesAt = Infinity;
    const isOver = now >= endsAt;
    const passed = isOver ? endsAt : since;
    if (!isOver && now < since + currentMs) arm(now);
    else if (doubted !== passed) lookAgain(passed, now, tardyMs);
    else if (isOver) late("total", total);
    else late(current, currentMs);
  }

  /**
   * Timers come before sockets: who was held up itself has not yet read what came meanwhile. So a limit counts once the
   * sockets had their say, for as long as the timer was late.
   */
  function lookAgain(passed: number, now: number, tardyMs: number): void {
    doubted = passed;
    firesAt = now + Math.max(1, tardyMs);
    timer = setTimeout(check, firesAt - now);
  }

  /** A timer that fires too early only looks again; one that would fire too late is set anew. */
  function arm(now: number): void {
    const due = Math.min(doubted === endsAt ? Infinity : endsAt, since + currentMs);
    if (due >= firesAt) return;
    clearTimeout(timer);
    firesAt = due;
    timer = setTimeout(check, Math.max(1, Math.ceil(due - now)));
  }

  return {
    enter(limit, limitMs) {
      current = limit;
      currentMs = totalMs !== undefined && silences.has(limit) ? Infinity : limitMs;
      since = performance.now();
      arm(since);
    },
    touch() {
      since = performance.now();
    },
    rest() {
      currentMs = Infinity;
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

const silences: ReadonlySet<Limit> = new Set(["first_byte", "idle"]);
