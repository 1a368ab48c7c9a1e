/** What the operator wishes of a running gateway, by signals: to stop, or to read its configuration again. */
import type { Signal, Terminal } from "./terminal.ts";

export interface Wishes {
  /** The next wish; to stop stands above all others, and stays. */
  next(): Promise<"stop" | "reload">;
  readonly isStopping: boolean;
  /** The gateway runs: from now on a wish to stop waits for its turns, where before there is nothing to wait for. */
  begin(): void;
  /** Lets the process end by itself. */
  close(): void;
}

/** Hears signals from now on. Whoever wishes to stop again, after a moment, is not made to wait. */
export function hearWishes(terminal: Terminal): Wishes {
  // Without a listener nothing else keeps the process alive.
  const alive = setInterval(() => {}, 2_147_483_647);
  let stopAskedAt: number | undefined;
  let wantsReload = false;
  let isBegun = false;
  let wake: (() => void) | undefined;
  const isQuiet = (): boolean => stopAskedAt === undefined && !wantsReload;
  terminal.onSignal((signal) => {
    // A terminal that is closed hangs up on its programs; a service has none, and is sent it on purpose.
    if (signal === "SIGHUP" && !terminal.isInteractive) wantsReload = true;
    else {
      if (!isBegun) return terminal.exit(exitCodes[signal]);
      const now = terminal.now().getTime();
      if (stopAskedAt !== undefined && Math.abs(now - stopAskedAt) >= sameWishMs) terminal.exit(exitCodes[signal]);
      stopAskedAt ??= now;
    }
    wake?.();
  });
  return {
    async next() {
      while (isQuiet()) await new Promise<void>((resolve) => (wake = resolve));
      if (stopAskedAt !== undefined) return "stop";
      wantsReload = false;
      return "reload";
    },
    get isStopping() {
      return stopAskedAt !== undefined;
    },
    begin() {
      isBegun = true;
    },
    close: () => clearInterval(alive),
  };
}

/** What a shell expects of a process that a signal ended. */
const exitCodes: Readonly<Record<Signal, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** npm sends a terminal's Ctrl-C on to the gateway, which has had it already: what follows so soon is the same wish. */
const sameWishMs = 500;
