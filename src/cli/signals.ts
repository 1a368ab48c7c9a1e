/** What the operator wants of a running gateway, by signals: to stop, or to reload its configuration. */
import type { Signal, Terminal } from "./terminal.ts";

export interface OperatorSignals {
  /** What is wanted next; stopping takes precedence, and stays. */
  next(): Promise<"stop" | "reload">;
  readonly isStopping: boolean;
  /** The gateway runs: from now on stopping waits for its turns; before this the process exits at once. */
  begin(): void;
  /** Lets the process end by itself. */
  close(): void;
}

/** Listens for signals. A second signal to stop, after a moment, ends the process at once. */
export function listenForSignals(terminal: Terminal): OperatorSignals {
  // Without a listener nothing else keeps the process alive.
  const alive = setInterval(() => {}, 2_147_483_647);
  let stopAskedAt: number | undefined;
  let wantsReload = false;
  let isBegun = false;
  let wake: (() => void) | undefined;
  const isQuiet = (): boolean => stopAskedAt === undefined && !wantsReload;
  terminal.onSignal((signal) => {
    // A closed terminal sends it to its programs; a service has no terminal, and gets it on purpose.
    if (signal === "SIGHUP" && !terminal.isInteractive) wantsReload = true;
    else {
      if (!isBegun) return terminal.exit(exitCodes[signal]);
      const now = terminal.now().getTime();
      if (stopAskedAt !== undefined && Math.abs(now - stopAskedAt) >= sameSignalMs) terminal.exit(exitCodes[signal]);
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

/** What a shell expects of a process ended by a signal. */
export const exitCodes: Readonly<Record<Signal, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** npm forwards a terminal's Ctrl-C to the gateway, which already has it: what follows so soon is the same signal. */
const sameSignalMs = 500;
