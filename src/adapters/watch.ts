/** The deadlines of one exchange on one timer: an arriving byte costs a timestamp, not a timer. */

export type Limit = "connect" | "first_byte" | "idle" | "total" | "leave";

export interface Watch {
  /** Puts this limit in force, from now. */
  enter(limit: Exclude<Limit, "total">, limitMs: number): void;
  /** Suspends all limits but the total one until the next `enter`. */
  rest(): void;
  stop(): void;
}

/**
 * Calls `late` once, with the limit that was passed. A total limit replaces those on silence: without streaming, the
 * first byte comes when the answer is complete.
 */
export function createWatch(totalMs: number | undefined, late: (limit: Limit, limitMs: number) => void): Watch {
  const total = totalMs ?? Infinity;
  const endsAt = performance.now() + total;
  let current: Limit = "connect";
  let currentMs = Infinity;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Infinity;
  /** The silence, or the total deadline, that has had its second look. */
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
   * Timers run before sockets: if we were held up, what came meanwhile is still unread. So a limit counts only after
   * the sockets had as long as the timer was late.
   */
  function lookAgain(passed: number, now: number, tardyMs: number): void {
    doubted = passed;
    firesAt = now + Math.max(1, tardyMs);
    timer = setTimeout(check, firesAt - now);
  }

  /** A timer that fires too early checks again; one that would fire too late is replaced. */
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
