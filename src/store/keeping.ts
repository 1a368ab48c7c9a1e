/** Whether anything can be kept: a failed write refuses turns before a model is asked, one that succeeds lets them in again. */
import type { GatewayError } from "../core/errors.ts";

const probeMs = 1_000;

export interface Keeping {
  saved(): void;
  /** From now on, until a write succeeds. */
  suffer(error: GatewayError): void;
  /** Throws why nothing can be kept now. */
  checkKeeping(): void;
  /** The same, by a write if none has succeeded lately. */
  check(): Promise<void>;
  stop(): void;
}

/** As large as a turn, for a small write may still fit on a full disk. */
const probeBytes = 65_536;

/** `write`: something of this size, and tells of it here. */
export function createKeeping(write: (bytes: number) => Promise<unknown>): Keeping {
  let trouble: GatewayError | undefined;
  let savedAt = Number.NEGATIVE_INFINITY;
  let probe: NodeJS.Timeout | undefined;

  async function tryAgain(): Promise<void> {
    probe = undefined;
    // If it fails, the next one is due already.
    await write(probeBytes).catch(() => {});
  }

  function checkKeeping(): void {
    if (trouble !== undefined) throw trouble;
  }

  return {
    saved() {
      savedAt = performance.now();
      trouble = undefined;
    },
    suffer(error) {
      trouble = error;
      probe ??= setTimeout(tryAgain, probeMs).unref();
    },
    checkKeeping,
    async check() {
      checkKeeping();
      if (performance.now() - savedAt > probeMs) await write(1);
    },
    stop: () => clearTimeout(probe),
  };
}
