/** What the operator wants of a running gateway, by signals: to stop, or to reload its configuration. */
import { isatty } from "node:tty";

/** What is wanted next; stopping takes precedence. A second signal to stop, after a moment, ends the process at once. */
export function listenForSignals(): { next(): Promise<"stop" | "reload"> } {
  // Asked now: a closed window could not tell.
  const isAtTerminal = isatty(0);
  let stopAskedAt: number | undefined;
  let wantsReload = false;
  let wake: (() => void) | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => take(signal));

  function take(signal: keyof typeof exitCodes): void {
    // A closed terminal sends it to its programs; a service has no terminal, and gets it on purpose.
    if (signal === "SIGHUP" && !isAtTerminal) wantsReload = true;
    else {
      const now = performance.now();
      const isAgain = stopAskedAt !== undefined && now - stopAskedAt >= sameSignalMs;
      if (isAgain) process.exit(exitCodes[signal]);
      stopAskedAt ??= now;
    }
    wake?.();
  }

  return {
    async next() {
      if (stopAskedAt === undefined && !wantsReload) await new Promise<void>((resolve) => (wake = resolve));
      if (stopAskedAt !== undefined) return "stop";
      wantsReload = false;
      return "reload";
    },
  };
}

/** What a shell expects of a process that a signal ended. */
export const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** npm forwards a terminal's Ctrl-C to the gateway, which already has it: what follows so soon is the same signal. */
const sameSignalMs = 500;
